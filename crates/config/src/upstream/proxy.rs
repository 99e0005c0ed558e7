//! The proxy of an upstream, in the configuration.

use upstream::Proxy;
use url::Url;

/// Parses `proxy`: a URL, or `env` for the variables that many programs share. `base_url` decides
/// between `HTTPS_PROXY` and `HTTP_PROXY`.
pub(crate) fn parse(found: &str, base_url: &str) -> Result<Option<Proxy>, String> {
    if found != "env" {
        let url = url("proxy", found)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "proxy: a user or password is accepted in the environment only: set it to \"env\""
                    .to_owned(),
            );
        }
        return Proxy::new(&url)
            .map(Some)
            .map_err(|error| error.to_string());
    }
    let name = if base_url.starts_with("https:") {
        "HTTPS_PROXY"
    } else {
        "HTTP_PROXY"
    };
    let Some(value) = variable(name) else {
        return Ok(None);
    };
    // As for curl and Go, the scheme may be left out.
    let value = match value.contains("://") {
        true => value,
        false => format!("http://{value}"),
    };
    let proxy = Proxy::new(&url(name, &value)?).map_err(|error| format!("{name}: {error}"))?;
    let exceptions = variable("NO_PROXY").unwrap_or_default();
    Ok(Some(proxy.except(&exceptions)))
}

fn url(setting: &str, text: &str) -> Result<Url, String> {
    Url::parse(text)
        .map_err(|_| format!("{setting}: not a URL such as http://10.0.0.1:3128, and not \"env\""))
}

/// Returns a variable by its name in capital or in small letters, unless it is empty.
fn variable(name: &str) -> Option<String> {
    [name.to_owned(), name.to_ascii_lowercase()]
        .into_iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}
