//! The source of an upstream's API key.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::key_command;
use crate::units::Time;

/// The source of a secret, which is never in the configuration itself.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "Source")]
pub(crate) enum Secret {
    Env(String),
    /// A file that contains only the secret and white space.
    File(PathBuf),
    /// A command that prints the secret, and the interval at which it is run again.
    Command {
        command: Vec<String>,
        refresh: Duration,
    },
}

#[derive(Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as { env = \"NAME\" } or { file = \"path\" }, and not the key itself"
)]
struct Source {
    /// The name of a variable of the environment.
    env: Option<String>,
    /// A file that contains only the secret and white space.
    file: Option<PathBuf>,
    /// A program that prints the secret, and its arguments.
    command: Option<Vec<String>>,
    /// The interval at which the command is run again. Absent: 45 minutes.
    #[serde(default, deserialize_with = "Time::deserialize_some")]
    #[schemars(with = "Option<Time>")]
    refresh: Option<Duration>,
}

impl TryFrom<Source> for Secret {
    type Error = String;

    fn try_from(found: Source) -> Result<Self, String> {
        let refresh = found.refresh;
        if refresh.is_some() && found.command.is_none() {
            return Err("'refresh' is only allowed with 'command'".to_owned());
        }
        match (found.env, found.file, found.command) {
            (Some(name), None, None) => Ok(Self::Env(name)),
            (None, Some(path), None) => Ok(Self::File(path)),
            (None, None, Some(command)) => {
                if command.first().is_none_or(String::is_empty) {
                    return Err(NO_PROGRAM.to_owned());
                }
                let refresh = refresh.unwrap_or(REFRESH);
                if !(MIN_REFRESH..=MAX_REFRESH).contains(&refresh) {
                    return Err(format!("'refresh' is {refresh:?}; 1s to 24h is accepted"));
                }
                Ok(Self::Command { command, refresh })
            }
            _ => Err("one of 'env', 'file' and 'command' is needed".to_owned()),
        }
    }
}

impl Secret {
    /// Reads the secret. A command is run, which blocks for up to [`key_command::TIMEOUT`].
    pub(crate) fn read(&self) -> Result<String, String> {
        let found = match self {
            Self::Env(name) => std::env::var(name).map_err(|_| match is_variable(name) {
                true => format!("api_key: the environment has no variable '{name}'"),
                // It may be a key.
                false => "api_key: 'env' is not the name of a variable".to_owned(),
            }),
            Self::File(path) => std::fs::read_to_string(path)
                .map_err(|error| format!("api_key: {}: {error}", path.display())),
            Self::Command { command, .. } => key_command::output(command, key_command::TIMEOUT)
                .map_err(|problem| format!("api_key: {problem}")),
        };
        Ok(found?.trim().to_owned())
    }

    /// Returns a text that gateways with the same key have in common. Of a command, whose output
    /// changes, it is the command itself.
    pub(crate) fn shared(&self) -> Option<String> {
        match self {
            Self::Command { command, .. } => Some(command.join("\n")),
            _ => self.read().ok(),
        }
    }

    /// The value in the configuration.
    pub(crate) fn to_toml(&self) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        match self {
            Self::Env(name) => format!("{{ env = {} }}", quoted(name)),
            Self::File(path) => format!("{{ file = {} }}", quoted(&path.to_string_lossy())),
            Self::Command { command, refresh } => {
                let words: Vec<_> = command.iter().map(|word| quoted(word)).collect();
                let refresh = friendly(*refresh);
                format!(
                    "{{ command = [{}], refresh = \"{refresh}\" }}",
                    words.join(", ")
                )
            }
        }
    }

    /// Describes the source.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Env(name) => format!("key from ${name}"),
            Self::File(path) if is_world_readable(path) => {
                format!("key from {}, which is world-readable", path.display())
            }
            Self::File(path) => format!("key from {}", path.display()),
            Self::Command { command, refresh } => {
                let program = command.first().map_or("", String::as_str);
                let refresh = friendly(*refresh);
                format!("key from the command '{program}' every {refresh}")
            }
        }
    }
}

/// Writes a duration as the configuration does: `45m`.
fn friendly(duration: Duration) -> String {
    SignedDuration::try_from(duration).map_or_else(
        |_| format!("{duration:?}"),
        |duration| format!("{duration:#}"),
    )
}

/// True if every user of the machine can read the file.
pub(crate) fn is_world_readable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// True if a text can be the name of an environment variable.
fn is_variable(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(is_of_name) && !name.starts_with(|c: char| c.is_ascii_digit())
}

const NO_PROGRAM: &str =
    "'command' names no program; a list such as [\"az\", \"account\"] is accepted";
/// The default interval: access tokens of Azure and Google are valid for an hour.
const REFRESH: Duration = Duration::from_secs(45 * 60);
const MIN_REFRESH: Duration = Duration::from_secs(1);
const MAX_REFRESH: Duration = Duration::from_secs(24 * 60 * 60);
