//! `GET /v1/models` and `GET /v1/models/{id}`: bodies that both SDK families read (wire-reference §5).

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use wire::{ApiError, Path, Violations};

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
    /// Whether there are more in the direction of the page.
    pub has_more: bool,
    /// The id of the first; null when there is none.
    pub first_id: Option<String>,
    /// The id of the last; null when there is none.
    pub last_id: Option<String>,
}

/// A model as clients read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Entry {
    /// The name by which callers ask for it.
    pub id: String,
    /// `model`.
    #[schemars(extend("const" = "model"))]
    pub object: &'static str,
    /// Since when it is offered, in Unix seconds.
    pub created: i64,
    /// Whose it is.
    pub owned_by: String,
    /// `model`.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "model"))]
    pub kind: &'static str,
    /// Its name for people.
    pub display_name: String,
    /// Since when it is offered, as RFC 3339 has it.
    #[schemars(extend("format" = "date-time"))]
    pub created_at: String,
    /// `active`.
    #[schemars(extend("const" = "active"))]
    pub lifecycle: &'static str,
}

/// Which models of the list are asked for; all by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// At most so many, 1 to 1000.
    pub limit: Option<i64>,
    /// Those after this one.
    pub after_id: Option<String>,
    /// Those before this one; with a limit, the nearest to it.
    pub before_id: Option<String>,
}

impl Catalog {
    /// The page of the models that `may_see` admits.
    ///
    /// # Errors
    /// A limit out of range, and ids of models that are not in the list.
    pub fn list(&self, page: &Page, may_see: impl Fn(&Model) -> bool) -> Result<List, Violations> {
        let mut found = Violations::default();
        let models: Vec<&Model> = self.iter().filter(|model| may_see(model)).collect();
        found.check_integer(&Path::ROOT.key("limit"), page.limit, 1, MAX_LIMIT);
        let after = place("after_id", page.after_id.as_deref(), &models, &mut found);
        let before = place("before_id", page.before_id.as_deref(), &models, &mut found);
        let window = after.map_or(0, |at| at + 1)..before.unwrap_or(models.len());
        let window = models.get(window).unwrap_or_default();

        let limit = page.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        let surplus = window.len().saturating_sub(limit);
        let backwards = before.is_some() && after.is_none();
        let window = if backwards { &window[surplus..] } else { &window[..window.len() - surplus] };
        found.or(List::of(window, surplus > 0))
    }

    /// The entry of one model, when `may_see` admits it.
    ///
    /// # Errors
    /// `model_not_found` otherwise.
    pub fn retrieve(&self, id: &str, may_see: impl Fn(&Model) -> bool) -> Result<Entry, ApiError> {
        let model = self.find(id).filter(|model| may_see(model));
        model.map(Entry::from).ok_or_else(|| not_found(id, Protocol::Responses))
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
            // A catalog takes no model whose time is out of range.
            created_at: Timestamp::from_second(model.created).unwrap_or_default().to_string(),
            lifecycle: "active",
        }
    }
}

/// Where the model is that a cursor names.
fn place(cursor: &str, id: Option<&str>, models: &[&Model], found: &mut Violations) -> Option<usize> {
    let id = id?;
    let place = models.iter().position(|model| model.id == id);
    if place.is_none() {
        let sentence = format!("Invalid '{cursor}': expected the id of a model in the list.");
        found.invalid(&Path::ROOT.key(cursor), sentence);
    }
    place
}

/// The most models that a page may be asked for.
const MAX_LIMIT: i64 = 1000;
