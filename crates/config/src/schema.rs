//! The JSON Schema of the configuration file, which editors read.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde_json::{Value, json};

use crate::file::Config;

/// Returns the JSON Schema (draft 7, which the editors of TOML know) of the configuration file.
///
/// It follows from the types of the settings, their documentation and their defaults. The rules that
/// types cannot express are left to [`Config::parse`].
pub fn document() -> Schema {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Config>();
    RecursiveTransform(without_null).transform(&mut schema);
    schema
}

/// Removes null, which TOML does not have: an optional setting is left out.
fn without_null(schema: &mut Schema) {
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    members.retain(|name, member| !(name == "default" && member.is_null()));
    for list in ["type", "enum", "anyOf"] {
        if let Some(Value::Array(entries)) = members.get_mut(list) {
            let nulls = [json!("null"), json!(null), json!({"type": "null"})];
            entries.retain(|entry| !nulls.contains(entry));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use boon::{Compiler, SchemaIndex, Schemas};

    use super::*;

    /// A validator of configurations.
    pub(crate) struct Validator(Schemas, SchemaIndex);

    impl Validator {
        pub(crate) fn new() -> Self {
            let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
            let added = compiler.add_resource("config.json", document().to_value());
            added.unwrap();
            let index = compiler.compile("config.json", &mut schemas).unwrap();
            Self(schemas, index)
        }

        /// Returns the reason why a text of TOML does not match the schema.
        pub(crate) fn problem(&self, text: &str) -> Option<String> {
            let value: toml::Table = text.parse().unwrap();
            let value = serde_json::to_value(value).unwrap();
            let result = self.0.validate(&value, self.1);
            result.err().map(|error| format!("{error:#}\n{text}"))
        }
    }

    /// The examples of the configuration file in the README and in the book.
    pub(crate) fn examples() -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages = fs::read_dir(root.join("docs")).unwrap();
        let pages = pages.map(|page| page.unwrap().path());
        let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
        let pages = pages.filter(is_page).chain([root.join("README.md")]);
        let texts = pages.map(|page| fs::read_to_string(page).unwrap());
        let examples = |text: String| {
            let blocks = text.split("```toml\n").skip(1);
            let blocks = blocks.filter_map(|rest| rest.split("```").next());
            // One is the configuration of another program: Codex.
            let blocks = blocks.filter(|block| !block.contains("model_provider = "));
            blocks.map(str::to_owned).collect::<Vec<_>>()
        };
        texts.flat_map(examples).collect()
    }

    #[test]
    fn documented_examples_match_the_schema() {
        let validator = Validator::new();
        assert!(examples().len() >= 18);
        for example in examples() {
            assert_eq!(validator.problem(&example), None, "{example}");
        }
    }

    #[test]
    fn unknown_settings_and_wrong_values_do_not_match_the_schema() {
        let validator = Validator::new();
        let upstream = "[[upstreams]]\nname = \"u\"\nprotocol = \"chat\"\n";
        let model = "[[models]]\nid = \"m\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n";
        let price = "[[prices]]\nmodel = \"m\"\ninput = \"1\"\noutput = \"2\"\n";
        for text in [upstream, model, price] {
            assert_eq!(validator.problem(text), None);
        }
        for text in [
            "colour = 1",
            "[limits]\ncolour = 1",
            "[state]\nunknown_price = { default = { input = \"1\", output = \"1\", colour = 1 } }",
            "[[quotas]]\nbudget = { amount = \"1\", currency = \"USD\", window = \"day\", colour = 1 }",
            &format!("{upstream}colour = 1"),
            &format!("{upstream}quirks = {{ colour = 1 }}"),
            &format!("{upstream}api_key = {{ colour = 1 }}"),
            &format!("{model}colour = 1"),
            &format!("{model}targets = [{{ colour = 1 }}]"),
            &format!("{model}hedge = {{ colour = 1 }}"),
            &format!("{price}colour = 1"),
            &format!("{price}tiers = [{{ colour = 1 }}]"),
            "[limits]\nconcurrency = \"many\"",
            "[limits]\ndrain = 120",
            "[fetch]\nmode = \"some\"",
            "[[models]]\nid = \"m\"",
            "[[upstreams]]\nname = \"u\"\npreset = \"nobody\"",
        ] {
            assert!(validator.problem(text).is_some(), "{text}");
            assert!(Config::parse(text).is_err(), "{text}");
        }
    }

    /// The default of each setting is the one of the gateway, in the form of the file.
    #[test]
    fn defaults_are_written_as_in_the_file() {
        let schema = document().to_value();
        let limits = &schema["properties"]["limits"]["properties"];
        assert_eq!(limits["concurrency"]["default"], 256);
        assert_eq!(limits["json_body"]["default"], "32MiB");
        assert_eq!(limits["body_rate"]["default"], "1KiB");
        assert_eq!(limits["stream_timeout"]["default"], "3600s");
        assert_eq!(limits["send_buffer"].get("default"), None);
        let fetch = &schema["properties"]["fetch"]["properties"];
        assert_eq!(fetch["mode"]["default"], "global");
    }
}
