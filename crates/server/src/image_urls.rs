//! Pictures that a request names by address become bytes, before an engine that cannot dial sees it.
//!
//! Every endpoint that takes an address comes through here, and from here through [`fetch`] alone. What goes to an
//! upstream with its addresses in it is judged here too: nobody is sent to look around in a network that is not theirs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use engine::{ImageSource, TextRequest, Turn, UserPart};
use fetch::target::{Target, log_form};
use fetch::{FetchError, Picture};
use wire::{ApiError, ErrorKind, Path};

use crate::body::upload::Share;
use crate::endpoints::bytes;
use crate::gateway::Gateway;
use crate::refusal::Refusal;

/// Refuses an address that nobody may be sent to, as far as it says so itself: an upstream that looks its name up has
/// to see to what it finds.
///
/// # Errors
/// 400 with the field at `path`.
pub(crate) fn judge(path: &Path<'_>, url: &str, gateway: &Gateway) -> Result<(), Refusal> {
    let Err(why) = Target::parse(url) else { return Ok(()) };
    let error = FetchError::from(why);
    gateway.metrics.fetched(error.reason());
    Err(refuse(error, url, Some(&path.to_string())))
}

/// As [`judge`], for each address that `addresses` tells.
///
/// # Errors
/// As [`judge`], for the first that is refused.
pub(crate) fn judge_all(
    gateway: &Gateway,
    addresses: impl FnOnce(&mut dyn FnMut(&Path<'_>, &str)),
) -> Result<(), Refusal> {
    let mut judged = Ok(());
    addresses(&mut |path, url| {
        if judged.is_ok() {
            judged = judge(path, url, gateway);
        }
    });
    judged
}

/// The picture behind an address, for the key of that name. `param` is the field that held the address; what the
/// picture takes is added to `share`.
///
/// # Errors
/// 400 when it may not be fetched or what is there is no picture, 429 when the key fetches too many at once, 503 when
/// there is no memory for one more. What went
/// wrong on the way is not told, so that nobody can look around in our network by it.
pub(crate) async fn picture(
    url: &str,
    param: Option<&str>,
    key: &str,
    gateway: &Gateway,
    share: &Share,
) -> Result<Picture, Refusal> {
    let _place = gateway.fetches.take(key).ok_or_else(ApiError::concurrency_limit)?;
    // Nobody knows how large it is before it is there.
    let most = bytes(gateway.limits.picture);
    share.grow(most, &gateway.budget)?;
    let fetched = gateway.fetcher.fetch(url).await;
    share.shrink(most.saturating_sub(fetched.as_ref().map_or(0, |picture| picture.bytes.len())));
    gateway.metrics.fetched(fetched.as_ref().err().map_or("fetched", |error| error.reason()));
    fetched.map_err(|error| refuse(error, url, param))
}

/// Puts bytes in the place of every address in a conversation.
///
/// # Errors
/// As [`picture`], and 400 before anything is fetched when there are too many.
pub(crate) async fn inline(
    request: &mut TextRequest,
    key: &str,
    gateway: &Gateway,
    share: &Share,
) -> Result<(), Refusal> {
    if addresses(request).nth(MAX_ADDRESSES).is_some() {
        let sentence = format!("Too many image URLs: at most {MAX_ADDRESSES} are fetched for one request.");
        return Err(ApiError::new(ErrorKind::InvalidRequest, "invalid_value", sentence).into());
    }
    for source in addresses(request) {
        let ImageSource::Url(url) = source else { continue };
        let picture = picture(url, None, key, gateway, share).await?;
        let media_type = picture.head.format.media_type().to_owned();
        let data = STANDARD.encode(&picture.bytes);
        share.grow(data.len() - picture.bytes.len(), &gateway.budget)?;
        *source = ImageSource::Inline { media_type, data };
    }
    Ok(())
}

/// The pictures of a conversation that are named by address.
fn addresses(request: &mut TextRequest) -> impl Iterator<Item = &mut ImageSource> {
    let parts = request.turns.iter_mut().flat_map(|turn| match turn {
        Turn::User(parts) => parts.iter_mut(),
        Turn::Tool(result) => result.content.iter_mut(),
        _ => [].iter_mut(),
    });
    parts.filter_map(|part| match part {
        UserPart::Image { source: source @ ImageSource::Url(_), .. } => Some(source),
        _ => None,
    })
}

/// The log names host and path beside why; the query of a signed address is a credential.
fn refuse(error: FetchError, url: &str, param: Option<&str>) -> Refusal {
    let sentence = error.client_message();
    let told = match error {
        FetchError::Busy => ApiError::new(ErrorKind::Unavailable, "service_unavailable", sentence).with_retry_after(1),
        _ => ApiError::new(ErrorKind::InvalidRequest, "invalid_value", sentence),
    };
    let told = ApiError { param: param.map(str::to_owned), ..told };
    Refusal { cause: Some(format!("{error}: {}", log_form(url))), ..told.into() }
}

/// The most addresses of one request that are fetched.
const MAX_ADDRESSES: usize = 16;

#[cfg(test)]
mod tests;
