//! `sluicegate keys`: makes keys for a configuration, and manages the stored keys of a running
//! gateway.

use auth::Scope;
use clap::{Args, Subcommand};
use config::ConfigError;
use http::Method;
use policy::keys;
use serde_json::{Map, Value, json};

use super::admin_connection::Gateway;
use super::table::{cell, render};

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Generate a key. Prints it once, with its entry for the configuration.
    New {
        /// The name of the key.
        #[arg(long)]
        name: String,
        /// The scopes of the key: text, messages, images.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<Scope>,
        /// The expiry: a date such as 2027-01-31, a time, or a span from now such as 90d.
        #[arg(long)]
        expires: Option<String>,
        /// The models that the key may use, such as 'model-5.*'. Default: all.
        #[arg(long, value_delimiter = ',')]
        models: Vec<String>,
    },
    /// Create a key in the store of a running gateway. Prints it once.
    Create {
        #[command(flatten)]
        gateway: Gateway,
        /// The name of the key.
        #[arg(long)]
        name: String,
        /// The scopes of the key: text, messages, images.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<String>,
        #[command(flatten)]
        properties: Properties,
    },
    /// List the keys in the store of a running gateway.
    List {
        #[command(flatten)]
        gateway: Gateway,
        /// List revoked keys, too.
        #[arg(long)]
        revoked: bool,
    },
    /// Show a key in the store of a running gateway.
    Show {
        #[command(flatten)]
        gateway: Gateway,
        /// The id of the key.
        id: String,
    },
    /// Change a key in the store of a running gateway. The rest stays as it is.
    Change {
        #[command(flatten)]
        gateway: Gateway,
        /// The id of the key.
        id: String,
        /// The new name.
        #[arg(long)]
        name: Option<String>,
        /// The new scopes: text, messages, images.
        #[arg(long, value_delimiter = ',')]
        scopes: Vec<String>,
        #[command(flatten)]
        properties: Properties,
        /// Clear these properties.
        #[arg(long, value_delimiter = ',', value_parser = ["models", "expires", "limits"])]
        clear: Vec<String>,
    },
    /// Replace a key in the store of a running gateway by a new one. Prints it once.
    Rotate {
        #[command(flatten)]
        gateway: Gateway,
        /// The id of the key.
        id: String,
        /// The time for which the old key is still accepted, such as 7d.
        #[arg(long, value_name = "SPAN", default_value = "24h")]
        overlap: String,
    },
    /// Revoke a key in the store of a running gateway, for good.
    Revoke {
        #[command(flatten)]
        gateway: Gateway,
        /// The id of the key.
        id: String,
        /// End the running streams of the key.
        #[arg(long)]
        end_streams: bool,
    },
}

// The optional properties of a key. A doc comment here would replace the help of the commands.
#[derive(Debug, Args)]
pub(super) struct Properties {
    /// The models that the key may use, such as 'model-5.*'.
    #[arg(long, value_delimiter = ',')]
    models: Vec<String>,
    /// The expiry: a date such as 2027-01-31, a time, or a span from now such as 90d.
    #[arg(long)]
    expires: Option<String>,
    /// The most requests at the same time. Limits replace all former ones of the key.
    #[arg(long, value_name = "NUMBER")]
    concurrency: Option<u64>,
    /// The most requests in a minute.
    #[arg(long, value_name = "NUMBER")]
    requests_per_minute: Option<u64>,
    /// The most tokens in a minute.
    #[arg(long, value_name = "NUMBER")]
    tokens_per_minute: Option<u64>,
    /// A budget: amount, currency, window and time zone, such as '50.00 USD month Europe/Berlin'.
    #[arg(long)]
    budget: Option<String>,
}

impl KeysCommand {
    pub(super) fn run(self) -> Result<(), ConfigError> {
        match self {
            Self::New {
                name,
                scopes,
                expires,
                models,
            } => {
                let made = keys::render_new(&name, &scopes, expires.as_deref(), &models)?;
                print!("{made}");
                Ok(())
            }
            Self::Create {
                gateway,
                name,
                scopes,
                properties,
            } => {
                let mut body = properties.members()?;
                body.insert("name".to_owned(), name.into());
                body.insert("scopes".to_owned(), scopes.into());
                gateway.call(Method::POST, KEYS, Some(&body.into()), created)
            }
            Self::List { gateway, revoked } => {
                let path = format!("{KEYS}?revoked={revoked}");
                gateway.call(Method::GET, &path, None, list)
            }
            Self::Show { gateway, id } => gateway.call(Method::GET, &path(&id), None, one),
            Self::Change {
                gateway,
                id,
                name,
                scopes,
                properties,
                clear,
            } => {
                let mut body = properties.members()?;
                body.extend(name.map(|name| ("name".to_owned(), name.into())));
                if !scopes.is_empty() {
                    body.insert("scopes".to_owned(), scopes.into());
                }
                body.extend(clear.into_iter().map(|name| (name, Value::Null)));
                gateway.call(Method::PATCH, &path(&id), Some(&body.into()), one)
            }
            Self::Rotate {
                gateway,
                id,
                overlap,
            } => {
                let path = format!("{}/rotate", path(&id));
                let body = json!({ "overlap": overlap });
                gateway.call(Method::POST, &path, Some(&body), created)
            }
            Self::Revoke {
                gateway,
                id,
                end_streams,
            } => {
                let streams = if end_streams { "end" } else { "finish" };
                let path = format!("{}?streams={streams}", path(&id));
                gateway.call(Method::DELETE, &path, None, one)
            }
        }
    }
}

impl Properties {
    /// Returns the properties that are given, as members of a body.
    fn members(self) -> Result<Map<String, Value>, ConfigError> {
        let mut members = Map::new();
        if !self.models.is_empty() {
            members.insert("models".to_owned(), self.models.into());
        }
        members.extend(
            self.expires
                .map(|expires| ("expires".to_owned(), expires.into())),
        );
        let rates = [
            ("concurrency", self.concurrency),
            ("requests_per_minute", self.requests_per_minute),
            ("tokens_per_minute", self.tokens_per_minute),
        ];
        let rates = rates
            .into_iter()
            .filter_map(|(name, cap)| Some((name.to_owned(), cap?.into())));
        let mut limits: Map<String, Value> = rates.collect();
        if let Some(text) = self.budget {
            limits.insert("budget".to_owned(), budget(&text)?);
        }
        if !limits.is_empty() {
            members.insert("limits".to_owned(), limits.into());
        }
        Ok(members)
    }
}

/// Reads a budget such as `50.00 USD month Europe/Berlin`. The gateway checks its parts.
fn budget(text: &str) -> Result<Value, ConfigError> {
    let parts: Vec<&str> = text.split_whitespace().collect();
    match *parts {
        [amount, currency, window] => {
            Ok(json!({ "amount": amount, "currency": currency, "window": window }))
        }
        [amount, currency, window, zone] => {
            Ok(json!({ "amount": amount, "currency": currency, "window": window, "zone": zone }))
        }
        _ => Err(ConfigError::one(format!(
            "--budget: is '{text}', but must be an amount, a currency, a window and a time zone, such as '50.00 USD month Europe/Berlin'"
        ))),
    }
}

/// Returns the path of a key. An id of this form needs no escapes; another is refused.
fn path(id: &str) -> String {
    let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
    format!("{KEYS}/{id}")
}

fn created(key: &Value) -> String {
    format!(
        "{}\n\nThat was the key; it is not shown again. It is stored as:\n\n{}",
        cell(&key["key"]),
        one(key)
    )
}

fn one(key: &Value) -> String {
    table(std::slice::from_ref(key))
}

fn list(answer: &Value) -> String {
    table(answer["keys"].as_array().map_or(&[], Vec::as_slice))
}

fn table(keys: &[Value]) -> String {
    let rows: Vec<_> = keys
        .iter()
        .map(|key| {
            let names = ["id", "name", "scopes", "models", "expires", "revoked"];
            let mut row: Vec<_> = names.iter().map(|name| cell(&key[name])).collect();
            row.push(cell(&key["limits"]));
            row
        })
        .collect();
    let head = [
        "ID", "NAME", "SCOPES", "MODELS", "EXPIRES", "REVOKED", "LIMITS",
    ];
    render(&head, &rows)
}

const KEYS: &str = "/admin/v1/keys";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_members_of_the_body() {
        let given = Properties {
            models: vec!["model-5.*".to_owned()],
            expires: Some("90d".to_owned()),
            concurrency: Some(4),
            requests_per_minute: None,
            tokens_per_minute: None,
            budget: Some("50.00 USD month Europe/Berlin".to_owned()),
        };
        assert_eq!(
            Value::from(given.members().unwrap()),
            json!({
                "models": ["model-5.*"],
                "expires": "90d",
                "limits": {
                    "concurrency": 4,
                    "budget": {"amount": "50.00", "currency": "USD", "window": "month", "zone": "Europe/Berlin"},
                },
            })
        );
        let error = budget("50 USD").unwrap_err().to_string();
        assert!(
            error.starts_with("--budget: is '50 USD', but must be "),
            "{error}"
        );
    }

    #[test]
    fn a_new_key_is_shown_above_its_entry() {
        let answer = json!({
            "key": "sg_abc", "id": "key_1", "name": "mobile", "scopes": ["text"], "models": null,
            "expires": null, "revoked": null, "limits": {"concurrency": 4},
        });
        assert_eq!(
            created(&answer),
            "sg_abc\n\nThat was the key; it is not shown again. It is stored as:\n\n\
             ID     NAME    SCOPES  MODELS  EXPIRES  REVOKED  LIMITS\n\
             key_1  mobile  text    -       -        -        {\"concurrency\":4}\n"
        );
    }
}
