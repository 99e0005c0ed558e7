//! Response bodies of `GET /v1/models` and `GET /v1/models/{id}`, compatible with OpenAI and
//! Anthropic SDKs.
//!
//! See <https://platform.openai.com/docs/api-reference/models> and
//! <https://docs.anthropic.com/en/api/models-list>.

mod capabilities;
mod facts;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wire::{ApiError, Path, Violations};

use self::facts::ListedFacts;
use crate::catalog::not_found;
use crate::{Catalog, Model, Protocol};

/// A page of models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct List {
    /// `list`.
    #[schemars(extend("const" = "list"))]
    pub object: &'static str,
    /// The models, newest first.
    pub data: Vec<Entry>,
    /// True if there are more models in the direction of the page.
    pub has_more: bool,
    /// The id of the first model of the page; null if the page is empty.
    pub first_id: Option<String>,
    /// The id of the last model of the page; null if the page is empty.
    pub last_id: Option<String>,
}

/// A model as returned to clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Entry {
    /// The id used in requests.
    pub id: String,
    /// `model`.
    #[schemars(extend("const" = "model"))]
    pub object: &'static str,
    /// The creation time as a Unix time in seconds.
    pub created: i64,
    /// The owner of the model.
    pub owned_by: String,
    /// `model`.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "model"))]
    pub kind: &'static str,
    /// The display name.
    pub display_name: String,
    /// The creation time in RFC 3339 format.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// `active`, or `deprecated` if the end of the model is announced.
    #[schemars(extend("enum" = ["active", "deprecated"]))]
    pub lifecycle: &'static str,
    /// The limits and capabilities.
    #[serde(flatten)]
    pub facts: ListedFacts,
}

/// Pagination parameters of a list request. The default requests all models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The maximum number of models, 1 to 1000.
    pub limit: Option<i64>,
    /// Returns models after the one with this id.
    pub after_id: Option<String>,
    /// Returns models before the one with this id; with a limit, those nearest to it.
    pub before_id: Option<String>,
}

impl Catalog {
    /// Returns a page of the models for which `may_see` returns true, without patterns.
    ///
    /// # Errors
    /// Returns violations if the limit is out of range or a cursor is not the id of a model in the
    /// list.
    pub fn list(&self, page: &Page, may_see: impl Fn(&Model) -> bool) -> Result<List, Violations> {
        let mut found = Violations::default();
        let models: Vec<&Model> = self.listed().filter(|model| may_see(model)).collect();
        found.check_integer(&Path::ROOT.key("limit"), page.limit, 1, MAX_LIMIT);
        let after = cursor_position("after_id", page.after_id.as_deref(), &models, &mut found);
        let before = cursor_position("before_id", page.before_id.as_deref(), &models, &mut found);
        let window = after.map_or(0, |at| at + 1)..before.unwrap_or(models.len());
        let window = models.get(window).unwrap_or_default();

        let limit = page
            .limit
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(usize::MAX);
        let surplus = window.len().saturating_sub(limit);
        let backwards = before.is_some() && after.is_none();
        let window = if backwards {
            &window[surplus..]
        } else {
            &window[..window.len() - surplus]
        };
        found.or(List::of(window, surplus > 0))
    }

    /// Returns the entry of a listed model for which `may_see` returns true, for a client of
    /// `protocol`.
    ///
    /// # Errors
    /// Returns `model_not_found` if there is no such model.
    pub fn retrieve(
        &self,
        id: &str,
        protocol: Protocol,
        may_see: impl Fn(&Model) -> bool,
    ) -> Result<Entry, ApiError> {
        let mut listed = self.listed();
        let model = listed.find(|model| model.id == id && may_see(model));
        model
            .map(Entry::from)
            .ok_or_else(|| not_found(id, protocol))
    }

    /// Iterates over the models that are listed: all but the patterns.
    fn listed(&self) -> impl Iterator<Item = &Model> {
        self.iter().filter(|model| model.prefix().is_none())
    }
}

impl List {
    fn of(models: &[&Model], has_more: bool) -> Self {
        let id = |model: Option<&&Model>| model.map(|model| model.id.clone());
        Self {
            object: "list",
            data: models.iter().map(|model| Entry::from(*model)).collect(),
            has_more,
            first_id: id(models.first()),
            last_id: id(models.last()),
        }
    }
}

impl From<&Model> for Entry {
    fn from(model: &Model) -> Self {
        Self {
            id: model.id.clone(),
            object: "model",
            created: model.created,
            owned_by: model.owned_by.clone(),
            kind: "model",
            display_name: model.display_name.clone(),
            // `Catalog::new` rejects models whose time is out of range.
            created_at: Timestamp::from_second(model.created)
                .unwrap_or_default()
                .to_string(),
            // Anthropic's `active` is for models without an announced end. A retired one is no longer
            // served, so that it is not in the configuration.
            lifecycle: match (model.facts.deprecated_at, model.facts.retires_at) {
                (None, None) => "active",
                _ => "deprecated",
            },
            facts: ListedFacts::from(&model.facts),
        }
    }
}

/// Returns the position of the model that a cursor refers to, and records a violation if no model
/// has the id.
fn cursor_position(
    cursor: &str,
    id: Option<&str>,
    models: &[&Model],
    found: &mut Violations,
) -> Option<usize> {
    let id = id?;
    let position = models.iter().position(|model| model.id == id);
    if position.is_none() {
        let sentence = format!("Invalid '{cursor}': expected the id of a model in the list.");
        found.invalid(&Path::ROOT.key(cursor), sentence);
    }
    position
}

const MAX_LIMIT: i64 = 1000;
