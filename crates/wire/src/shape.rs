//! Diagnoses why a document does not match a type, based on the type's JSON Schema.
//!
//! serde stops at the first error and reports no path. When a document fails to deserialize, this
//! module walks it against the schema of the type and lists every error. It is a cold path. It
//! supports the subset of JSON Schema that the types of this workspace produce. Ranges and enum
//! values are left to the validators, since serde does not check them either, except for negative
//! values of unsigned integers.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::number::{EXACT, integral};
use crate::{Path, Problem, Violations};

/// The shape of a type: its required members and the JSON type of each member.
#[derive(Clone, Debug)]
pub struct Shape(Value);

impl Shape {
    /// Derives the shape of `T` from its schema.
    #[must_use]
    pub fn of<T: JsonSchema>() -> Self {
        Self(
            SchemaGenerator::default()
                .into_root_schema_for::<T>()
                .to_value(),
        )
    }

    /// Returns every error that prevents `document` from deserializing as the type, up to the cap
    /// of [`Violations`]. Empty if the document matches.
    #[must_use]
    pub fn diagnose(&self, document: &Value) -> Violations {
        let mut found = Violations::default();
        self.walk(&self.0, document, &Path::ROOT, &mut found);
        found
    }

    fn walk(&self, schema: &Value, value: &Value, path: &Path<'_>, found: &mut Violations) {
        let Some(schema) = schema.as_object().filter(|_| !found.is_full()) else {
            return;
        };
        if let Some(target) = self.target(schema) {
            self.walk(target, value, path, found);
        }
        if let Some(branches) = alternatives(schema) {
            self.walk_best(branches, value, path, found);
        }
        if !self.fits_type(schema, value) {
            return found.add(
                path,
                Problem::Type {
                    expected: self.expected(schema),
                    found: name_of(value),
                },
            );
        }
        if let Some(problem) = negative(schema, value) {
            return found.add(path, problem);
        }
        match value {
            Value::Object(members) => self.walk_members(schema, members, path, found),
            Value::Array(entries) => {
                let Some(entry) = schema.get("items") else {
                    return;
                };
                for (i, value) in entries.iter().enumerate() {
                    self.walk(entry, value, &path.index(i), found);
                }
            }
            _ => {}
        }
    }

    fn walk_members(
        &self,
        schema: &Map<String, Value>,
        members: &Map<String, Value>,
        path: &Path<'_>,
        found: &mut Violations,
    ) {
        let declared = schema.get("properties").and_then(Value::as_object);
        for (name, member) in declared.into_iter().flatten() {
            match members.get(name) {
                Some(value) => self.walk(member, value, &path.key(name), found),
                None if requires(schema, name) => found.missing(&path.key(name)),
                None => {}
            }
        }
        let Some(rest @ Value::Object(_)) = schema.get("additionalProperties") else {
            return;
        };
        for (name, value) in members {
            if declared.is_none_or(|declared| !declared.contains_key(name)) {
                self.walk(rest, value, &path.key(name), found);
            }
        }
    }

    /// Reports errors against the alternative that the value most likely intends.
    fn walk_best(
        &self,
        branches: &[Value],
        value: &Value,
        path: &Path<'_>,
        found: &mut Violations,
    ) {
        let mut candidates: Vec<_> = branches
            .iter()
            .filter(|branch| self.is_candidate(branch, value))
            .collect();
        if candidates.iter().any(|branch| has_required(branch, value)) {
            candidates.retain(|branch| has_required(branch, value));
        }
        if candidates.is_empty() {
            let expected = self.expected_of(branches.iter());
            return found.add(
                path,
                Problem::Type {
                    expected,
                    found: name_of(value),
                },
            );
        }
        let diagnoses = candidates.into_iter().map(|branch| {
            let mut found = Violations::default();
            self.walk(branch, value, path, &mut found);
            found
        });
        found.append(diagnoses.min_by_key(Violations::len).unwrap_or_default());
    }

    /// Returns true if a value has the JSON type of the branch and no tag of the branch with a
    /// different value.
    fn is_candidate(&self, branch: &Value, value: &Value) -> bool {
        let Some(schema) = branch.as_object() else {
            return true;
        };
        let fits = self.fits_type(schema, value)
            && self
                .target(schema)
                .is_none_or(|target| self.is_candidate(target, value))
            && alternatives(schema)
                .is_none_or(|inner| inner.iter().any(|branch| self.is_candidate(branch, value)));
        let Some(tags) = schema.get("properties").and_then(Value::as_object) else {
            return fits;
        };
        fits && tags.iter().all(|(name, tag)| {
            match (value.get(name), tag.get("const"), tag.get("not")) {
                (Some(_), ..) if *tag == Value::Bool(false) => false,
                (Some(Value::Null), Some(_), _) => !requires(schema, name),
                (Some(word), Some(tag), _) => word == tag,
                (Some(word), _, Some(not)) => !not["enum"]
                    .as_array()
                    .is_some_and(|known| known.contains(word)),
                _ => true,
            }
        })
    }

    fn target(&self, schema: &Map<String, Value>) -> Option<&Value> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
        self.0.pointer(name)
    }

    fn fits_type(&self, schema: &Map<String, Value>, value: &Value) -> bool {
        match schema.get("type") {
            Some(Value::String(kind)) => is_a(value, kind),
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .any(|kind| is_a(value, kind)),
            _ => true,
        }
    }

    /// Describes the values that a schema accepts, such as `a string or an array of objects`.
    fn expected(&self, schema: &Map<String, Value>) -> String {
        if let Some(target) = self.target(schema) {
            return self.expected_of([target].into_iter());
        }
        if let Some(branches) = alternatives(schema) {
            return self.expected_of(branches.iter());
        }
        let named = |kind: &str| match (kind, schema.get("items")) {
            ("array", Some(entry)) => match self.expected_of([entry].into_iter()).split_once(' ') {
                Some((_, entry)) if !entry.contains(' ') => format!("an array of {entry}s"),
                _ => "an array".to_owned(),
            },
            ("array", None) => "an array".to_owned(),
            ("integer" | "object", _) => format!("an {kind}"),
            (kind, _) => format!("a {kind}"),
        };
        match schema.get("type") {
            Some(Value::String(kind)) => named(kind),
            Some(Value::Array(kinds)) => {
                let kinds = kinds
                    .iter()
                    .filter_map(Value::as_str)
                    .filter(|kind| *kind != "null");
                kinds.map(named).collect::<Vec<_>>().join(" or ")
            }
            _ => "another value".to_owned(),
        }
    }

    fn expected_of<'a>(&self, schemas: impl Iterator<Item = &'a Value>) -> String {
        let mut names: Vec<String> = Vec::new();
        for name in schemas
            .filter_map(Value::as_object)
            .map(|schema| self.expected(schema))
        {
            if name != "a null" && !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(" or ")
    }
}

fn alternatives(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    schema
        .get("anyOf")
        .or_else(|| schema.get("oneOf"))?
        .as_array()
}

fn requires(schema: &Map<String, Value>, name: &str) -> bool {
    schema
        .get("required")
        .and_then(Value::as_array)
        .is_some_and(|names| names.iter().any(|required| required == name))
}

/// Returns true if a value has the members that a branch itself requires, ignoring those required
/// by its `$ref` target.
fn has_required(branch: &Value, value: &Value) -> bool {
    let names = branch
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    names.into_iter().all(|name| value.get(name).is_some())
}

fn is_a(value: &Value, kind: &str) -> bool {
    match (value, kind) {
        (Value::Number(number), "integer") => {
            number.is_i64() || (number.is_f64() && number.as_f64().and_then(integral).is_some())
        }
        (Value::Null, "null")
        | (Value::Bool(_), "boolean")
        | (Value::Number(_), "number")
        | (Value::String(_), "string")
        | (Value::Array(_), "array")
        | (Value::Object(_), "object") => true,
        _ => false,
    }
}

/// Returns the problem of a negative value for an unsigned integer.
fn negative(schema: &Map<String, Value>, value: &Value) -> Option<Problem> {
    let format = schema.get("format")?.as_str()?;
    let found = value.as_f64().filter(|number| *number < 0.0)?;
    format.starts_with("uint").then(|| Problem::Range {
        limit: schema.get("minimum").and_then(Value::as_f64).unwrap_or(0.0),
        found,
        integer: true,
    })
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        // serde_json parses integers beyond 64 bits as floats.
        Value::Number(number)
            if !number.is_i64() && number.as_f64().is_some_and(|float| float.abs() > EXACT) =>
        {
            "an integer out of range"
        }
        Value::Number(number) if number.is_f64() => "a decimal number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
