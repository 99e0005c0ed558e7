//! The catalog of models, and lookup of models by id and endpoint.

#![expect(
    clippy::disallowed_methods,
    reason = "each error here has a row in tests/testkit/errors.toml"
)]

use std::cmp::Reverse;
use std::collections::HashSet;

use jiff::Timestamp;
use wire::{ApiError, Code, ErrorKind};

use crate::{Facts, Family, Model, Protocol};

/// The catalog of a gateway's models: newest first, and then the patterns, longest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog(Vec<Model>);

/// The model for image requests that name none.
pub const DEFAULT_IMAGE_MODEL: &str = "model-image-2.5-flare";

impl Catalog {
    /// Returns the catalog of the ten built-in models.
    #[must_use]
    pub fn builtin() -> Self {
        let text = |id| Model::new(id, Family::Text, [Protocol::Responses]);
        let image = |id| {
            Model::new(
                id,
                Family::Images,
                [Protocol::ImagesGenerations, Protocol::ImagesEdits],
            )
        };
        let mut flash = Model::new(
            "alt-flash",
            Family::Text,
            [Protocol::Responses, Protocol::Chat],
        );
        (flash.string_input, flash.reasoning) = (true, true);
        Self(vec![
            text("model-6-astra"),
            text("model-5.6-terra"),
            text("model-5.6-sol"),
            text("model-5.6-luna"),
            text("model-5.5"),
            flash,
            Model::new("msg-sonnet-5", Family::Messages, [Protocol::Messages]),
            image("model-image-2.5-sunburst"),
            image("model-image-2.5-flare"),
            Model::new(
                "model-image-2",
                Family::Images,
                [Protocol::ImagesGenerations],
            ),
        ])
    }

    /// Creates a catalog of custom models. Models with the same creation time keep their order. A
    /// model whose id ends in `*` is a [pattern](Model::prefix).
    ///
    /// # Errors
    /// Returns all problems with the models, each as a message that names the model.
    pub fn new(mut models: Vec<Model>) -> Result<Self, Vec<String>> {
        let mut seen = HashSet::new();
        let mut problems = Vec::new();
        for (i, model) in models.iter().enumerate() {
            check(model, i, &mut problems);
            if !seen.insert(model.id.as_str()) {
                problems.push(format!("model '{}': duplicate id", model.id));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        // The first match of a name is the right one: an exact id, else the longest prefix.
        let longest_first = |model: &Model| model.prefix().map(|prefix| Reverse(prefix.len()));
        models.sort_by_key(|model| (longest_first(model), Reverse(model.created)));
        Ok(Self(models))
    }

    /// Returns the same models with other facts.
    #[must_use]
    pub fn with_facts(&self, facts: impl Fn(&Model) -> Facts) -> Self {
        let models = self.iter().map(|model| {
            let mut changed = model.clone();
            changed.facts = facts(model);
            changed
        });
        Self(models.collect())
    }

    /// Iterates over the models, newest first, and then over the patterns, longest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Model> {
        self.0.iter()
    }

    /// Returns the model that serves requests for `name`: the one with this id, else the pattern
    /// with the longest prefix of the name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Model> {
        self.iter().find(|model| model.matches(name))
    }

    /// Returns the model that serves requests for `name`, as [`find`](Self::find) does, if it is
    /// served on the endpoint of `protocol`.
    ///
    /// # Errors
    /// Returns `model_not_found` if the model does not exist, and `model_not_supported` if it is
    /// served on other endpoints only. The message is worded for the protocol.
    pub fn serves(&self, name: &str, protocol: Protocol) -> Result<&Model, ApiError> {
        let model = self.find(name).ok_or_else(|| not_found(name, protocol))?;
        if model.is_served_on(protocol) {
            Ok(model)
        } else {
            Err(not_supported(name, model, protocol))
        }
    }
}

impl<'a> IntoIterator for &'a Catalog {
    type Item = &'a Model;
    type IntoIter = std::slice::Iter<'a, Model>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Returns the error for a model that does not exist or that the key has no access to.
pub(crate) fn not_found(id: &str, protocol: Protocol) -> ApiError {
    let id = wire::truncate_for_error(id);
    let sentence = match protocol {
        Protocol::Messages => format!("model: {id}"),
        _ => format!("The model `{id}` does not exist or you do not have access to it."),
    };
    ApiError::new(ErrorKind::NotFound, "model_not_found", sentence).with_param("model")
}

fn not_supported(name: &str, model: &Model, protocol: Protocol) -> ApiError {
    let id = wire::truncate_for_error(name);
    let endpoints: Vec<_> = model
        .protocols()
        .map(|protocol| format!("POST {}", protocol.path()))
        .collect();
    let endpoints = endpoints.join(" or ");
    let sentence = match protocol {
        Protocol::Messages => format!("model: {id} is not served here; send it to {endpoints}"),
        _ => format!("The model '{id}' is not served here; send it to {endpoints}."),
    };
    ApiError::new(
        ErrorKind::InvalidRequest,
        Code::ModelNotSupported.as_str(),
        sentence,
    )
    .with_param("model")
}

fn check(model: &Model, position: usize, problems: &mut Vec<String>) {
    let Model {
        id,
        family,
        created,
        ..
    } = model;
    if id.is_empty() || id.contains(|c: char| c.is_whitespace() || c.is_control()) {
        problems.push(format!(
            "model {}: its id {id:?} must be 1 or more characters without spaces and control characters",
            position + 1
        ));
    }
    if model.prefix().unwrap_or(id).contains('*') {
        problems.push(format!(
            "model '{id}': '*' is only allowed at the end of an id, where it stands for any characters"
        ));
    }
    if model.protocols().next().is_none() {
        problems.push(format!("model '{id}': it needs at least one protocol"));
    }
    for protocol in model
        .protocols()
        .filter(|protocol| !family.may_be_served_on(*protocol))
    {
        let path = protocol.path();
        problems.push(format!(
            "model '{id}': a model of the {} family cannot be served on {path}",
            family.as_str()
        ));
    }
    if Timestamp::from_second(*created).is_err() {
        problems.push(format!(
            "model '{id}': created is {created}, which is not a valid Unix time in seconds"
        ));
    }
}
