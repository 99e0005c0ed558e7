//! The models of a gateway: which there are, and which of them is served where.

use std::cmp::Reverse;
use std::collections::HashSet;

use jiff::Timestamp;
use wire::{ApiError, Code, ErrorKind};

use crate::{Family, Model, Protocol};

/// The models of a gateway, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog(Vec<Model>);

/// The model that makes images for a request which names none (spec §4.5).
pub const DEFAULT_IMAGE_MODEL: &str = "model-image-2.5-flare";

impl Catalog {
    /// The ten models of spec §1.5.
    #[must_use]
    pub fn builtin() -> Self {
        let text = |id| Model::new(id, Family::Text, [Protocol::Responses]);
        let image = |id| Model::new(id, Family::Images, [Protocol::ImagesGenerations, Protocol::ImagesEdits]);
        let mut flash = Model::new("alt-flash", Family::Text, [Protocol::Responses, Protocol::Chat]);
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
            Model::new("model-image-2", Family::Images, [Protocol::ImagesGenerations]),
        ])
    }

    /// A catalog of other models. Those of one age keep their order.
    ///
    /// # Errors
    /// Everything wrong with the models, each as a sentence that names the model.
    pub fn new(mut models: Vec<Model>) -> Result<Self, Vec<String>> {
        let mut seen = HashSet::new();
        let mut problems = Vec::new();
        for (i, model) in models.iter().enumerate() {
            check(model, i, &mut problems);
            if !seen.insert(model.id.as_str()) {
                problems.push(format!("model '{}': there is another with this id", model.id));
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        models.sort_by_key(|model| Reverse(model.created));
        Ok(Self(models))
    }

    /// The models, newest first.
    pub fn iter(&self) -> std::slice::Iter<'_, Model> {
        self.0.iter()
    }

    /// The model of that id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&Model> {
        self.iter().find(|model| model.id == id)
    }

    /// The model of that id, when it is served there.
    ///
    /// # Errors
    /// `model_not_found` when there is none, `model_not_supported` when it is served elsewhere, in the words of
    /// the protocol.
    pub fn serves(&self, id: &str, protocol: Protocol) -> Result<&Model, ApiError> {
        let model = self.find(id).ok_or_else(|| not_found(id, protocol))?;
        if model.speaks(protocol) { Ok(model) } else { Err(not_supported(model, protocol)) }
    }
}

impl<'a> IntoIterator for &'a Catalog {
    type Item = &'a Model;
    type IntoIter = std::slice::Iter<'a, Model>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The refusal of a model that does not exist, or that the key may not see.
pub(crate) fn not_found(id: &str, protocol: Protocol) -> ApiError {
    let id = wire::echo(id);
    let sentence = match protocol {
        Protocol::Messages => format!("model: {id}"),
        _ => format!("The model '{id}' does not exist or this key has no access to it."),
    };
    ApiError::new(ErrorKind::NotFound, "model_not_found", sentence).with_param("model")
}

fn not_supported(model: &Model, protocol: Protocol) -> ApiError {
    let id = &model.id;
    let places: Vec<_> = model.protocols().map(|place| format!("POST {}", place.path())).collect();
    let places = places.join(" or ");
    let sentence = match protocol {
        Protocol::Messages => format!("model: {id} is not served here; send it to {places}"),
        _ => format!("The model '{id}' is not served here; send it to {places}."),
    };
    ApiError::new(ErrorKind::InvalidRequest, Code::ModelNotSupported.as_str(), sentence).with_param("model")
}

fn check(model: &Model, position: usize, problems: &mut Vec<String>) {
    let Model { id, family, created, .. } = model;
    if id.is_empty() || id.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/') {
        problems.push(format!(
            "model {}: its id {id:?} must be 1 or more characters without spaces, control characters and slashes",
            position + 1
        ));
    }
    if model.protocols().next().is_none() {
        problems.push(format!("model '{id}': it needs at least one protocol"));
    }
    for protocol in model.protocols().filter(|protocol| !family.may_speak(*protocol)) {
        let path = protocol.path();
        problems.push(format!("model '{id}': a model of the {} family cannot be served on {path}", family.as_str()));
    }
    if Timestamp::from_second(*created).is_err() {
        problems.push(format!("model '{id}': created is {created}, which is no time in Unix seconds"));
    }
}
