//! The rules of vendors: which members, values and combinations their servers take for a model, as
//! data, and what is done to a request that breaks one.
//!
//! The rules that the gateway knows are in `rules.toml`; operators add their own in the same form.
//! Rules about members are applied to the encoded request; the others are settings of the encoder.

mod edit;
mod pattern;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use vendor::Protocol;
use wire::{MemberPath, Splice};

pub use self::pattern::Pattern;
use crate::outbound::encode::{Quirks, ThinkingForm};

/// The rules that the gateway knows, as TOML: an array of tables [`Rule`] with the name `rule`.
pub const BUILT_IN: &str = include_str!("rules/rules.toml");

/// A rule of a vendor.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The name by which it is switched off.
    #[schemars(example = &"house-temperature")]
    pub id: String,
    /// The presets whose upstreams have it. Absent: all upstreams.
    #[serde(default)]
    #[schemars(extend("examples" = [["vllm"]]))]
    pub presets: Vec<String>,
    /// The protocols of the upstreams that have it. Absent: all.
    #[serde(default)]
    #[schemars(extend("examples" = [["chat"]]))]
    pub protocols: Vec<Protocol>,
    /// Patterns of the upstream's names of models, in which `*` stands for any text. Absent: all.
    #[serde(default)]
    #[schemars(extend("examples" = [["house-*"]]))]
    pub models: Vec<Pattern>,
    /// Patterns of models that match `models` and do not have it.
    #[serde(default)]
    #[schemars(extend("examples" = [["house-chat*"]]))]
    pub except: Vec<Pattern>,
    /// The members that it concerns, such as `temperature` or `messages[].name`.
    #[serde(default)]
    #[schemars(extend("examples" = [["temperature"]]))]
    pub members: Vec<MemberPath>,
    /// Members and their words: a request that has one of them is not edited.
    #[serde(default)]
    #[schemars(extend("examples" = [{"reasoning_effort": ["none"]}]))]
    pub unless: BTreeMap<String, Vec<String>>,
    /// The edit of a request.
    #[schemars(example = &"drop")]
    pub action: Action,
    /// The page of the vendor, or the report, that it comes from.
    #[serde(default)]
    pub source: String,
    /// The month in which the source was read, such as `2026-11`.
    #[serde(default)]
    pub read: String,
}

/// The edit that a rule makes in a request.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// The members are left out.
    Drop,
    /// The members are left out where the object also has a member of this name.
    DropBeside(String),
    /// The members get the value where the object also has the other member, which is not an empty
    /// list.
    SetBeside {
        /// The name of the other member.
        other: String,
        /// The value to send.
        value: serde_json::Value,
    },
    /// The members get this name. A member that has it already is kept instead.
    Rename(String),
    /// The members get this value where they are missing.
    Default(serde_json::Value),
    /// Other words than `known` are replaced as `instead` says, or left out. The word of an object
    /// is its `type`.
    Words {
        /// The words that the server takes.
        known: Vec<String>,
        /// Words to send in place of those that it does not take.
        #[serde(default)]
        instead: BTreeMap<String, String>,
    },
    /// Numbers outside of the range become its nearest end.
    Range {
        /// The least number.
        least: Option<f64>,
        /// The greatest number.
        most: Option<f64>,
    },
    /// Texts with more characters than this are replaced by a hash, the same for the same text.
    Label(usize),
    /// Email addresses and telephone numbers are replaced by a hash, the same for the same text.
    HideAddresses,
    /// Thinking is requested in this form of Messages.
    Thinking(ThinkingForm),
    /// The model reasons also if the request sets no effort.
    Reasons,
    /// The model does not reason, and refuses an effort.
    NoReasoning,
    /// The model thinks unless Messages turns thinking off, which a forced call requires.
    Thinks,
    /// Chat Completions turns thinking off by `thinking`, and not by the effort `none`.
    ThinkingSwitch,
    /// Breakpoints of the prompt cache are sent in Chat Completions as in Messages.
    CacheControl,
    /// All system messages become one, at the beginning.
    MergeSystem,
    /// System messages without a message of the user become one of the user.
    NeedsUser,
    /// The first of several calls of Chat Completions without a thought signature gets one that is
    /// not checked.
    SignedCalls,
    /// A message of the assistant stands between the results of calls and a message of the user.
    AnswerResults,
    /// A message of the user follows a last message of the assistant.
    NoPrefill,
    /// Explicit breakpoints of the prompt cache are sent in OpenAI's protocols.
    CacheBreakpoints,
    /// The schema of the output becomes an instruction, and the output any JSON object, if the
    /// protocol has that.
    SchemaAsText,
    /// The types of schemas with alternatives move into the alternatives.
    TypedAlternatives,
    /// Images and documents become texts.
    TextOnly,
    /// The content of every message of Chat Completions is one text.
    TextContent,
    /// Results in Chat Completions have the name of their function.
    ToolNames,
    /// Earlier refusals are text in Chat Completions.
    RefusalAsText,
    /// A last message of the assistant in Chat Completions has the member `prefix`.
    MarkPrefill,
    /// The gateway ends answers at the stop sequences, which are not sent if they are more than this.
    MostStops(usize),
}

impl Action {
    /// Returns true if it edits the members of encoded requests.
    fn edits_members(&self) -> bool {
        matches!(
            self,
            Self::Drop
                | Self::DropBeside(_)
                | Self::SetBeside { .. }
                | Self::Rename(_)
                | Self::Default(_)
                | Self::Words { .. }
                | Self::Range { .. }
                | Self::Label(_)
                | Self::HideAddresses
        )
    }

    /// Returns true if it may add members to requests that do not have them.
    fn adds_members(&self) -> bool {
        matches!(self, Self::Default(_) | Self::SetBeside { .. })
    }

    /// Returns the name of the member that an edit of `path` adds.
    fn new_name(&self, path: &MemberPath) -> Option<String> {
        match self {
            Self::Rename(to) => Some(to.clone()),
            Self::Default(_) | Self::SetBeside { .. } => Some(path.first().to_owned()),
            _ => None,
        }
    }
}

/// The action in words.
impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop => f.write_str("left out"),
            Self::DropBeside(name) => write!(f, "left out beside `{name}`"),
            Self::SetBeside { other, value } => write!(f, "`{value}` beside `{other}`"),
            Self::Rename(name) => write!(f, "sent as `{name}`"),
            Self::Default(value) => write!(f, "`{value}` if absent"),
            Self::Words { known, instead } => {
                write!(f, "one of `{}`", known.join("`, `"))?;
                let mut instead = instead.iter();
                instead.try_for_each(|(word, other)| write!(f, ", `{other}` for `{word}`"))
            }
            Self::Range { least, most } => match (least, most) {
                (Some(least), Some(most)) => write!(f, "from {least} to {most}"),
                (Some(least), None) => write!(f, "at least {least}"),
                (None, Some(most)) => write!(f, "at most {most}"),
                (None, None) => f.write_str("any number"),
            },
            Self::Label(longest) => write!(f, "a hash if longer than {longest} characters"),
            Self::HideAddresses => f.write_str("a hash if an address or a telephone number"),
            Self::Thinking(form) => write!(f, "thinking has the form `{form}`"),
            Self::Reasons => f.write_str("reasons without a request for it"),
            Self::NoReasoning => f.write_str("does not reason, and takes no effort"),
            Self::Thinks => {
                f.write_str("thinks unless it is turned off, which a forced call needs")
            }
            Self::ThinkingSwitch => f.write_str("the effort `none` is `thinking`"),
            Self::CacheControl => f.write_str("cache breakpoints are `cache_control`"),
            Self::MergeSystem => f.write_str("system messages become one, at the beginning"),
            Self::NeedsUser => f.write_str("system messages alone are messages of the user"),
            Self::SignedCalls => {
                f.write_str("calls of other models get the signature that is not checked")
            }
            Self::AnswerResults => {
                f.write_str("the assistant says something between results and the user")
            }
            Self::SchemaAsText => f.write_str("the schema of the output is an instruction"),
            Self::TypedAlternatives => f.write_str("the types of schemas move into `anyOf`"),
            Self::TextOnly => f.write_str("images and documents become texts"),
            Self::TextContent => f.write_str("the content of a message is one text"),
            Self::ToolNames => f.write_str("results have the name of their function"),
            Self::RefusalAsText => f.write_str("earlier refusals are text"),
            Self::MarkPrefill => f.write_str("a last message of the assistant has `prefix`"),
            Self::NoPrefill => f.write_str("a message of the user is the last one"),
            Self::MostStops(0) => f.write_str("the gateway applies stop sequences"),
            Self::MostStops(most) => {
                write!(f, "the gateway applies stop sequences if more than {most}")
            }
            Self::CacheBreakpoints => {
                f.write_str("cache breakpoints are `prompt_cache_breakpoint`")
            }
        }
    }
}

/// The rule in one line.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.id)?;
        if !self.members.is_empty() {
            write!(f, "{}: ", listed(&self.members))?;
        }
        write!(f, "{}", self.action)?;
        if !self.models.is_empty() {
            write!(f, "; models {}", listed(&self.models))?;
        }
        if !self.except.is_empty() {
            write!(f, ", not {}", listed(&self.except))?;
        }
        for (member, words) in &self.unless {
            write!(f, "; not where `{member}` is `{}`", words.join("` or `"))?;
        }
        write!(f, " ({})", self.source)
    }
}

fn listed(items: &[impl fmt::Display]) -> String {
    let items: Vec<_> = items.iter().map(ToString::to_string).collect();
    items.join(", ")
}

impl Rule {
    /// Returns true if upstreams with this preset and protocol have the rule.
    #[must_use]
    pub fn is_of(&self, preset: Option<&str>, protocol: Protocol) -> bool {
        let has_preset = |preset: &str| self.presets.iter().any(|own| own == preset);
        (self.presets.is_empty() || preset.is_some_and(has_preset))
            && (self.protocols.is_empty() || self.protocols.contains(&protocol))
    }

    /// Checks that the rule means something.
    ///
    /// # Errors
    /// A sentence that names the setting, what was found and what is accepted.
    pub fn check(&self) -> Result<(), String> {
        let id = &self.id;
        if id.is_empty() {
            return Err("id: a name is needed".to_owned());
        }
        match (self.action.edits_members(), self.members.as_slice()) {
            (true, []) => return Err(format!("'{id}': members: at least one is needed")),
            (false, [first, ..]) => {
                let sentence = format!("'{id}': members: '{first}' has no meaning for this action");
                return Err(sentence);
            }
            _ => {}
        }
        if !self.unless.is_empty() && !self.action.edits_members() {
            return Err(format!("'{id}': unless: it has no meaning for this action"));
        }
        if let Action::Range {
            least: Some(least),
            most: Some(most),
        } = self.action
            && least > most
        {
            return Err(format!("'{id}': action: {least} is more than {most}"));
        }
        let is_lost = matches!(
            self.action,
            Action::Drop | Action::DropBeside(_) | Action::Rename(_)
        );
        let is_needed = |path: &&MemberPath| NEEDED.contains(&path.as_str());
        match self.members.iter().find(is_needed) {
            Some(path) if is_lost => Err(format!(
                "'{id}': members: '{path}' is needed by every request"
            )),
            _ => Ok(()),
        }
    }

    /// Returns true if a request has a member that excepts it.
    fn excepts(&self, body: &Splice<'_>) -> bool {
        self.unless.iter().any(|(member, words)| {
            let path: Vec<_> = member.split('.').collect();
            let word = body.value(&path).and_then(edit::text);
            word.is_some_and(|word| words.contains(&word))
        })
    }

    fn is_for(&self, model: &str) -> bool {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(model));
        (self.models.is_empty() || matches(&self.models)) && !matches(&self.except)
    }
}

/// The rules of an upstream. Where two contradict each other, the later one counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// Creates the rules of an upstream.
    #[must_use]
    pub fn new(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    /// Returns the rules for a model, by the upstream's name of it.
    pub fn of_model(&self, model: &str) -> impl Iterator<Item = &Rule> {
        self.0.iter().filter(move |rule| rule.is_for(model))
    }

    /// Returns the settings of the encoder for a model. The operator's `quirks` count before the
    /// rules.
    #[must_use]
    pub fn encoding(&self, model: &str, quirks: Quirks) -> Quirks {
        let mut encoding = quirks;
        for rule in self.of_model(model) {
            match &rule.action {
                Action::Thinking(form) => encoding.thinking = quirks.thinking.or(Some(*form)),
                Action::Reasons => encoding.reasons = true,
                Action::NoReasoning => encoding.no_reasoning = true,
                Action::Thinks => encoding.thinks = true,
                Action::ThinkingSwitch => encoding.thinking_switch = true,
                Action::CacheControl => encoding.cache_control = true,
                Action::MergeSystem => encoding.merge_system = true,
                Action::NeedsUser => encoding.needs_user = true,
                Action::SignedCalls => encoding.signed_calls = true,
                Action::AnswerResults => encoding.answer_results = true,
                Action::NoPrefill => encoding.no_prefill = true,
                Action::SchemaAsText => encoding.schema_as_text = true,
                Action::TypedAlternatives => encoding.typed_alternatives = true,
                Action::TextOnly => encoding.text_only = true,
                Action::TextContent => encoding.text_content = true,
                Action::ToolNames => encoding.tool_names = true,
                Action::RefusalAsText => encoding.refusal_as_text = true,
                Action::MarkPrefill => encoding.mark_prefill = true,
                Action::CacheBreakpoints => encoding.cache_breakpoints = true,
                Action::MostStops(most) => encoding.most_stops = Some(*most),
                _ => {}
            }
        }
        encoding
    }

    /// Returns true if a top-level member is always left out for a model.
    #[must_use]
    pub fn drops(&self, model: &str, member: &str) -> bool {
        self.of_model(model).any(|rule| {
            let is_always = rule.action == Action::Drop && rule.unless.is_empty();
            is_always && rule.members.iter().any(|path| path.as_str() == member)
        })
    }

    /// Returns true if a request for a model may need an edit.
    #[must_use]
    pub fn edits_requests(&self, model: &str) -> bool {
        self.of_model(model).any(|rule| rule.action.edits_members())
    }

    /// Returns a request as the server takes it for a model, and the paths of the members that were
    /// left out or have another value. The request is `None` if it does not change.
    ///
    /// Members that get another name and those that are added are not reported, because the request
    /// still means the same.
    #[must_use]
    pub fn edit(&self, model: &str, body: &[u8]) -> (Option<Vec<u8>>, Vec<String>) {
        edit::edit(self.of_model(model), body)
    }
}

/// The members without which a request means nothing.
const NEEDED: [&str; 4] = ["input", "messages", "model", "stream"];
