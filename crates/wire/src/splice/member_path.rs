//! Paths to a member of several objects.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

/// The path of a member in one or more objects of a document. The name of an array has `[]` behind
/// it and stands for each of its elements.
///
/// ```
/// use sluicegate_wire::MemberPath;
///
/// let path: MemberPath = "messages[].content[].file.filename".parse().unwrap();
/// assert_eq!((path.first(), path.name()), ("messages", "filename"));
/// assert!("messages[]".parse::<MemberPath>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
#[schemars(with = "String")]
pub struct MemberPath {
    text: String,
    /// The members that lead to the objects.
    pub(super) outer: Vec<Step>,
    /// The name of the member in each of them.
    name: String,
}

/// One member on the way to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) name: String,
    /// True if its value is an array, and the path leads through each element.
    pub(super) each: bool,
}

impl MemberPath {
    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of the top-level member with which it begins.
    #[must_use]
    pub fn first(&self) -> &str {
        self.outer.first().map_or(&self.name, |step| &step.name)
    }

    /// The name of the member at its end.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for MemberPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for MemberPath {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for MemberPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("'{text}' is not the path of a member such as \"messages[].reasoning_content\"")
        };
        let step = |step: &str| {
            let (name, each) = match step.strip_suffix("[]") {
                Some(name) => (name, true),
                None => (step, false),
            };
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let is_name = !name.is_empty() && name.bytes().all(is_plain);
            is_name
                .then(|| Step {
                    name: name.to_owned(),
                    each,
                })
                .ok_or_else(wrong)
        };
        let mut outer = text.split('.').map(step).collect::<Result<Vec<_>, _>>()?;
        match outer.pop() {
            Some(Step { name, each: false }) => Ok(Self {
                text: text.to_owned(),
                outer,
                name,
            }),
            _ => Err(wrong()),
        }
    }
}
