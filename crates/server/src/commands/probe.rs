//! `sluicegate check --ask`: sends one small request to each target of each model.

use std::sync::Arc;
use std::time::Duration;

use answer::{Answer, ImageReply, Reported, read_stream};
use bytes::Bytes;
use catalog::{Family, Model, Protocol};
use config::{Config, ConfigError};
use engine::{
    ImageEvent, ImageFormat, ImageRequest, Pixels, Quality, Size, TextRequest, Turn, UserPart,
};
use futures_util::{StreamExt, stream};
use gateway::endpoints::text::ending;
use gateway::exchange::answer::engine_events::fold;
use gateway::request::outgoing::{self, Draft, MAX_REPLY};
use gateway::state::Engines;
use http::HeaderMap;
use http_body_util::BodyExt;
use policy::Policy;
use policy::targets::{Backend, Target, UpstreamTarget};
use relay::End;
use serde_json::json;
use tokio::time::{Instant, timeout};
use translate::outbound::encode;
use upstream::{Effort, Incoming, Outgoing, Payload};
use wire::Splice;

use crate::engines;

/// Sends one small request to each target, a few at a time, and prints a line for each of them.
/// `names` are names of models, as clients send them; without any, all models are asked.
///
/// # Errors
/// When a target fails, no target was asked, or no model serves a name.
pub(crate) async fn targets(
    config: &Config,
    policy: &Policy,
    names: &[String],
) -> Result<(), ConfigError> {
    let questions = questions(policy, names)?;
    let needs = |images| {
        questions
            .iter()
            .any(|question| question.needs_engine(images))
    };
    let engines = engines::load(config, needs(false), needs(true)).await;
    let engines = &engines.map_err(|error| error.to_string());
    println!();
    let mut asked = 0;
    let mut failed = 0;
    let mut lines = stream::iter(&questions)
        .map(|question| question.report(engines))
        .buffered(AT_ONCE);
    while let Some((line, answered)) = lines.next().await {
        println!("{line}");
        asked += u32::from(answered.is_some());
        failed += u32::from(answered == Some(false));
    }
    match (asked, failed) {
        (0, _) => Err(ConfigError::one(
            "no target was asked: name a model with --model".to_owned(),
        )),
        (_, 0) => Ok(()),
        _ => Err(ConfigError::one(format!(
            "{failed} of {asked} targets failed"
        ))),
    }
}

/// A request to one target.
struct Question<'a> {
    model: &'a Model,
    /// The client's name of the model; the id of the pattern, if no name is known.
    name: &'a str,
    /// The position among the targets of the model, from 1.
    position: usize,
    target: Target,
}

/// Returns the questions to all targets of the models of these names, or of all models.
fn questions<'a>(
    policy: &'a Policy,
    names: &'a [String],
) -> Result<Vec<Question<'a>>, ConfigError> {
    let mut models = Vec::new();
    let mut problems = Vec::new();
    for name in names {
        match policy.catalog.find(name) {
            Some(model) => models.push((model, name.as_str())),
            None => problems.push(format!("--model: no model serves '{name}'")),
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError::new(problems));
    }
    if names.is_empty() {
        models.extend(
            policy
                .catalog
                .iter()
                .map(|model| (model, model.id.as_str())),
        );
    }
    let questions = models.into_iter().flat_map(|(model, name)| {
        let targets = match policy.routes.configured(model) {
            [] => vec![Target::EMBEDDED],
            targets => targets.to_vec(),
        };
        let targets = targets.into_iter().enumerate();
        targets.map(move |(i, target)| Question {
            model,
            name,
            position: i + 1,
            target,
        })
    });
    Ok(questions.collect())
}

impl Question<'_> {
    fn is_of_images(&self) -> bool {
        self.model.family == Family::Images
    }

    /// True if it needs the embedded engine for `images`, or for text.
    fn needs_engine(&self, images: bool) -> bool {
        matches!(self.target.backend, Backend::Embedded) && self.is_of_images() == images
    }

    /// The name of the model at the target. `None` if only a client knows it.
    fn model_there(&self) -> Option<&str> {
        let is_pattern = self.name == self.model.id && self.model.prefix().is_some();
        let own = (!is_pattern).then_some(self.name);
        self.target.model.as_deref().or(own)
    }

    /// Asks, and returns the line to print, and if the target has answered; `None` if it was not
    /// asked.
    async fn report(&self, engines: &Result<Engines, String>) -> (String, Option<bool>) {
        let place = format!("{}: {}.", self.name, self.position);
        let named = |name: &str, server: &UpstreamTarget| {
            format!("{place} '{name}' at upstream {}", server.config.name)
        };
        let place = match (&self.target.backend, self.model_there()) {
            (Backend::Embedded, _) => format!("{place} the embedded engine"),
            (Backend::Upstream(server), Some(name)) => named(name, server),
            (Backend::Upstream(server), None) => {
                let server = &server.config.name;
                let why = "not asked, because clients name its model: name one with --model";
                return (format!("{place} upstream {server}: {why}"), None);
            }
        };
        if self.is_of_images() && !self.model.is_served_on(Protocol::ImagesGenerations) {
            return (format!("{place}: not asked, because it only edits"), None);
        }
        let started = Instant::now();
        let answered = timeout(TIMEOUT, self.ask(engines)).await;
        let answered = answered.unwrap_or_else(|_| Err("no answer in time".to_owned()));
        let took = started.elapsed().as_millis();
        match answered {
            Ok(()) => (format!("{place}: ok, {took} ms"), Some(true)),
            Err(why) => (
                format!("{place}: failed after {took} ms: {why}"),
                Some(false),
            ),
        }
    }

    async fn ask(&self, engines: &Result<Engines, String>) -> Result<(), String> {
        let name = self.model_there().unwrap_or(self.name);
        match &self.target.backend {
            Backend::Upstream(server) => {
                let asked = ask_upstream(server, name).await;
                asked.map_err(|mut why| {
                    server.upstream.redact(&mut why);
                    why
                })
            }
            Backend::Embedded if self.is_of_images() => {
                ask_image_engine(engines.as_ref()?, name).await
            }
            Backend::Embedded => ask_text_engine(engines.as_ref()?, name).await,
        }
    }
}

async fn ask_text_engine(engines: &Engines, name: &str) -> Result<(), String> {
    let engine = engines.text.as_ref().ok_or(NO_ENGINE)?;
    let started = engine.start(text_request(name)).await.map_err(in_words)?;
    let ended = fold(started.events, |event| ending(&event)).await;
    ended.map(drop).map_err(in_words)
}

async fn ask_image_engine(engines: &Engines, name: &str) -> Result<(), String> {
    let engine = engines.images.as_ref().ok_or(NO_ENGINE)?;
    let request = ImageRequest {
        model: name.to_owned(),
        prompt: PICTURE.to_owned(),
        count: 1,
        size: Size::Exact(Pixels::new(64, 64)),
        quality: Some(Quality::Low),
        background: None,
        format: ImageFormat::Png,
        compression: None,
        previews: 0,
        seed: None,
        edit: None,
    };
    let started = engine.start(request).await.map_err(in_words)?;
    let is_end =
        |event: ImageEvent| matches!(event, ImageEvent::Finished { .. }).then(End::default);
    let ended = fold(started.events, is_end).await;
    ended.map(drop).map_err(in_words)
}

/// Asks an upstream in its own protocol, and reads its complete reply.
async fn ask_upstream(server: &UpstreamTarget, name: &str) -> Result<(), String> {
    let Some((_, protocol)) = server.text_protocol() else {
        let body = Bytes::from(json!({"model": name, "prompt": PICTURE}).to_string());
        let incoming = send(server, "/images/generations", body).await?;
        return match ImageReply::read(incoming, &Reported::default())
            .await
            .map_err(in_words)?
        {
            ImageReply::Whole(..) => Ok(()),
            ImageReply::StreamingReply(reply) => reply.collect().await.map(drop).map_err(in_words),
        };
    };
    let request = encode::request(
        protocol,
        &text_request(name),
        &server.settings(name, false, false),
    );
    let whole = Bytes::from(request.map_err(in_words)?.body);
    let draft = Draft {
        protocol,
        model: name,
        is_relayed: false,
    };
    let (body, _) = outgoing::adapted(server, draft, &Splice::new(&whole), &whole);
    let incoming = send(server, outgoing::path(protocol), body).await?;
    let answer = Answer::read(incoming, MAX_REPLY).await.map_err(in_words)?;
    let events = read_stream(answer, protocol, Arc::default()).await;
    let ended = fold(events.map_err(in_words)?, |event| ending(&event)).await;
    ended.map(drop).map_err(in_words)
}

/// Sends a request, and returns the successful response.
async fn send(
    server: &UpstreamTarget,
    path: &'static str,
    body: impl Into<Payload>,
) -> Result<Incoming, String> {
    let no_key = Arc::from("");
    let outgoing: Outgoing = outgoing::json(&no_key, path, HeaderMap::new(), body, false);
    let deadline = Instant::now() + TIMEOUT;
    let effort = Effort {
        may_retry: false,
        has_alternative: false,
    };
    let sent = server.send_to_upstream(&outgoing, deadline, effort);
    let incoming = sent.await.map_err(in_words)?;
    let status = incoming.status;
    if status.is_success() {
        return Ok(incoming);
    }
    let body = incoming.body.collect(MAX_REPLY).await.unwrap_or_default();
    Err(vendor::message(&body).map_or_else(
        || format!("status {status}"),
        |message| format!("status {status}: {message}"),
    ))
}

fn text_request(model: &str) -> TextRequest {
    TextRequest {
        model: model.to_owned(),
        turns: vec![Turn::User(vec![UserPart::Text(
            "Reply with OK.".to_owned(),
        )])],
        max_output_tokens: Some(16),
        ..TextRequest::default()
    }
}

fn in_words(error: engine::EngineError) -> String {
    error.to_string()
}

/// The time for one target.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The number of targets that are asked at once.
const AT_ONCE: usize = 4;
const PICTURE: &str = "A red dot.";
const NO_ENGINE: &str = "this build has no such engine";

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::{Stop, TextEvent};
    use gateway::testing::Engine;

    use super::*;

    const MODEL: &str = "[[models]]\nid = \"m\"\nfamily = \"text\"\nprotocols = [\"chat\"]\n";

    /// Asks the model of [`MODEL`], which this engine serves, and returns the line about it.
    async fn asked(engine: Engine) -> (String, Option<bool>) {
        let config = Config::parse(MODEL).unwrap();
        let policy = Policy::read(&config, false, upstream::Network::default());
        let (policy, _) = policy.unwrap();
        let questions = questions(&policy, &[]).unwrap();
        let engines = Ok(Engines {
            text: Some(Arc::new(engine)),
            images: None,
        });
        questions[0].report(&engines).await
    }

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_answers_is_ok() {
        let finished = TextEvent::Finished {
            stop: Stop::MaxTokens,
            usage: None,
        };
        let engine = Engine {
            text: vec![TextEvent::Text("OK".to_owned()), finished],
            ..Engine::default()
        };
        assert_eq!(
            asked(engine).await,
            ("m: 1. the embedded engine: ok, 0 ms".to_owned(), Some(true))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_target_has_30_seconds() {
        let (line, answered) = asked(Engine::default()).await;
        assert_eq!(answered, Some(false), "{line}");
        let (_, took) = line.split_once(": failed after ").unwrap();
        let (took, why) = took.split_once(' ').unwrap();
        assert_eq!(why, "ms: no answer in time");
        assert!((30_000..30_100).contains(&took.parse().unwrap()), "{took}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_breaks_off_is_a_failure() {
        let engine = Engine {
            text: vec![TextEvent::Text("O".to_owned())],
            ends: true,
            ..Engine::default()
        };
        let (line, answered) = asked(engine).await;
        assert_eq!(answered, Some(false), "{line}");
        assert!(
            line.ends_with("stream ended without a terminal event"),
            "{line}"
        );
    }
}
