//! The gateway itself: its version, features and addresses.

use schemars::JsonSchema;
use serde::Serialize;

use super::AdminRequest;
use super::failure::Failure;
use super::values::Time;

/// The gateway.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "About")]
pub(crate) struct AboutView {
    /// The version.
    version: &'static str,
    /// The features of the build.
    features: Vec<&'static str>,
    /// The start of the process.
    started: Time,
    /// The time since then, in seconds.
    uptime_seconds: u64,
    /// The addresses of the public API.
    listen: Vec<String>,
    /// Figures of this project, each with the command that repeats it.
    figures: &'static [Figure],
}

/// The facts about a gateway that do not change while it runs.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The version.
    pub version: &'static str,
    /// The features of the build.
    pub features: Vec<&'static str>,
    /// The start of the process, in Unix seconds.
    pub started: i64,
    /// The addresses of the public API.
    pub listen: Vec<String>,
}

/// A measured figure.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub(crate) struct Figure {
    /// The measured quantity.
    name: &'static str,
    /// The figure with its unit.
    value: &'static str,
    /// The command that repeats it.
    command: &'static str,
}

/// Shows the gateway.
pub(super) async fn show(admin: &AdminRequest<'_>) -> Result<AboutView, Failure> {
    let about = admin.about;
    let uptime = policy::clock::unix_seconds().saturating_sub(about.started);
    Ok(AboutView {
        version: about.version,
        features: about.features.clone(),
        started: Time::seconds(about.started),
        uptime_seconds: u64::try_from(uptime).unwrap_or_default(),
        listen: about.listen.clone(),
        figures: FIGURES,
    })
}

/// The figures of the README.
const FIGURES: &[Figure] = &[];
