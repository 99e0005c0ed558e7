//! Conforming replies: a model server without faults, whose reply depends only on the request, as
//! the documentation of [the crate](crate) describes.

mod answer;
mod chat;
mod coding;
mod error;
mod images;
mod messages;
mod models;
mod parsed_request;
mod picture;
mod responses;
mod schema;
mod seal;

use serde_json::Value;

pub(crate) use error::Failure;

use self::answer::Answer;
use self::parsed_request::ParsedRequest;
use crate::dialect;
use crate::play::Play;
use crate::reply::nonce;
pub use crate::reply::{Event, Reply};
use crate::request::{MESSAGE, Protocol, Request};

/// Returns the conforming reply to a request as a play. A handshake switches to a WebSocket.
pub fn answer(request: &Request) -> Play {
    if request.is_handshake() {
        return Play::websocket(request);
    }
    reply(request).play(request)
}

/// Returns the conforming reply to a request.
pub(crate) fn reply(request: &Request) -> Reply {
    reply_of(&|parsed| Ok(Answer::new(parsed)), request)
}

/// A model that works for a coding agent.
#[derive(Clone, Copy)]
pub(crate) enum Coding {
    Plain,
    /// It thinks, and checks the seals of its thoughts.
    Thinking,
    /// It also refuses histories with more results of tools than this as too long.
    Window(usize),
    /// It also is overloaded once the history has as many results of tools as this.
    FailingAfter(usize),
}

/// Returns the conforming reply of a model that works for a coding agent.
pub(crate) fn coding(request: &Request, model: Coding) -> Reply {
    let generate = |parsed: &ParsedRequest| match model {
        Coding::Plain => Ok(coding::answer(parsed)),
        Coding::Thinking => coding::with_thoughts(request, parsed),
        Coding::Window(results) => coding::in_window(request, parsed, results),
        Coding::FailingAfter(results) => coding::failing_after(request, parsed, results),
    };
    reply_of(&generate, request)
}

/// The function that generates the output for a request, or refuses it.
type Model<'a> = &'a dyn Fn(&ParsedRequest) -> Result<Answer, Failure>;

fn reply_of(model: Model<'_>, request: &Request) -> Reply {
    let understood = dialect::understood(request);
    let mut reply = decide(model, &understood)
        .unwrap_or_else(|failure| Reply::Json(failure.status, failure.body(request)));
    dialect::apply(request, &mut reply);
    reply
}

/// Returns the conforming plain reply to a request, even if it requests a stream. Multipart forms
/// are not changed.
#[must_use]
pub fn plain(request: &Request) -> Reply {
    let mut request = request.clone();
    let mut body = request.json();
    if body["stream"] == true {
        body["stream"] = false.into();
        request.body = body.to_string().into();
    }
    reply(&request)
}

fn decide(model: Model<'_>, request: &Request) -> Result<Reply, Failure> {
    let route = request.route();
    let listed = route
        .rsplit_once("/models")
        .map(|(_, id)| id.strip_prefix('/'));
    match (request.method.as_str(), listed, request.protocol()) {
        ("GET" | "HEAD", Some(None), _) => Ok(models::list()),
        ("GET" | "HEAD", Some(Some(id)), _) => models::one(id),
        (method, None, None) => {
            let message = format!("Invalid URL ({method} {route})");
            Err(Failure {
                status: 404,
                code: "not_found",
                param: None,
                message,
            })
        }
        ("POST" | MESSAGE, None, Some(protocol)) => match protocol {
            Protocol::Images => images::reply(request),
            Protocol::Responses if route.ends_with("/input_tokens") => {
                responses::count(&object(request)?)
            }
            Protocol::Responses => responses::reply(request, &object(request)?, model),
            Protocol::Chat => chat::reply(request, &object(request)?, model),
            Protocol::Messages if route.ends_with("/count_tokens") => {
                messages::count(&object(request)?)
            }
            Protocol::Messages => messages::reply(request, &object(request)?, model),
        },
        _ => {
            let message = "Not allowed to use this method on this endpoint.".into();
            Err(Failure {
                status: 405,
                code: "method_not_allowed",
                param: None,
                message,
            })
        }
    }
}

/// Parses the body, which must be a JSON object.
fn object(request: &Request) -> Result<Value, Failure> {
    match request.json() {
        body @ Value::Object(_) => Ok(body),
        _ => {
            let message = "We could not parse the JSON body of your request.".into();
            Err(Failure {
                status: 400,
                code: "invalid_json",
                param: None,
                message,
            })
        }
    }
}

/// The creation time of the reply to a request, in Unix seconds.
fn created(request: &Request) -> usize {
    1_789_000_000 + request.number
}
