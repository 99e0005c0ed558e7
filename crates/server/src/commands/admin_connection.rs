//! The connection of a command to a running gateway.

use std::path::PathBuf;

use clap::Args;
use config::ConfigError;
use http::Method;
use policy::keys::{self, ADMIN_VARIABLE};
use serde_json::Value;
use url::Url;

use super::admin_client::{AdminClient, TlsFiles};

// A doc comment here would replace the help of the commands.
#[derive(Debug, Args)]
pub(super) struct Gateway {
    /// The admin address of the gateway: with https, or on this machine. Its key is taken from the
    /// environment variable `SLUICEGATE_ADMIN_KEY`.
    #[arg(long, value_name = "URL", value_parser = super::url, default_value = "http://127.0.0.1:9090")]
    admin: Url,
    /// The PEM file with the CA of that address, if browsers do not trust it.
    #[arg(long, value_name = "FILE")]
    admin_ca: Option<PathBuf>,
    /// The PEM file with a client certificate and its key, if that address wants one.
    #[arg(long, value_name = "FILE")]
    admin_certificate: Option<PathBuf>,
    /// Print the answer of the admin API, as JSON.
    #[arg(long)]
    json: bool,
}

impl Gateway {
    /// Sends a request, and prints its answer as JSON or in the form for people.
    pub(super) fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        show: impl FnOnce(&Value) -> String,
    ) -> Result<(), ConfigError> {
        let key = keys::admin_key_of_environment()?.ok_or_else(|| {
            let problem = "is not set, but must be the admin key of the gateway; one that is started without \
                           a configuration file prints it";
            ConfigError::one(format!("{ADMIN_VARIABLE}: {problem}"))
        })?;
        let files = TlsFiles {
            ca: self.admin_ca.as_deref(),
            certificate: self.admin_certificate.as_deref(),
        };
        let client = AdminClient::new(&self.admin, key, files)?;
        super::block_on(async {
            let answer = client.call(method, path, body).await?;
            match self.json {
                true => println!("{answer:#}"),
                false => print!("{}", show(&answer)),
            }
            Ok(())
        })
    }
}
