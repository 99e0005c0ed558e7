//! The models: the targets of each one, and the losses on the road to each target.

use catalog::{Model, Protocol};
use field_map::{Disposition, When};
use policy::targets::{Backend, Target};
use schemars::JsonSchema;
use serde::Serialize;
use telemetry::requests::report::Road;

use super::AdminRequest;
use super::failure::Failure;

/// The models.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelRoutes {
    /// The models in the order of the configuration.
    models: Vec<ModelView>,
}

/// A model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ModelRoute")]
struct ModelView {
    /// The id, or a prefix of ids followed by `*`.
    id: String,
    /// The family: `text`, `messages` or `images`.
    family: String,
    /// The targets in the order of the configuration.
    targets: Vec<TargetView>,
}

/// A target of a model.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Target")]
struct TargetView {
    /// The name of an upstream, or `embedded`.
    target: String,
    /// The target's name of the model, if it differs.
    model: Option<String>,
    /// The relative frequency with which it is tried first.
    weight: Option<u32>,
    /// The road from each protocol in which the model is served.
    roads: Vec<RoadView>,
}

/// The road of requests of one protocol to a target.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RoadOfProtocol")]
struct RoadView {
    /// The protocol of the client: `responses`, `chat`, `messages`, `image_generations` or
    /// `image_edits`.
    protocol: &'static str,
    /// The road.
    road: Road,
    /// The fields that are dropped on this road.
    drops: Vec<&'static str>,
    /// The fields with which a request is refused on this road.
    refuses: Vec<&'static str>,
}

/// Lists the models with their targets.
pub(super) async fn list(admin: &AdminRequest<'_>) -> Result<ModelRoutes, Failure> {
    let policy = admin.state.policies.current();
    let models = policy.catalog.iter().map(|model| {
        let targets = policy.routes.possible(model).iter();
        ModelView {
            id: model.id.clone(),
            family: model.family.as_str().to_owned(),
            targets: targets
                .map(|target| TargetView::new(model, target))
                .collect(),
        }
    });
    let models = models.collect();
    Ok(ModelRoutes { models })
}

impl TargetView {
    fn new(model: &Model, target: &Target) -> Self {
        let roads = model
            .protocols()
            .map(|client| RoadView::new(client, target));
        Self {
            target: target.label().to_owned(),
            model: target.model.clone(),
            weight: target.weight,
            roads: roads.collect(),
        }
    }
}

impl RoadView {
    fn new(client: Protocol, target: &Target) -> Self {
        let (road, upstream) = match &target.backend {
            Backend::Embedded => (Road::Embedded, None),
            Backend::Upstream(server) => match server.translation(client) {
                None => (Road::Relayed, None),
                Some(upstream) => (Road::Translated, Some(upstream)),
            },
        };
        let translated = outbound_of(client).zip(upstream);
        let fields = |wanted| match translated {
            Some((client, upstream)) => fields(client, upstream, wanted),
            None => Vec::new(),
        };
        Self {
            protocol: name(client),
            road,
            drops: fields(Disposition::Dropped),
            refuses: fields(Disposition::Refused),
        }
    }
}

/// The fields that a translation treats so, whatever their value.
fn fields(
    client: vendor::Protocol,
    upstream: vendor::Protocol,
    wanted: Disposition,
) -> Vec<&'static str> {
    let rows = field_map::rows().iter();
    let rows = rows.filter(|row| row.client == client && row.when == When::Given);
    let treated = rows.filter(|row| row.disposition(upstream) == wanted);
    treated.map(|row| row.field).collect()
}

/// The text protocol of an endpoint; `None` for images, which are never translated.
fn outbound_of(client: Protocol) -> Option<vendor::Protocol> {
    match client {
        Protocol::Responses => Some(vendor::Protocol::Responses),
        Protocol::Chat => Some(vendor::Protocol::Chat),
        Protocol::Messages => Some(vendor::Protocol::Messages),
        _ => None,
    }
}

fn name(client: Protocol) -> &'static str {
    match client {
        Protocol::Responses => "responses",
        Protocol::Chat => "chat",
        Protocol::Messages => "messages",
        Protocol::ImagesEdits => "image_edits",
        _ => "image_generations",
    }
}
