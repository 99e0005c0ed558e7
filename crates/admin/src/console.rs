//! The console: its files, its sign-in, and its requests to the public API.
//!
//! Nobody reaches more than the files without a session: a cookie that is given for the admin key, or for
//! the one-time token of the link that the gateway prints.

mod files;
pub(crate) mod play;

use std::sync::Arc;

use gateway::connection::client_body::ClientBody;
use gateway::connection::state::ConnectionState;
use gateway::exchange::body::{Body, whole};
use gateway::state::GatewayState;
use http::header::{CACHE_CONTROL, SET_COOKIE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::AdminAccess;
use crate::api::failure::Failure;
use crate::api::{self, Answer};
use crate::sessions::{self, Credential, LIFETIME};

/// True if a path belongs to the console.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/" || path.starts_with("/console/") || play::is_path(path)
}

/// The console of a gateway.
#[derive(Clone, Copy)]
pub(crate) struct Console<'a> {
    pub(crate) state: &'a Arc<GatewayState>,
    pub(crate) access: &'a AdminAccess,
    pub(crate) play_keys: &'a [PlayKey],
    /// True if browsers may send the cookie of a session over TLS only.
    pub(crate) is_secure: bool,
}

impl Console<'_> {
    /// Answers a request for a path of the console.
    pub(crate) async fn answer(
        self,
        request: Request<ClientBody>,
        connection: &Arc<ConnectionState>,
    ) -> Response<Body> {
        let answered = match self.access.check_origin(request.headers()) {
            Ok(()) => self.dispatch(request, connection).await,
            Err(reason) => Err(reason.into()),
        };
        let mut response = answered.unwrap_or_else(Failure::into_response);
        let headers = response.headers_mut();
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers
            .entry(CACHE_CONTROL)
            .or_insert(HeaderValue::from_static("no-store"));
        response
    }

    async fn dispatch(
        self,
        request: Request<ClientBody>,
        connection: &Arc<ConnectionState>,
    ) -> Answer {
        match request.uri().path() {
            SESSION => self.session(request).await,
            KEYS => {
                self.access
                    .check_session(request.headers(), request.method())?;
                let keys = self.play_keys;
                api::json(&PlayKeys { keys })
            }
            path if play::is_path(path) => {
                self.access
                    .check_session(request.headers(), request.method())?;
                play::answer(self.state, request, connection).await
            }
            path => match ::console::file(path) {
                Some(file) => files::serve(file, request.method(), request.headers()),
                None => Err(Failure::no_path(path, PATHS)),
            },
        }
    }

    /// Begins, shows or ends a session.
    async fn session(self, request: Request<ClientBody>) -> Answer {
        let (head, body) = request.into_parts();
        match head.method {
            Method::POST => {
                let body = api::body::read(body, &head.headers, self.state).await?;
                let presented: SignIn = api::body::parse(&body)?;
                let session = self.access.sign_in(presented.credential()?)?;
                let lifetime = LIFETIME.as_secs();
                self.cookie(&format!("{}; Max-Age={lifetime}", session.expose()))
            }
            Method::GET | Method::HEAD => {
                let expires = self.access.session_of(&head.headers)?;
                let expires = api::values::Time::seconds(expires);
                api::json(&SessionView { expires })
            }
            Method::DELETE => {
                self.access.sign_out(&head.headers);
                self.cookie("; Max-Age=0")
            }
            _ => Err(Failure::method(
                &head.method,
                SESSION,
                "GET, HEAD, POST, DELETE",
            )),
        }
    }

    /// An empty answer that sets the cookie of the session.
    fn cookie(self, value: &str) -> Answer {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let cookie = format!(
            "{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}",
            sessions::COOKIE
        );
        let cookie =
            HeaderValue::try_from(cookie).map_err(|error| Failure::internal(error.to_string()))?;
        let mut response = Response::new(whole(Vec::new().into()));
        *response.status_mut() = StatusCode::NO_CONTENT;
        response.headers_mut().insert(SET_COOKIE, cookie);
        Ok(response)
    }
}

impl SignIn {
    fn credential(&self) -> Result<Credential<'_>, Failure> {
        match (&self.key, &self.token) {
            (Some(key), None) => Ok(Credential::Key(key)),
            (None, Some(token)) => Ok(Credential::Token(token)),
            _ => Err(Failure::body(
                "key",
                "The body must have either 'key' or 'token'.",
            )),
        }
    }
}

/// The body of a sign-in.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SignIn {
    /// The admin key.
    key: Option<String>,
    /// The one-time token of the printed link.
    token: Option<String>,
}

/// The session of a request.
#[derive(Serialize)]
struct SessionView {
    /// The end of the session.
    expires: api::values::Time,
}

/// The API keys that this gateway has made for its run.
#[derive(Serialize)]
struct PlayKeys<'a> {
    keys: &'a [PlayKey],
}

/// An API key that the console can use.
#[derive(Debug, Serialize)]
pub struct PlayKey {
    /// Its name.
    pub name: String,
    /// The key itself.
    pub key: String,
    /// The scopes of the key: `text`, `messages` or `images`.
    pub scopes: Vec<&'static str>,
}

/// The paths of the console, for a path that does not exist.
const PATHS: &str = "/, /console/session, /console/keys, /play/v1/… and the files of the console";
/// The path of the session.
const SESSION: &str = "/console/session";
/// The path of the API keys of this run.
const KEYS: &str = "/console/keys";
