//! `sluicegate config init`: a configuration file with every setting, its meaning and its default.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::schema;

/// Returns a configuration file that has every setting, as a comment behind its documentation.
///
/// It follows from the [schema](schema::document). A line that begins with `# ` is documentation;
/// one that begins with `#` alone becomes a setting without it.
pub fn file() -> String {
    let mut file = File(HEAD.to_owned());
    file.settings("", schema::document().as_value());
    file.0
}

/// A file that is being written.
struct File(String);

impl File {
    /// Writes the settings of a table, whose path ends in a point. Values come before tables, because
    /// TOML gives what follows the header of a table to that table.
    fn settings(&mut self, path: &str, table: &Value) {
        let mut tables = Vec::new();
        for (name, schema) in members(table).into_iter().flatten() {
            if let Some(value) = value(schema) {
                self.comment(schema);
                self.line(format_args!("#{name} = {value}"));
            } else {
                tables.push((name, schema));
            }
        }
        for (name, schema) in tables {
            self.comment(schema);
            let path = format!("{path}{name}");
            // A table within another one, or one that cannot be empty, is left out.
            let is_left_out = path.contains('.') || schema.get("required").is_some();
            match &alternative(schema)["items"] {
                Value::Null if is_left_out => self.line(format_args!("#[{path}]")),
                Value::Null => self.line(format_args!("[{path}]")),
                _ => self.line(format_args!("#[[{path}]]")),
            }
            self.settings(&format!("{path}."), entry(schema));
        }
    }

    /// Writes the documentation of a setting, and of each value if there are only a few.
    fn comment(&mut self, schema: &Value) {
        self.line(format_args!(""));
        self.text(&schema["description"]);
        let choices = alternative(entry(schema))["oneOf"].as_array();
        for choice in choices.into_iter().flatten() {
            if let (Some(word), Some(text)) = (choice["const"].as_str(), first(choice)) {
                self.text(&Value::from(format!("`{word}`: {text}")));
            }
        }
    }

    /// Writes a text as a comment, whose lines are filled.
    fn text(&mut self, text: &Value) {
        let mut line = "#".to_owned();
        for word in text.as_str().unwrap_or_default().split_whitespace() {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                self.line(format_args!("{line}"));
                "#".clone_into(&mut line);
            }
            line.extend([" ", word]);
        }
        self.line(format_args!("{line}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

/// The settings of a table.
fn members(table: &Value) -> Option<&Map<String, Value>> {
    alternative(table)["properties"].as_object()
}

/// The schema of the entries of a list, or the schema itself.
fn entry(schema: &Value) -> &Value {
    let schema = alternative(schema);
    schema.get("items").unwrap_or(schema)
}

/// The first alternative of a schema that has several.
fn alternative(schema: &Value) -> &Value {
    let first = schema["anyOf"].as_array().and_then(|all| all.first());
    first.unwrap_or(schema)
}

/// The value of a setting in the file: its example or else its default. Tables without an example
/// have none: each of their settings is written.
fn value(schema: &Value) -> Option<toml::Value> {
    let example = schema["examples"].as_array().and_then(|all| all.first());
    let is_table = members(entry(schema)).is_some();
    let default = schema.get("default").filter(|_| !is_table);
    toml::Value::try_from(example.or(default)?).ok()
}

/// The first paragraph of the documentation.
fn first(schema: &Value) -> Option<&str> {
    schema["description"].as_str()?.split("\n\n").next()
}

const WIDTH: usize = 100;
const HEAD: &str = "\
# The configuration of Sluicegate. The lines that are commented out have the default of their
# setting, or an example if it has none. `sluicegate check` reports problems of this file, and
# `sluicegate config schema > sluicegate.schema.json` writes the schema that editors use with:
#:schema ./sluicegate.schema.json
";

#[cfg(test)]
mod tests {
    use toml::Value as Toml;

    use super::*;
    use crate::file::Config;
    use crate::schema::tests::{Validator, examples};

    /// The file with every setting set.
    fn set() -> String {
        let is_setting = |line: &&str| line.starts_with(|first: char| !"# :".contains(first));
        let set = |line: &str| match line.strip_prefix('#').filter(is_setting) {
            Some(setting) => setting.to_owned(),
            None => line.to_owned(),
        };
        file().lines().map(|line| set(line) + "\n").collect()
    }

    /// The paths of the settings of a table, such as `quotas.budget.amount`.
    fn paths(path: &str, value: &Toml, to: &mut Vec<String>) {
        match value {
            Toml::Table(table) => table.iter().for_each(|(name, value)| {
                let path = format!("{path}.{name}");
                to.push(path.clone());
                paths(&path, value, to);
            }),
            Toml::Array(entries) => entries.iter().for_each(|entry| paths(path, entry, to)),
            _ => {}
        }
    }

    fn paths_of(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        paths("", &Toml::Table(text.parse().unwrap()), &mut found);
        found
    }

    #[test]
    fn file_as_it_is_has_the_defaults() {
        let config = Config::parse(&file()).unwrap();
        let default = Config::default();
        assert_eq!(config.limits, default.limits);
        assert_eq!(config.state, default.state);
        assert_eq!(config.fetch, default.fetch);
        assert!(config.models.is_none() && config.upstreams.is_empty());
    }

    #[test]
    fn every_line_is_a_setting_of_the_right_type() {
        let text = set();
        assert_eq!(Validator::new().problem(&text), None);
        let config: Config = toml::from_str(&text).unwrap();
        assert_eq!(config.keys.len(), 1);
        assert_eq!(config.limits.body_memory_per_key(), 256 << 20);
    }

    #[test]
    fn documented_settings_are_in_the_file() {
        let found = paths_of(&set());
        let examples = examples();
        let documented: Vec<_> = examples.iter().flat_map(|text| paths_of(text)).collect();
        assert!(documented.len() > 100, "{documented:?}");
        // The file has another form of these: a word, the name of a variable, and one fact.
        let others = [".state.unknown_price.", ".upstreams.api_key.", ".facts."];
        let is_new = |path: &&String| !others.iter().any(|other| path.starts_with(other));
        let is_missing = |path: &&String| is_new(path) && !found.contains(path);
        let missing: Vec<_> = documented.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn settings_are_described_by_their_documentation() {
        let file = file();
        for part in [
            "\n# The size of a JSON body. Default 32 MiB.\n#json_body = \"32MiB\"\n",
            "\n# `closed`: Requests are refused once the lease is over.\n",
            "\n# Money in a window of the calendar.\n#[quotas.budget]\n",
            "\n#[[models.targets]]\n\n# The name of an upstream.\n#upstream = \"house\"\n",
        ] {
            assert!(file.contains(part), "{part}\n{file}");
        }
        assert!(file.lines().all(|line| line.len() <= 120), "{file}");
    }
}
