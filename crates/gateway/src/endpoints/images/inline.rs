//! Fetches the images that an upstream sends as URLs, for clients that need their bytes.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::EngineError;
use images::lenient::{Picture, collect, repaired};
use memchr::memmem;
use wire::{DataUrl, Splice};

use crate::exchange::body::budget::Share;
use crate::request::image_urls;
use crate::state::GatewayState;

/// Returns a checked plain reply with a `b64_json` in each image that has only a `url`. The memory
/// of the images is added to `share`.
///
/// # Errors
/// When an image cannot be fetched. The rules are those for the URLs of requests: an upstream
/// cannot make the gateway connect to its own network.
pub(super) async fn inline(
    reply: Bytes,
    key: &str,
    state: &GatewayState,
    share: &Share,
) -> Result<Bytes, EngineError> {
    // Few replies have one, and a search is faster than a parser.
    if memmem::find(&reply, b"\"url\"").is_none() {
        return Ok(reply);
    }
    let text = std::str::from_utf8(&reply).unwrap_or_default();
    let answer = collect(text, None).map_err(|error| EngineError::Upstream(error.to_string()))?;
    let mut splice = Splice::new(&reply);
    for (place, picture) in answer.images.iter().enumerate() {
        let Picture::Url(url) = picture else { continue };
        let base64 = base64(url, key, state, share).await?;
        let (place, value) = (place.to_string(), format!("\"{base64}\""));
        let image = ["data", place.as_str()];
        // Some servers send it empty.
        if !splice.replace(&[&image[..], &["b64_json"]].concat(), value.as_bytes()) {
            splice.add_missing(&image, &[("b64_json", &value)]);
        }
    }
    Ok(splice.to_vec().into())
}

/// Returns the base64 of the image at a URL.
async fn base64(
    url: &str,
    key: &str,
    state: &GatewayState,
    share: &Share,
) -> Result<String, EngineError> {
    let base64 = if DataUrl::is_meant(url) {
        url.to_owned()
    } else {
        let fetched = image_urls::fetch_image(url, None, key, state, share).await;
        let picture = fetched.map_err(|refusal| not_fetched(refusal.cause.as_deref()))?;
        STANDARD.encode(&picture.bytes)
    };
    let repaired = repaired(&base64).map_err(|error| not_fetched(Some(&error.to_string())))?;
    Ok(repaired.unwrap_or(base64))
}

fn not_fetched(cause: Option<&str>) -> EngineError {
    let cause = cause.unwrap_or("too many fetches, or too little memory");
    EngineError::Upstream(format!(
        "an image of the reply is a `url` that cannot be fetched: {cause}"
    ))
}
