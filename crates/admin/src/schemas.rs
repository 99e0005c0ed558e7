//! The schemas of the types, under unique names.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// The schemas of the document, by name.
///
/// Several protocols have types of the same name, so each name is prefixed with its protocol. A
/// type that is both read and written has two schemas, because a field that is optional in a
/// request is always present in a response; the name of the second ends in `Written`. The requests
/// of a protocol must therefore be added first.
#[derive(Default)]
pub(crate) struct Schemas {
    pub(crate) all: Map<String, Value>,
    read: BTreeSet<String>,
}

impl Schemas {
    /// Adds the schema for reading a `T`, and returns a reference to it.
    pub(crate) fn read<T: JsonSchema>(&mut self, prefix: &str) -> Value {
        let (schema, definitions) = generate::<T>(SchemaSettings::draft2020_12());
        let names = definitions.keys().map(|name| format!("{prefix}{name}"));
        self.read.extend(names);
        self.add(schema, definitions, |name| format!("{prefix}{name}"))
    }

    /// Adds the schema for writing a `T`, and returns a reference to it.
    pub(crate) fn written<T: JsonSchema>(&mut self, prefix: &str) -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let (schema, mut definitions) = generate::<T>(settings);
        let read = self.read.clone();
        let is_read = |name: &str| read.contains(&format!("{prefix}{name}"));
        for (_, definition) in definitions.iter_mut().filter(|(name, _)| is_read(name)) {
            open_words(definition);
        }
        self.add(schema, definitions, |name| match is_read(name) {
            true => format!("{prefix}{name}Written"),
            false => format!("{prefix}{name}"),
        })
    }

    /// Adds a hand-written schema, and returns a reference to it.
    pub(crate) fn named(&mut self, name: &str, schema: Value) -> Value {
        self.all.insert(name.to_owned(), schema);
        json!({ "$ref": format!("{REFERENCE}{name}") })
    }

    /// Returns the schema that a reference points to, or `schema` itself if it is not a reference.
    pub(crate) fn target<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"]
            .as_str()
            .and_then(|target| target.strip_prefix(REFERENCE));
        name.and_then(|name| self.all.get(name)).unwrap_or(schema)
    }

    fn add(
        &mut self,
        mut schema: Value,
        definitions: Map<String, Value>,
        named: impl Fn(&str) -> String + Copy,
    ) -> Value {
        rename(&mut schema, named);
        for (name, mut definition) in definitions {
            rename(&mut definition, named);
            self.all.insert(named(&name), definition);
        }
        schema
    }
}

/// Returns the schema of a type, and the definitions to which it refers.
fn generate<T: JsonSchema>(settings: SchemaSettings) -> (Value, Map<String, Value>) {
    let settings = settings.with(|settings| settings.definitions_path = SCHEMAS.into());
    let mut generator = SchemaGenerator::new(settings);
    let schema = generator.subschema_for::<T>().to_value();
    (schema, generator.take_definitions(true))
}

/// Allows other words than the known ones: an answer repeats the settings of its request, and an
/// upstream may know more words than this gateway.
fn open_words(definition: &mut Value) {
    if let Some(words) = definition
        .as_object_mut()
        .and_then(|members| members.remove("enum"))
    {
        definition["anyOf"] = json!([{ "enum": words }, { "type": "string" }]);
    }
}

/// Replaces the names in all references by those in the document.
fn rename(schema: &mut Value, named: impl Fn(&str) -> String + Copy) {
    match schema {
        Value::Object(members) => {
            // A default of null only means that the member may be absent, and it is wrong where
            // null is not allowed.
            members.retain(|key, member| !(key == "default" && member.is_null()));
            for (key, member) in members {
                match member {
                    Value::String(target) if key == "$ref" => {
                        if let Some(name) = target.strip_prefix(REFERENCE) {
                            *target = format!("{REFERENCE}{}", named(name));
                        }
                    }
                    member => rename(member, named),
                }
            }
        }
        Value::Array(entries) => entries.iter_mut().for_each(|entry| rename(entry, named)),
        _ => {}
    }
}

const SCHEMAS: &str = "/components/schemas";
const REFERENCE: &str = "#/components/schemas/";
