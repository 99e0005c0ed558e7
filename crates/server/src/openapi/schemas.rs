//! The schemas of the types, under names that do not clash.

use std::collections::BTreeSet;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

/// Every schema that the document needs, by name.
///
/// Protocols have types of the same name, so each name gets its protocol in front. A type that is read and written
/// has two schemas, since what may be left out of a request is always in an answer: the second ends in `Written`.
/// So ask for the requests of a protocol first.
#[derive(Default)]
pub(super) struct Schemas {
    all: Map<String, Value>,
    read: BTreeSet<String>,
}

impl Schemas {
    /// A reference to the schema of what is read as `T`.
    pub(super) fn read<T: JsonSchema>(&mut self, prefix: &str) -> Value {
        let mut generator = generator(SchemaSettings::draft2020_12());
        let schema = generator.subschema_for::<T>().to_value();
        let definitions = generator.take_definitions(true);
        self.read.extend(definitions.keys().map(|name| format!("{prefix}{name}")));
        self.add(schema, definitions, |name| format!("{prefix}{name}"))
    }

    /// A reference to the schema of what is written of a `T`.
    pub(super) fn written<T: JsonSchema>(&mut self, prefix: &str) -> Value {
        let mut generator = generator(SchemaSettings::draft2020_12().for_serialize());
        let schema = generator.subschema_for::<T>().to_value();
        let definitions = generator.take_definitions(true);
        let read = self.read.clone();
        self.add(schema, definitions, |name| {
            let name = format!("{prefix}{name}");
            if read.contains(&name) { name + "Written" } else { name }
        })
    }

    /// A reference to a schema that was made by hand.
    pub(super) fn named(&mut self, name: &str, schema: Value) -> Value {
        self.all.insert(name.to_owned(), schema);
        reference(name)
    }

    /// The schema that a reference leads to; itself, when it is none.
    pub(super) fn target<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let name = schema["$ref"].as_str().and_then(|target| target.strip_prefix(REFERENCE));
        name.and_then(|name| self.all.get(name)).unwrap_or(schema)
    }

    /// All of them.
    pub(super) fn into_all(self) -> Map<String, Value> {
        self.all
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

/// A reference to the schema of that name.
fn reference(name: &str) -> Value {
    serde_json::json!({ "$ref": format!("{REFERENCE}{name}") })
}

fn generator(settings: SchemaSettings) -> SchemaGenerator {
    SchemaGenerator::new(settings.with(|settings| settings.definitions_path = SCHEMAS.into()))
}

/// Gives every schema that is referred to its name in the document.
fn rename(schema: &mut Value, named: impl Fn(&str) -> String + Copy) {
    match schema {
        Value::Object(members) => {
            // A default of null says nothing beyond that the member may be absent, and is wrong where null is.
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
