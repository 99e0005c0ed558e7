//! A model in the configuration file: an entry of the catalog with its targets.

use std::fmt;

use catalog::Model;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::upstream::Target;
use crate::upstream::hedge::Hedge;

/// One model: its properties and its targets.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ModelEntry {
    /// The model as the catalog lists it.
    #[schemars(flatten)]
    pub model: Model,
    /// Its targets. Empty: the embedded engine of its family.
    #[schemars(default)]
    pub targets: Vec<Target>,
    /// The hedging of its requests. Absent: a request is at one target at a time.
    pub hedge: Option<Hedge>,
}

/// Written by hand, because serde's `flatten` would accept unknown settings, and would lose the line of
/// an error.
impl<'de> Deserialize<'de> for ModelEntry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Settings)
    }
}

struct Settings;

impl<'de> Visitor<'de> for Settings {
    type Value = ModelEntry;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the table of a model")
    }

    fn visit_map<A: MapAccess<'de>>(self, all: A) -> Result<ModelEntry, A::Error> {
        let (mut targets, mut hedge) = (None, None);
        let of_model = SettingsOfModel {
            all,
            targets: &mut targets,
            hedge: &mut hedge,
        };
        let model = Model::deserialize(MapAccessDeserializer::new(of_model))?;
        Ok(ModelEntry {
            model,
            targets: targets.unwrap_or_default(),
            hedge,
        })
    }
}

/// The settings of an entry that are properties of its model. The others are read and set aside.
struct SettingsOfModel<'a, A> {
    all: A,
    targets: &'a mut Option<Vec<Target>>,
    hedge: &'a mut Option<Hedge>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for SettingsOfModel<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, A::Error> {
        while let Some(name) = self.all.next_key::<String>()? {
            match name.as_str() {
                "targets" => *self.targets = Some(self.all.next_value()?),
                "hedge" => *self.hedge = Some(self.all.next_value()?),
                _ => {
                    return seed
                        .deserialize(name.into_deserializer())
                        .map(Some)
                        .map_err(unknown);
                }
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.all.next_value_seed(seed)
    }
}

/// Adds the other settings of an entry to the error of an unknown setting, which lists the settings of a
/// model.
fn unknown<E: serde::de::Error>(error: E) -> E {
    let message = error.to_string();
    E::custom(format_args!("{}, `targets`, `hedge`", message.trim_end()))
}

#[cfg(test)]
mod tests {
    use crate::Config;

    /// The error of a second model with these settings.
    fn error(settings: &str) -> String {
        let model = "[[models]]\nid = \"a\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n";
        let text = format!("{model}{}{settings}\n", model.replace("\"a\"", "\"b\""));
        Config::parse(&text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_model_and_the_setting_and_quote_the_line() {
        for (settings, quoted, message) in [
            (
                "targets = [{ upstream = \"u\" }, { weight = \"1\" }]",
                "9 | targets = [{ upstream = \"u\" }, { weight = \"1\" }]",
                "models[1].targets[1].weight: invalid type: string \"1\", expected an integer of 0 or more",
            ),
            (
                "hedge = { after = \"2s\" }",
                "9 | hedge = { after = \"2s\" }",
                "models[1].hedge: missing field `percent`",
            ),
            (
                "string_input = \"yes\"",
                "9 | string_input = \"yes\"",
                "models[1].string_input: invalid type: string \"yes\", expected a boolean",
            ),
            (
                "allow = [\"N\"]",
                "9 | allow = [\"N\"]",
                "models[1].allow[0]: unknown variant `N`, expected one of ",
            ),
            (
                "target = []",
                "5 | [[models]]",
                "models[1]: unknown field `target`, expected one of `id`, `family`, `protocols`, `display_name`, `created`, `owned_by`, `string_input`, `reasoning`, `allow`, `facts`, `targets`, `hedge`",
            ),
        ] {
            let error = error(settings);
            assert!(error.contains(quoted), "{error}");
            assert!(error.contains(&format!("\n{message}")), "{error}");
        }
        let error = Config::parse("[[models]]\nid = \"a\"\n").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("\nmodels[0]: missing field `family`"),
            "{error}"
        );
    }
}
