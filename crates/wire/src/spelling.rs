//! Detects unknown members whose names some readers take for known names.
//!
//! Go's `encoding/json` matches names in any case, and the last member of a name counts
//! (<https://pkg.go.dev/encoding/json#Unmarshal>). A gateway that decides by `model` and relays
//! `Model` lets a client choose another model than the one it checked.

use crate::{Code, Object, Path, Problem, Violations, truncate_for_error};

/// An object with declared members, which keeps the others. [`open_structs!`](crate::open_structs)
/// implements it.
pub trait OpenMembers {
    /// The names of the declared members.
    const NAMES: &'static [&'static str];

    /// Returns the members that are not declared.
    fn others(&self) -> &Object;
}

impl Violations {
    /// Checks that no unknown member of the object at `path` has the name of a declared one but for
    /// the case of its letters.
    pub fn check_spelling<T: OpenMembers>(&mut self, path: &Path<'_>, object: &T) {
        self.check_names(path, object.others(), T::NAMES);
    }

    /// Checks that no member in `others` has one of `names` but for the case of its letters.
    pub fn check_names(&mut self, path: &Path<'_>, others: &Object, names: &[&str]) {
        for other in others.keys() {
            let is_like = |name: &&&str| name.chars().eq(other.chars().map(folded));
            if let Some(name) = names.iter().find(is_like) {
                self.misspelt(&path.key(other), &path.key(name));
            }
        }
    }

    /// Records that the member at `path` has the name of the one at `known` but for its spelling.
    pub fn misspelt(&mut self, path: &Path<'_>, known: &Path<'_>) {
        let member = path.to_string();
        let shown = truncate_for_error(&member);
        let sentence = format!(
            "Unknown parameter: '{shown}'. Names are compared as they are written: expected '{known}'."
        );
        self.add(path, Problem::Other(Code::UnknownParameter, sentence));
    }
}

/// Folds a letter as Go does: besides ASCII, there are two letters whose lower case is in `a` to `z`
/// (<https://www.unicode.org/Public/UNIDATA/CaseFolding.txt>).
fn folded(letter: char) -> char {
    match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        _ => letter.to_ascii_lowercase(),
    }
}

#[cfg(test)]
#[allow(
    dead_code,
    unreachable_pub,
    reason = "the macro declares public structs"
)]
mod tests {
    use super::*;

    crate::open_structs! {
        /// A request with a required and an optional member.
        pub struct Request {
            /// The id of the model.
            pub model: String,
            /// Maximum number of tokens.
            pub max_tokens: Option<u32>,
        }
    }

    fn found(document: &str) -> Vec<String> {
        let request: Request = serde_json::from_str(document).unwrap();
        let mut found = Violations::default();
        found.check_spelling(&Path::ROOT, &request);
        found.iter().map(|problem| problem.param.clone()).collect()
    }

    #[test]
    fn refuses_names_that_differ_in_case_only() {
        for (document, expected) in [
            (r#"{"model":"a","Model":"b"}"#, &["Model"][..]),
            (r#"{"model":"a","MAX_TOKENS":1}"#, &["MAX_TOKENS"]),
            (
                r#"{"model":"a","max_to\u212aens":1}"#,
                &["max_to\u{212a}ens"],
            ),
            (
                r#"{"model":"a","max_token\u017f":1}"#,
                &["max_token\u{17f}"],
            ),
            (
                r#"{"model":"a","\u004dodel":"b","modeL":"c"}"#,
                &["Model", "modeL"],
            ),
        ] {
            assert_eq!(found(document), expected, "{document}");
        }
    }

    #[test]
    fn accepts_names_that_no_reader_confuses() {
        for name in ["models", "maxTokens", "max-tokens", "mode", "\u{3bc}odel"] {
            let document = format!(r#"{{"model":"a","{name}":1}}"#);
            assert_eq!(found(&document), [""; 0], "{name}");
        }
    }

    #[test]
    fn the_violation_names_both_spellings() {
        let request: Request = serde_json::from_str(r#"{"model":"a","Model":"b"}"#).unwrap();
        let mut found = Violations::default();
        found.check_spelling(&Path::ROOT.key("options"), &request);
        let first = found.iter().next().unwrap();
        assert_eq!(
            (first.code().as_str(), first.to_string().as_str()),
            (
                "unknown_parameter",
                "Unknown parameter: 'options.Model'. Names are compared as they are written: \
                 expected 'options.model'."
            )
        );
    }
}
