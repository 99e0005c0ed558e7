//! The bodies of requests to the admin API.

use coding::Coding;
use gateway::connection::client_body::ClientBody;
use gateway::exchange::body::upload::Incoming;
use gateway::exchange::refusal::Refusal;
use gateway::state::GatewayState;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, HeaderValue};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use wire::Shape;

use super::failure::Failure;

/// Reads a body of at most 64 KiB, within the time of uploads.
pub(crate) async fn read(
    body: ClientBody,
    headers: &HeaderMap,
    state: &GatewayState,
) -> Result<bytes::Bytes, Failure> {
    let codings = headers.get_all(CONTENT_ENCODING).iter();
    if Coding::of(codings.map(HeaderValue::as_bytes)) != Ok(None) {
        return Err(Refusal::content_encoding("identity").into());
    }
    let share = state.budget.share(SHARE);
    let read = Incoming::new(body, MAX_BODY, &state.limits, share).collect();
    Ok(read.await?.bytes)
}

/// Parses a body, which is a JSON object. Every error names its field.
pub(crate) fn parse<T: DeserializeOwned + JsonSchema>(body: &[u8]) -> Result<T, Failure> {
    let parsed: Result<Value, _> = serde_json::from_slice(body);
    let value = parsed
        .map_err(|error| Failure::body("", format!("The body is not valid JSON: {error}.")))?;
    if !value.is_object() {
        return Err(Failure::body("", "The body must be a JSON object."));
    }
    let schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>();
    if let Some(failure) = unknown_member(schema.as_value(), &value, "") {
        return Err(failure);
    }
    if let Some(violation) = Shape::of::<T>().diagnose(&value).first() {
        return Err(Failure::body(&violation.param, violation.to_string()));
    }
    // Of the text, and not of the value: it refuses members that occur twice.
    serde_json::from_slice(body)
        .map_err(|error| Failure::body("", format!("The body is not valid: {error}.")))
}

/// Refuses the first member that the schema does not have, at any depth.
fn unknown_member(schema: &Value, value: &Value, path: &str) -> Option<Failure> {
    let members = value.as_object()?;
    let schema = object_schema(schema)?;
    let none = Map::new();
    let known = schema["properties"].as_object().unwrap_or(&none);
    members.iter().find_map(|(name, value)| {
        let path = match path {
            "" => name.clone(),
            parent => format!("{parent}.{name}"),
        };
        match known.get(name) {
            Some(schema) => unknown_member(schema, value, &path),
            None => {
                let accepted: Vec<&str> = known.keys().map(String::as_str).collect();
                Some(Failure::unknown(&path, &accepted))
            }
        }
    })
}

/// Returns the alternative of a schema that is for objects.
fn object_schema(schema: &Value) -> Option<&Value> {
    if schema["properties"].is_object() {
        return Some(schema);
    }
    schema["anyOf"].as_array()?.iter().find_map(object_schema)
}

/// Deserializes a whole number, also in decimal form, such as `1e3`. Null means absent.
pub(super) fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let number = wire::integer_or_null(from)?;
    let unsigned = number.map(u64::try_from).transpose();
    unsigned.map_err(D::Error::custom)
}

/// Deserializes a member that is present, even if it is null.
pub(super) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The maximum length in bytes.
const MAX_BODY: usize = 64 << 10;
/// The name under which bodies count toward the memory of uploads; no key can have it.
const SHARE: &str = "admin api";
