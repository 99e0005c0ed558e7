//! The address of a database, and the TLS of the connections to it.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// The address of a PostgreSQL database:
/// `postgres://[user[:password]@]host[:port][,host[:port]…][/database][?setting=value&…]`.
///
/// The settings are the `tokio_postgres` settings, and these two:
///
/// | setting | meaning |
/// |---|---|
/// | `sslmode=disable` | no TLS; the default for sockets of this machine |
/// | `sslmode=prefer` | TLS if the server offers it, with any certificate; the default for loopback hosts |
/// | `sslmode=require`, `verify-full` | TLS, with a certificate that is valid for the host; the default for all others |
/// | `sslrootcert=PATH` | the PEM file with the CAs that are trusted, instead of the public ones (`system`) |
///
/// `Display` and `Debug` show the hosts and the database, and neither the user nor the password.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresAddress {
    pub(super) config: Config,
    pub(super) trust: Trust,
}

/// The certificates of servers that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Any certificate, so TLS protects only against passive listeners.
    Any,
    /// Certificates of the public CAs.
    Public,
    /// Certificates of the CAs in a PEM file.
    File(PathBuf),
}

/// The reason why a text is not a [`PostgresAddress`]. It never repeats a part of the text that may
/// belong to the password.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PostgresAddressError {
    /// It has another scheme.
    #[error("has another scheme: expected 'postgres://' or 'postgresql://'")]
    Scheme,
    /// The password or a setting has a character that has to be encoded.
    #[error(
        "has '@' elsewhere than before the host, or '/' or '?' before it: expected '%40', '%2F' and '%3F' within the \
         user, the password and settings"
    )]
    Unencoded,
    /// There is no host.
    #[error("names no host: expected 'postgres://user@host/database'")]
    NoHost,
    /// The value of `sslmode` is unknown.
    #[error(
        "has an unknown sslmode: expected 'disable', 'prefer', 'require' or 'verify-full'; the last two are the same"
    )]
    SslMode,
    /// Something else is not of its form.
    #[error(
        "is not of the form 'postgres://user:password@host:port/database?setting=value': expected a number as port, \
         and as settings only sslmode, sslrootcert and the ones of tokio-postgres, such as connect_timeout"
    )]
    Form,
}

impl FromStr for PostgresAddress {
    type Err = PostgresAddressError;

    fn from_str(text: &str) -> Result<Self, PostgresAddressError> {
        let rest = ["postgres://", "postgresql://"]
            .iter()
            .find_map(|scheme| text.strip_prefix(scheme))
            .ok_or(PostgresAddressError::Scheme)?;
        // Otherwise a part of the password would be taken for a host, and be shown.
        let (servers, others) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if servers.matches('@').count() > 1 || others.contains('@') {
            return Err(PostgresAddressError::Unencoded);
        }
        let tls = TlsSettings::take(rest)?;
        let mut config: Config = format!("postgres://{}", tls.rest)
            .parse()
            .map_err(|_| PostgresAddressError::Form)?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(PostgresAddressError::NoHost);
        }
        let mode = tls.mode.unwrap_or_else(|| default_mode(&config));
        let trust = match (mode, tls.roots) {
            (SslMode::Require, Some(file)) if file != "system" => Trust::File(file.into()),
            (SslMode::Require, _) => Trust::Public,
            _ => Trust::Any,
        };
        // PostgreSQL has no TLS on the sockets of its own machine.
        let is_socket = config.get_hosts().iter().all(is_socket) && !config.get_hosts().is_empty();
        config.ssl_mode(if is_socket { SslMode::Disable } else { mode });
        Ok(Self { config, trust })
    }
}

/// The settings of TLS, which `tokio_postgres` does not know, or not all values of them.
struct TlsSettings {
    mode: Option<SslMode>,
    roots: Option<String>,
    /// The address without them and without the scheme.
    rest: String,
}

impl TlsSettings {
    fn take(text: &str) -> Result<Self, PostgresAddressError> {
        let (base, settings) = text.split_once('?').unwrap_or((text, ""));
        let (mut mode, mut roots, mut others) = (None, None, Vec::new());
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some(("sslmode", value)) => mode = Some(read_mode(value)?),
                Some(("sslrootcert", value)) => {
                    let file = percent_decode_str(value).decode_utf8();
                    roots = Some(file.map_err(|_| PostgresAddressError::Form)?.into_owned());
                }
                _ => others.push(setting),
            }
        }
        let rest = match others.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", others.join("&")),
        };
        Ok(Self { mode, roots, rest })
    }
}

fn read_mode(value: &str) -> Result<SslMode, PostgresAddressError> {
    match value {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-full" => Ok(SslMode::Require),
        _ => Err(PostgresAddressError::SslMode),
    }
}

/// Returns the mode of an address that names none: data that leaves the machine is encrypted, and
/// the server has to prove who it is.
fn default_mode(config: &Config) -> SslMode {
    let is_loopback = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost"
                || name
                    .parse()
                    .is_ok_and(|address: IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    let addresses = config.get_hostaddrs();
    let is_local = match addresses.is_empty() {
        true => config.get_hosts().iter().all(is_loopback),
        false => addresses.iter().all(IpAddr::is_loopback),
    };
    if is_local {
        SslMode::Prefer
    } else {
        SslMode::Require
    }
}

fn is_socket(host: &Host) -> bool {
    match host {
        Host::Tcp(_) => false,
        #[cfg(unix)]
        Host::Unix(_) => true,
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.config.get_hosts().iter().map(|host| match host {
            Host::Tcp(name) if name.contains(':') => format!("[{name}]"),
            Host::Tcp(name) => name.clone(),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        });
        let mut hosts: Vec<_> = names.collect();
        if hosts.is_empty() {
            hosts.extend(self.config.get_hostaddrs().iter().map(IpAddr::to_string));
        }
        let ports = self.config.get_ports();
        for (at, host) in hosts.iter_mut().enumerate() {
            match ports.get(at).or(ports.first()) {
                None | Some(5432) => {}
                Some(port) => *host += &format!(":{port}"),
            }
        }
        let database = self.config.get_dbname().unwrap_or_default();
        write!(f, "postgres://{}/{database}", hosts.join(","))
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> PostgresAddress {
        text.parse().unwrap()
    }

    #[test]
    fn the_user_and_the_password_are_not_shown() {
        for (text, shown) in [
            (
                "postgres://gate:s%40cret@db.example/usage",
                "postgres://db.example/usage",
            ),
            (
                "postgresql://gate:a%2Fb%3Fc@10.0.0.5:6000/usage?application_name=gate",
                "postgres://10.0.0.5:6000/usage",
            ),
            ("postgres://a,b:7/", "postgres://a,b:7/"),
            ("postgres://[::1]:7/a", "postgres://[::1]:7/a"),
            (
                "postgres://%2Frun%2Fpostgresql/usage",
                "postgres:///run/postgresql/usage",
            ),
            (
                "postgres:///usage?host=/run/postgresql",
                "postgres:///run/postgresql/usage",
            ),
        ] {
            let address = read(text);
            assert_eq!(address.to_string(), shown);
            assert_eq!(format!("{address:?}"), shown);
        }
        let address = read("postgres://gate:a%2Fb%3Fc@10.0.0.5/usage?sslmode=disable");
        assert_eq!(address.config.get_password(), Some(b"a/b?c".as_slice()));
    }

    #[test]
    fn remote_connections_verify_certificates_by_default() {
        use SslMode::{Disable, Prefer, Require};
        use Trust::{Any, File, Public};
        for (text, mode, trust) in [
            ("postgres://db.example/usage", Require, Public),
            ("postgres://localhost,db.example/usage", Require, Public),
            ("postgres://db.example/usage?sslmode=prefer", Prefer, Any),
            ("postgres://db.example/usage?sslmode=disable", Disable, Any),
            (
                "postgres://db.example/usage?connect_timeout=3&sslmode=verify-full&sslrootcert=/etc/a%20b.pem",
                Require,
                File("/etc/a b.pem".into()),
            ),
            (
                "postgres://127.0.0.1/usage?sslmode=require&sslrootcert=system",
                Require,
                Public,
            ),
            ("postgres://localhost/usage", Prefer, Any),
            ("postgres://[::1]/usage", Prefer, Any),
            (
                "postgres://localhost/usage?hostaddr=10.0.0.5",
                Require,
                Public,
            ),
            ("postgres://%2Frun%2Fpostgresql/usage", Disable, Any),
            (
                "postgres://%2Frun%2Fpostgresql/usage?sslmode=require",
                Disable,
                Public,
            ),
        ] {
            let address = read(text);
            let found = (address.config.get_ssl_mode(), address.trust);
            assert_eq!(found, (mode, trust), "{text}");
        }
    }

    #[test]
    fn parse_errors_do_not_repeat_the_address() {
        use PostgresAddressError::{Form, NoHost, Scheme, SslMode, Unencoded};
        for (text, error) in [
            ("mysql://user:secret@host/db", Scheme),
            ("postgres:user:secret@host/db", Scheme),
            ("postgres://user:secr@et@host/db", Unencoded),
            ("postgres://user:secr@et/x@host/db", Unencoded),
            ("postgres://user:secr/et@host/db", Unencoded),
            ("postgres://user:secr?et@host/db", Unencoded),
            ("postgres://host/db?password=secr@et", Unencoded),
            ("postgres://user:secret@/db", NoHost),
            ("postgres://user:secret/db", Form),
            ("postgres://user:p@host/db?secret=1", Form),
            ("postgres://user:p@host/db?sslmode=secret", SslMode),
        ] {
            let found = text.parse::<PostgresAddress>().unwrap_err();
            assert_eq!(found, error, "{text}");
            assert!(!found.to_string().contains("secr"), "{found}");
        }
    }
}
