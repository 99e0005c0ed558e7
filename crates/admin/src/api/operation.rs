//! An operation of the admin API: a handler, and the description by which requests are read and the
//! OpenAPI document is written.

use futures_util::future::BoxFuture;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::Failure;
use super::parameters::Parameter;
use super::{AdminRequest, Answer, body, json};
use crate::schemas::Schemas;

/// An operation of the admin API.
pub(crate) struct Operation {
    pub(crate) description: Description,
    pub(super) handler: Box<Handler>,
}

/// The description of an operation.
pub(crate) struct Description {
    pub(crate) method: &'static str,
    /// The path, with `{id}` for an id.
    pub(crate) path: &'static str,
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    /// The accepted query parameters.
    pub(crate) parameters: &'static [Parameter],
    /// The schema of request bodies, if requests have any.
    pub(crate) body: Option<AddSchema>,
    /// True if an empty request body counts as `{}`.
    pub(crate) is_body_optional: bool,
    /// The status of a success.
    pub(crate) status: StatusCode,
    /// The schemas of response bodies, by media type.
    pub(crate) replies: Vec<(&'static str, AddSchema)>,
    /// The statuses of failures, except the ones that every operation or every request body has.
    pub(crate) failures: &'static [&'static str],
}

/// Adds the schema of a type to a document, and returns a reference to it.
pub(crate) type AddSchema = fn(&mut Schemas, &str) -> Value;

type Handler = dyn for<'a> Fn(&'a AdminRequest<'a>) -> BoxFuture<'a, Answer> + Send + Sync;
type HandlerFuture<'a, T> = BoxFuture<'a, Result<T, Failure>>;

/// Describes the operation of a method and path, such as `GET /admin/v1/keys`. The methods below add
/// what differs from an operation that has no parameters and whose success has status 200.
pub(super) fn operation(
    request: &'static str,
    id: &'static str,
    summary: &'static str,
) -> Description {
    let (method, path) = request.split_once(' ').unwrap_or_default();
    Description {
        method,
        path,
        id,
        summary,
        parameters: &[],
        body: None,
        is_body_optional: false,
        status: StatusCode::OK,
        replies: Vec::new(),
        failures: &[],
    }
}

impl Description {
    pub(super) fn query(self, parameters: &'static [Parameter]) -> Self {
        Self { parameters, ..self }
    }

    pub(super) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(super) fn failures(self, failures: &'static [&'static str]) -> Self {
        Self { failures, ..self }
    }

    pub(super) fn optional_body(mut self) -> Self {
        self.is_body_optional = true;
        self
    }

    /// Completes an operation that answers with JSON.
    pub(super) fn json<T: Serialize + JsonSchema + 'static>(
        self,
        handler: for<'a> fn(&'a AdminRequest<'a>) -> HandlerFuture<'a, T>,
    ) -> Operation {
        self.complete(
            &[("application/json", Schemas::written::<T>)],
            Box::new(move |request| Box::pin(async move { json(&handler(request).await?) })),
        )
    }

    /// Completes an operation that reads JSON and answers with JSON.
    pub(super) fn json_from_body<B, T>(
        mut self,
        handler: for<'a> fn(&'a AdminRequest<'a>, B) -> HandlerFuture<'a, T>,
    ) -> Operation
    where
        B: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema + 'static,
    {
        self.body = Some(Schemas::read::<B>);
        self.complete(
            &[("application/json", Schemas::written::<T>)],
            Box::new(move |request| {
                Box::pin(async move {
                    let body = body::parse(&request.body)?;
                    json(&handler(request, body).await?)
                })
            }),
        )
    }

    /// Completes an operation that answers with a stream of one of these media types.
    pub(super) fn stream(
        self,
        replies: &[(&'static str, AddSchema)],
        handler: for<'a> fn(&'a AdminRequest<'a>) -> BoxFuture<'a, Answer>,
    ) -> Operation {
        self.complete(replies, Box::new(handler))
    }

    fn complete(
        mut self,
        replies: &[(&'static str, AddSchema)],
        handler: Box<Handler>,
    ) -> Operation {
        self.replies = replies.to_vec();
        Operation {
            description: self,
            handler,
        }
    }
}

impl Operation {
    /// Returns the id in a path of this operation, or an empty one if its path has none.
    pub(super) fn id_in<'p>(&self, path: &'p str) -> Option<&'p str> {
        let Some((before, after)) = self.description.path.split_once("{id}") else {
            return (path == self.description.path).then_some("");
        };
        let id = path.strip_prefix(before)?.strip_suffix(after)?;
        (!id.is_empty() && !id.contains('/')).then_some(id)
    }
}
