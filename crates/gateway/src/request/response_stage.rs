//! The stage that a response of the Responses API passes on its way to the client.

mod origin_plan;
mod store_plan;
mod stream;

use http::Response;

pub(crate) use self::origin_plan::OriginPlan;
pub(crate) use self::store_plan::StorePlan;
use self::stream::{StagedStream, StreamStage};
use crate::exchange::body::upload::Upload;
use crate::request::reply::ReplyBody;

/// The stage that the response of a request passes.
pub(crate) enum ResponseStage {
    /// The gateway stores it, or states that it continues a stored one.
    Store(StorePlan),
    /// The gateway notes which upstream stores it.
    NoteOrigin(OriginPlan),
}

impl ResponseStage {
    /// Sets the request whose response this is, with all that it refers to.
    pub(crate) fn set_request(&mut self, upload: &Upload) {
        if let Self::Store(plan) = self {
            plan.set_request(upload);
        }
    }

    /// Returns the response as the client gets it. A stored one is stored once it is complete, and the
    /// origin of one is noted as soon as its id is known.
    pub(crate) fn attach(self, response: Response<ReplyBody>) -> Response<ReplyBody> {
        response.map(|body| match body {
            ReplyBody::Buffered(body) => {
                let body = body.into_bytes();
                ReplyBody::Buffered(match self {
                    Self::Store(plan) => plan.reply(&body).into(),
                    Self::NoteOrigin(plan) => {
                        plan.reply(&body);
                        body.into()
                    }
                })
            }
            ReplyBody::Stream(stream) => {
                let stage = match self {
                    Self::Store(plan) => StreamStage::store(plan),
                    Self::NoteOrigin(plan) => StreamStage::NoteOrigin(plan),
                };
                ReplyBody::Stream(Box::new(StagedStream::new(stream, stage)))
            }
            forwarded @ ReplyBody::Forwarded(_) => forwarded,
        })
    }
}
