//! `POST /v1/images/generations` and `POST /v1/images/edits`:
//! [images](https://platform.openai.com/docs/api-reference/images).

mod dispatch;
mod encode;
mod inline;
mod read;
mod streaming;
mod unary;

use http::{Request, Response};
use policy::limit::{Pictures, Reserved, image_prompt_tokens};

use self::read::ParsedRequest;
use crate::connection::client_body::ClientBody;
use crate::exchange::refusal::Refusal;
use crate::request::reply::ReplyBody;
use crate::state::Caller;

pub(crate) async fn generate(
    caller: Caller<'_>,
    request: Request<ClientBody>,
) -> Result<Response<ReplyBody>, Refusal> {
    let parsed = read::generation(request, &caller).await?;
    answer(caller, parsed).await
}

pub(crate) async fn edit(
    caller: Caller<'_>,
    request: Request<ClientBody>,
) -> Result<Response<ReplyBody>, Refusal> {
    let is_form = read::is_form(request.headers());
    let response = async {
        let parsed = read::edit(request, &caller).await?;
        answer(caller, parsed).await
    };
    response.await.map_err(|refusal| {
        if is_form {
            with_part_name(refusal)
        } else {
            refusal
        }
    })
}

/// Renames the refused field from its JSON name to the name of the form part: `images[0].image_url`
/// was sent as `image`.
fn with_part_name(mut refusal: Refusal) -> Refusal {
    if refusal
        .error
        .param
        .as_deref()
        .is_some_and(|param| param.starts_with("images"))
    {
        refusal.error.param = Some("image".to_owned());
    }
    refusal
}

/// Answers a parsed request: looks up the model, takes a permit, tries the targets in order, and
/// streams or folds the answer.
async fn answer(
    mut caller: Caller<'_>,
    mut parsed: ParsedRequest,
) -> Result<Response<ReplyBody>, Refusal> {
    let policy = caller.policy;
    let model = policy
        .catalog
        .serves(&parsed.model, read::protocol(parsed.operation))?;
    if !caller.key.may_use(&parsed.model) {
        return Err(Refusal::model(&parsed.model));
    }
    // The servers behind a pattern may have a default model of their own.
    if model.prefix().is_none() {
        parsed
            .generation
            .model
            .get_or_insert_with(|| parsed.model.clone());
    }
    let streams = parsed.generation.streams();
    caller.record.set_model(&parsed.model, model);
    caller.record.stream = streams;
    let reserve = || reserved(&parsed);
    caller.take_permit(&parsed.model, reserve).await?;
    let targets = policy.routes.select(model, || None);
    if streams {
        streaming::answer(parsed, targets, &caller).await
    } else {
        unary::answer(parsed, targets, caller).await
    }
}

/// Returns the usage to reserve for a request: the requested pictures and their tokens.
fn reserved(parsed: &ParsedRequest) -> Reserved {
    let generation = &parsed.generation;
    let previews = generation.partial_images.unwrap_or(0);
    let references = parsed
        .inputs
        .as_ref()
        .map_or(0, |inputs| inputs.references.len());
    Reserved {
        prompt: image_prompt_tokens(generation.prompt.len(), references),
        pictures: Pictures {
            count: generation.n.and_then(|n| n.try_into().ok()).unwrap_or(1),
            size: generation.size.clone().unwrap_or_default(),
            quality: generation
                .quality
                .as_ref()
                .map(|quality| quality.as_str().to_owned())
                .unwrap_or_default(),
        },
        previews: previews.try_into().unwrap_or(0),
        ..Reserved::default()
    }
}

#[cfg(test)]
mod tests;
