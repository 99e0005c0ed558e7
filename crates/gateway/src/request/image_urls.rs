//! Checks and fetches the image URLs of requests, so that an engine without network access gets
//! bytes.
//!
//! Every endpoint that accepts image URLs uses this module, and this module fetches through
//! [`fetch`] alone. The URLs of requests that are relayed to an upstream are checked too, so that
//! no upstream is sent to probe a private network.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::bytes;
use engine::{ImageSource, TextRequest, Turn, UserPart};
use fetch::target::Target;
use fetch::{FetchError, Picture};
use wire::{ApiError, Path};

use crate::exchange::body::budget::Share;
use crate::exchange::refusal::Refusal;
use crate::state::GatewayState;

/// Refuses a URL that must not be fetched, with 400 for the field at `path`. Only the URL itself is
/// checked: an upstream that resolves its host name has to check the resulting addresses.
pub(crate) fn check(path: &Path<'_>, url: &str, state: &GatewayState) -> Result<(), Refusal> {
    let Err(why) = Target::parse(url) else {
        return Ok(());
    };
    let error = FetchError::from(why);
    state.metrics.fetched(error.reason());
    Err(Refusal::image_url(error, url, Some(&path.to_string())))
}

/// Applies [`check`] to every URL that `visit_all` visits, until one is refused.
pub(crate) fn check_all(
    state: &GatewayState,
    visit_all: impl FnOnce(&mut dyn FnMut(&Path<'_>, &str)),
) -> Result<(), Refusal> {
    let mut checked = Ok(());
    visit_all(&mut |path, url| {
        if checked.is_ok() {
            checked = check(path, url, state);
        }
    });
    checked
}

/// Fetches the image at a URL, for the key of this name. `param` is the field with the URL; the
/// memory of the image is added to `share`.
///
/// Returns 400 if the URL is not allowed or does not lead to an image, 429 if too many fetches are
/// running, and 503 if the memory budget is exhausted. The client does not get the cause of a
/// failed fetch, so that it cannot probe the gateway's network.
pub(crate) async fn fetch_image(
    url: &str,
    param: Option<&str>,
    key: &str,
    state: &GatewayState,
    share: &Share,
) -> Result<Picture, Refusal> {
    let _permit = state
        .fetches
        .take(key)
        .ok_or_else(ApiError::concurrency_limit)?;
    // The size is unknown before the fetch, so the maximum is reserved.
    let most = bytes(state.limits.picture);
    share.grow(most)?;
    let fetched = state.fetcher.fetch(url).await;
    share.shrink(most.saturating_sub(fetched.as_ref().map_or(0, |picture| picture.bytes.len())));
    state.metrics.fetched(
        fetched
            .as_ref()
            .err()
            .map_or("fetched", |error| error.reason()),
    );
    fetched.map_err(|error| Refusal::image_url(error, url, param))
}

/// Fetches every image URL in a conversation and replaces it with the bytes. Returns the errors of
/// [`fetch_image`], and 400 before anything is fetched if there are too many URLs.
pub(crate) async fn inline(
    request: &mut TextRequest,
    key: &str,
    state: &GatewayState,
    share: &Share,
) -> Result<(), Refusal> {
    if url_sources(request).nth(MAX_URLS).is_some() {
        return Err(Refusal::too_many_image_urls(MAX_URLS));
    }
    for source in url_sources(request) {
        let ImageSource::Url(url) = source else {
            continue;
        };
        let picture = fetch_image(url, None, key, state, share).await?;
        let media_type = picture.head.format.media_type().to_owned();
        let data = STANDARD.encode(&picture.bytes);
        share.grow(data.len() - picture.bytes.len())?;
        *source = ImageSource::Inline { media_type, data };
    }
    Ok(())
}

/// Returns the image sources of a conversation that are URLs.
fn url_sources(request: &mut TextRequest) -> impl Iterator<Item = &mut ImageSource> {
    let parts = request.turns.iter_mut().flat_map(|turn| match turn {
        Turn::User(parts) => parts.iter_mut(),
        Turn::Tool(result) => result.content.iter_mut(),
        _ => [].iter_mut(),
    });
    parts.filter_map(|part| match part {
        UserPart::Image {
            source: source @ ImageSource::Url(_),
            ..
        } => Some(source),
        _ => None,
    })
}

/// The maximum number of URLs that are fetched for one request.
const MAX_URLS: usize = 16;

#[cfg(test)]
mod tests;
