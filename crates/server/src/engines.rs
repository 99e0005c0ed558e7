//! The embedded engines.

use std::sync::Arc;

use config::{Config, ConfigError};
use engine::{ImageEngine, TextEngine};
use gateway::state::Engines;

/// Loads the engines that are needed, as far as this build has them.
pub(crate) async fn load(
    config: &Config,
    text: bool,
    images: bool,
) -> Result<Engines, ConfigError> {
    let text = if text {
        load_text_engine(config).await?
    } else {
        None
    };
    let images = if images {
        start_image_engine(config)
    } else {
        None
    };
    Ok(Engines { text, images })
}

/// Returns advice for the operator about each engine that is needed and that this build lacks.
pub(crate) fn missing(text: bool, images: bool) -> Vec<String> {
    let is_missing = |is_needed: bool, is_built: bool| is_needed && !is_built;
    let missing = [
        (
            "text",
            "text-engine",
            is_missing(text, cfg!(feature = "text-engine")),
        ),
        (
            "image",
            "image-engine",
            is_missing(images, cfg!(feature = "image-engine")),
        ),
    ];
    let advice = missing.into_iter().filter(|(.., is_missing)| *is_missing);
    let advice = advice.map(|(kind, feature, _)| {
        format!(
            "this build has no embedded {kind} engine: {kind} models without an upstream are \
             answered with 503; give them targets in a configuration file, or build with the \
             feature '{feature}'"
        )
    });
    advice.collect()
}

#[cfg(feature = "text-engine")]
async fn load_text_engine(config: &Config) -> Result<Option<Arc<dyn TextEngine>>, ConfigError> {
    let defaults = text_engine::Options::default();
    let options = text_engine::Options {
        model: config.text_engine.model.clone(),
        threads: config.text_engine.threads.unwrap_or(defaults.threads),
        generations: config
            .text_engine
            .generations
            .unwrap_or(defaults.generations),
        // A plain reply is dropped at its own deadline.
        timeout: Some(
            config
                .limits
                .request_timeout
                .max(config.limits.stream_timeout),
        ),
        // Every admitted request may wait: the concurrency limit of the gateway is the one that
        // clients see.
        waiting: config.limits.concurrency,
    };
    let loaded =
        tokio::task::spawn_blocking(move || text_engine::EmbeddedTextEngine::load(options)).await;
    match loaded {
        Ok(Ok(engine)) => Ok(Some(Arc::new(engine))),
        Ok(Err(error)) => Err(ConfigError::one(error.to_string())),
        Err(error) => Err(ConfigError::one(format!(
            "the embedded model could not be loaded: {error}"
        ))),
    }
}

#[cfg(not(feature = "text-engine"))]
async fn load_text_engine(_: &Config) -> Result<Option<Arc<dyn TextEngine>>, ConfigError> {
    Ok(None)
}

#[cfg(feature = "image-engine")]
fn start_image_engine(config: &Config) -> Option<Arc<dyn ImageEngine>> {
    let defaults = image_engine::Options::default();
    let options = image_engine::Options {
        threads: config.image_engine.threads.unwrap_or(defaults.threads),
        ..defaults
    };
    Some(Arc::new(image_engine::EmbeddedImageEngine::new(options)))
}

#[cfg(not(feature = "image-engine"))]
fn start_image_engine(_: &Config) -> Option<Arc<dyn ImageEngine>> {
    None
}
