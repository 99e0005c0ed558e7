//! The configuration for `--upstream`: one model server, to which every name of a model passes
//! through.

use crate::error::ConfigError;
use crate::file::Config;

/// Returns the configuration of a gateway that serves every model of the server at `base_url`, on
/// all endpoints that can be translated to its protocol. Its API key is in the environment variable
/// `api_key_env`, if it has one.
///
/// # Errors
/// When `protocol` is unknown.
pub fn config(
    base_url: &str,
    protocol: &str,
    api_key_env: Option<&str>,
) -> Result<Config, ConfigError> {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let api_key = api_key_env.map(|name| format!("api_key = {{ env = {} }}", quoted(name)));
    let (family, endpoints) = match protocol {
        "images" => ("images", r#"["images_generations", "images_edits"]"#),
        _ => ("text", r#"["responses", "chat", "messages"]"#),
    };
    Config::parse(&format!(
        r#"
        [[upstreams]]
        name = "upstream"
        base_url = {}
        protocol = {}
        {}
        [[models]]
        id = "*"
        family = "{family}"
        protocols = {endpoints}
        string_input = true
        targets = [{{ upstream = "upstream" }}]
        "#,
        quoted(base_url),
        quoted(protocol),
        api_key.unwrap_or_default(),
    ))
}

/// The protocols of upstreams, as [`config`] accepts them.
pub const PROTOCOLS: [&str; 4] = ["responses", "chat", "messages", "images"];
