//! `[cors]`: the web pages that may call the gateway.

use schemars::JsonSchema;
use serde::Deserialize;
use url::Url;

wire::read_objects!(Cors);

/// The web pages whose scripts may call the gateway (<https://fetch.spec.whatwg.org/#http-cors-protocol>).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct Cors {
    /// The origins of these pages, as browsers send them in `Origin`. Default: none.
    pub origins: Vec<String>,
}

impl Cors {
    pub(crate) fn problems(&self) -> Vec<String> {
        let checked = self.origins.iter().enumerate();
        checked
            .filter_map(|(index, origin)| {
                let problem = problem(origin)?;
                Some(format!(
                    "cors.origins[{index}]: is '{origin}', but {problem}"
                ))
            })
            .collect()
    }
}

/// Returns the problem of an origin, if it has one. Origins are compared as text: one that is not in
/// the form of browsers would never match.
fn problem(origin: &str) -> Option<String> {
    if origin.contains('*') {
        return Some(
            "must be one origin, without '*': clients have keys, and pages that nobody has checked \
             could use the keys of their visitors"
                .to_owned(),
        );
    }
    if origin == "null" {
        return Some(
            "must name a page: browsers send 'null' for every sandboxed page and local file"
                .to_owned(),
        );
    }
    let expected = "must be a scheme and a host, and a port unless it is the scheme's own, such as \
                    \"https://app.example\"";
    let Some(url) = Url::parse(origin).ok().filter(Url::has_host) else {
        return Some(expected.to_owned());
    };
    // The origin of another scheme than http and https is opaque for the crate `url`, but not for the
    // browsers of desktop applications, such as `tauri://localhost`.
    let port = url
        .port()
        .map(|port| format!(":{port}"))
        .unwrap_or_default();
    let canonical = format!(
        "{}://{}{port}",
        url.scheme(),
        url.host_str().unwrap_or_default()
    );
    (canonical != origin).then(|| format!("{expected}; is it \"{canonical}\"?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(origins: &[&str]) -> Vec<String> {
        let origins = origins.iter().map(|&origin| origin.to_owned()).collect();
        Cors { origins }.problems()
    }

    #[test]
    fn origins_have_the_form_that_browsers_send() {
        let right = [
            "https://app.example",
            "http://localhost:3000",
            "https://xn--bcher-kva.example:8443",
            "http://[::1]:5173",
            "tauri://localhost",
        ];
        assert_eq!(problems(&right), [""; 0]);
        for (wrong, advice) in [
            ("https://app.example/", "; is it \"https://app.example\"?"),
            ("https://App.example", "; is it \"https://app.example\"?"),
            (
                "https://app.example:443",
                "; is it \"https://app.example\"?",
            ),
            (
                "https://app.example/chat?x",
                "; is it \"https://app.example\"?",
            ),
            ("https://me@app.example", "; is it \"https://app.example\"?"),
            (
                "https://bücher.example",
                "; is it \"https://xn--bcher-kva.example\"?",
            ),
            ("app.example", "such as \"https://app.example\""),
            ("", "such as \"https://app.example\""),
        ] {
            let found = problems(&["https://right.example", wrong]);
            let beginning =
                format!("cors.origins[1]: is '{wrong}', but must be a scheme and a host");
            assert_eq!(found.len(), 1, "{wrong}");
            assert!(found[0].starts_with(&beginning), "{found:?}");
            assert!(found[0].ends_with(advice), "{found:?}");
        }
    }

    #[test]
    fn origins_of_unknown_pages_are_refused_with_the_reason() {
        let found = problems(&["*", "https://*.example", "null"]);
        for wildcard in &found[..2] {
            assert!(
                wildcard.ends_with("could use the keys of their visitors"),
                "{wildcard}"
            );
        }
        assert!(found[2].contains("sandboxed"), "{found:?}");
    }
}
