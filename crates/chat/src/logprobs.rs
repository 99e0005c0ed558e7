//! Log probabilities of the tokens of a choice.

use serde::{Deserialize, Serialize};
use wire::Json;

/// The member `logprobs` of a choice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Logprobs {
    content: Option<Vec<Json>>,
    refusal: Option<Vec<Json>>,
}

impl Logprobs {
    /// The log probabilities of the tokens of a text.
    pub(crate) fn of_text(tokens: Vec<Json>) -> Self {
        Self {
            content: Some(tokens),
            refusal: None,
        }
    }

    /// Appends the log probabilities of a delta. Forms that the protocol does not define are
    /// ignored.
    pub(crate) fn append(&mut self, delta: &Json) {
        let Ok(more) = serde_json::from_str::<Self>(delta.text()) else {
            return;
        };
        for (known, more) in [
            (&mut self.content, more.content),
            (&mut self.refusal, more.refusal),
        ] {
            if let Some(more) = more {
                known.get_or_insert_default().extend(more);
            }
        }
    }

    /// Returns the member, unless there are no log probabilities.
    pub(crate) fn json(&self) -> Option<Json> {
        if self.content.is_none() && self.refusal.is_none() {
            return None;
        }
        serde_json::from_str(&serde_json::to_string(self).ok()?).ok()
    }
}
