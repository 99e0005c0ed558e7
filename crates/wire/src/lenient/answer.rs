//! Parts of an answer that every protocol has.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::ReadError;
use crate::ServiceTier;

/// An answer. If it has several choices, the first one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer<Finish> {
    /// The reasoning and its summary, if the server sends them.
    pub reasoning: String,
    /// The output text.
    pub text: String,
    /// The text by which the model refuses, in protocols that separate it from the output text.
    pub refusal: String,
    /// The calls, in the order in which they began.
    pub calls: Vec<Call>,
    /// The end of the answer. Unless it is complete, the last of the texts or calls may be
    /// truncated.
    pub finish: Finish,
    /// The token counts, if the server sends them.
    pub tokens: Option<Tokens>,
}

/// Token counts of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Prompt tokens in total, including cached ones.
    pub input: u64,
    /// Prompt tokens that were read from a cache.
    pub cache_read: u64,
    /// Prompt tokens that were written to a cache, for whatever time.
    pub cache_write: u64,
    /// Prompt tokens that were written to a cache for an hour.
    pub cache_write_1h: u64,
    /// Prompt tokens that are audio.
    pub audio_input: u64,
    /// Prompt tokens that are images.
    pub image_input: u64,
    /// Output tokens in total, including reasoning tokens.
    pub output: u64,
    /// Output tokens of reasoning.
    pub reasoning: u64,
    /// Output tokens that are audio.
    pub audio_output: u64,
    /// Output tokens that are images.
    pub image_output: u64,
    /// The service tier at which the request was processed.
    pub service_tier: ServiceTier,
}

impl Tokens {
    /// Adds the counts of another part of the answer, which has a share of the prompt.
    #[must_use]
    pub fn with_share(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            cache_write_1h: self.cache_write_1h.saturating_add(other.cache_write_1h),
            audio_input: self.audio_input.saturating_add(other.audio_input),
            image_input: self.image_input.saturating_add(other.image_input),
            ..self.with_output(other)
        }
    }

    /// Adds the answer of another choice, which has the same prompt.
    #[must_use]
    pub fn with_choice(self, other: Self) -> Self {
        let prompt = if other.input > self.input {
            other
        } else {
            self
        };
        Self {
            output: self.output,
            reasoning: self.reasoning,
            audio_output: self.audio_output,
            image_output: self.image_output,
            ..prompt
        }
        .with_output(other)
    }

    /// Adds the output of another part or choice.
    fn with_output(self, other: Self) -> Self {
        Self {
            output: self.output.saturating_add(other.output),
            reasoning: self.reasoning.saturating_add(other.reasoning),
            audio_output: self.audio_output.saturating_add(other.audio_output),
            image_output: self.image_output.saturating_add(other.image_output),
            service_tier: match other.service_tier {
                ServiceTier::Standard => self.service_tier,
                other => other,
            },
            ..self
        }
    }
}

/// A call of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// The id, by which the result refers to the call; empty if the server sent none.
    pub id: String,
    /// The name of the function.
    pub name: String,
    /// The arguments as JSON text; empty if the server sent none.
    pub arguments: String,
}

impl Call {
    /// Checks that the call can be executed. Some servers send no arguments for a function without
    /// parameters.
    ///
    /// # Errors
    /// If it has no name, or arguments that are not complete JSON.
    pub fn check(&self) -> Result<(), ReadError> {
        // White space that is not JSON's makes no difference where there is nothing else.
        let arguments = match self.arguments.trim() {
            "" => "",
            _ => &self.arguments,
        };
        if self.name.is_empty() {
            return Err(ReadError::Call("it has no name"));
        }
        if arguments.is_empty() || serde_json::from_str::<IgnoredAny>(arguments).is_ok() {
            Ok(())
        } else {
            Err(ReadError::Call(CUT))
        }
    }
}

/// Compares the complete form of a text with its deltas. Returns the rest that the deltas lacked.
///
/// # Errors
/// If the complete form does not begin with the deltas.
pub fn rest<'a>(deltas: &str, complete: Cow<'a, str>) -> Result<Cow<'a, str>, ReadError> {
    let rest = |text: &str| text.strip_prefix(deltas).map(str::len);
    let length = rest(&complete).ok_or(ReadError::Contradiction(
        "a complete text that differs from its deltas",
    ))?;
    Ok(match complete {
        Cow::Borrowed(text) => Cow::Borrowed(&text[text.len() - length..]),
        Cow::Owned(mut text) => Cow::Owned(text.split_off(text.len() - length)),
    })
}

const CUT: &str = "its arguments are truncated, or no JSON";

#[cfg(test)]
mod tests {
    use super::*;

    /// Around JSON there can be its own white space, but no other.
    #[test]
    fn a_call_needs_a_name_and_json() {
        let check = |name: &str, arguments: &str| {
            let call = Call {
                name: name.to_owned(),
                arguments: arguments.to_owned(),
                ..Call::default()
            };
            call.check().map_err(|error| error.to_string())
        };
        for arguments in ["", " \n", "{}", " \t\r\n{\"city\": \"Oslo\"} ", "\"\""] {
            assert_eq!(check("weather", arguments), Ok(()));
        }
        for arguments in [
            "{\"city\": \"Os",
            "\u{2028}\"\"",
            "{}\u{a0}",
            "\u{feff}{}",
            "Oslo",
        ] {
            assert_eq!(
                check("weather", arguments).unwrap_err(),
                ReadError::Call(CUT).to_string()
            );
        }
        assert!(check("", "{}").is_err());
    }
}
