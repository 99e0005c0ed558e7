//! Addresses of lease stores.

use std::fmt;
use std::str::FromStr;

use redis::{
    ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisConnectionInfo, TlsMode,
};

/// The address of a Valkey or Redis.
///
/// | form | meaning |
/// |---|---|
/// | `redis://[user:password@]host[:port][/database]` | one server |
/// | `redis+cluster://[user:password@]host[:port][,host[:port]…]` | a cluster, by some of its servers |
/// | `redis+sentinel://[user:password@]host[:port][,host[:port]…]/name` | the primary that sentinels name |
/// | `redis+unix:///path` | one server, by its socket |
///
/// With `rediss` instead of `redis` all connections use TLS, also to sentinels. User and password
/// are for the servers, not for the sentinels.
#[derive(Clone)]
pub struct Address {
    pub(crate) kind: Kind,
    pub(crate) servers: Vec<ConnectionInfo>,
    /// The user and password of the servers.
    pub(crate) settings: RedisConnectionInfo,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Single,
    Cluster,
    Sentinel { name: String },
}

/// The reason why a text is not an [`Address`]. It never repeats the text, which can contain a
/// password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressError {
    /// The scheme is not known. The operator is at fault and has to write one of the forms of
    /// [`Address`].
    Scheme,
    /// A host, a port, a user or the database is not of its form, or a cluster has a database. The
    /// operator is at fault and has to correct the address.
    Server,
    /// There is no name of a primary after the sentinels. The operator is at fault and has to add
    /// the name by which the sentinels know the primary.
    Name,
}

impl Address {
    fn single(server: ConnectionInfo) -> Self {
        Self {
            kind: Kind::Single,
            settings: server.redis_settings().clone(),
            servers: vec![server],
        }
    }

    pub(crate) fn tls(&self) -> Option<TlsMode> {
        match self.servers.first().map(ConnectionInfo::addr) {
            Some(ConnectionAddr::TcpTls { .. }) => Some(TlsMode::Secure),
            _ => None,
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (scheme, remainder) = text.split_once("://").ok_or(AddressError::Scheme)?;
        let (scheme, form) = scheme.split_once('+').unwrap_or((scheme, ""));
        if scheme != "redis" && scheme != "rediss" {
            return Err(AddressError::Scheme);
        }
        let one = |server: &str| {
            let server = format!("{scheme}://{server}");
            let server = server.into_connection_info();
            server.map_err(|_| AddressError::Server)
        };
        if form == "unix" && scheme == "redis" {
            let server = format!("redis+unix://{remainder}").into_connection_info();
            return server.map(Self::single).map_err(|_| AddressError::Server);
        }
        if form.is_empty() {
            return one(remainder).map(Self::single);
        }
        let (remainder, path) = remainder.split_once('/').unwrap_or((remainder, ""));
        let (login, hosts) = match remainder.rsplit_once('@') {
            Some((login, hosts)) => (format!("{login}@"), hosts),
            None => (String::new(), remainder),
        };
        let kind = match (form, path) {
            ("cluster", "") => Kind::Cluster,
            ("cluster", _) => return Err(AddressError::Server),
            ("sentinel", "") => return Err(AddressError::Name),
            ("sentinel", name) => Kind::Sentinel { name: name.into() },
            _ => return Err(AddressError::Scheme),
        };
        // The login is for the servers, not for the sentinels.
        let (of_each, port) = match kind {
            Kind::Sentinel { .. } => ("", ":26379"),
            Kind::Single | Kind::Cluster => (&*login, ""),
        };
        let servers = hosts.split(',').map(|host| match host {
            _ if host.ends_with(']') || !host.contains(':') => {
                one(&format!("{of_each}{host}{port}"))
            }
            _ => one(&format!("{of_each}{host}")),
        });
        Ok(Self {
            kind,
            servers: servers.collect::<Result<_, _>>()?,
            settings: one(&format!("{login}host"))?.redis_settings().clone(),
        })
    }
}

/// Shows the servers, and no password.
impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let servers = self.servers.iter().map(|server| server.addr().to_string());
        f.debug_struct("Address")
            .field("kind", &self.kind)
            .field("servers", &servers.collect::<Vec<_>>())
            .finish()
    }
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scheme => {
                "the scheme is not known: expected redis://, rediss://, redis+cluster://, \
                 redis+sentinel:// or redis+unix://"
            }
            Self::Server => {
                "a server is not valid: expected [user:password@]host[:port], several of them \
                 separated by commas only after redis+cluster:// and redis+sentinel://"
            }
            Self::Name => {
                "the name of the primary is missing: expected redis+sentinel://host:port/name"
            }
        })
    }
}

impl std::error::Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        match text.parse::<Address>() {
            Ok(address) => format!("{:?} {:?}", address, address.tls().is_some()),
            Err(error) => format!("{error:?}"),
        }
    }

    #[test]
    fn each_form_names_its_servers_and_never_shows_the_password() {
        for (text, expected) in [
            (
                "redis://10.0.0.5",
                r#"Address { kind: Single, servers: ["10.0.0.5:6379"] } false"#,
            ),
            (
                "rediss://user:hunter2@valkey.internal:7000/3",
                r#"Address { kind: Single, servers: ["valkey.internal:7000"] } true"#,
            ),
            (
                "redis+cluster://user:hunter2@a:7000,b,[::1]:7002",
                r#"Address { kind: Cluster, servers: ["a:7000", "b:6379", "::1:7002"] } false"#,
            ),
            (
                "rediss+sentinel://a,b:7000/main",
                r#"Address { kind: Sentinel { name: "main" }, servers: ["a:26379", "b:7000"] } true"#,
            ),
            (
                "redis+unix:///run/valkey.sock",
                r#"Address { kind: Single, servers: ["/run/valkey.sock"] } false"#,
            ),
        ] {
            assert_eq!(shown(text), expected);
        }
        let address: Address = "redis+sentinel://user:hunter2@a,b/main".parse().unwrap();
        let login = |settings: &RedisConnectionInfo| {
            let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
            text(settings.username()) + ":" + &text(settings.password())
        };
        assert_eq!(login(&address.settings), "user:hunter2");
        assert_eq!(login(address.servers[0].redis_settings()), ":");
    }

    #[test]
    fn other_texts_are_refused() {
        assert_eq!(shown("10.0.0.5:6379"), "Scheme");
        assert_eq!(shown("memcached://a"), "Scheme");
        assert_eq!(shown("redis+ring://a"), "Scheme");
        assert_eq!(shown("redis://a:x"), "Server");
        for host in ["", ",", "a,,b", "user:hunter2@a,", ":7000,b"] {
            assert_eq!(
                shown(&format!("redis+cluster://{host}")),
                "Server",
                "{host}"
            );
            let sentinels = format!("redis+sentinel://{host}/main");
            assert_eq!(shown(&sentinels), "Server", "{host}");
        }
        assert_eq!(shown("redis+cluster://a/3"), "Server");
        assert_eq!(shown("redis+sentinel://a"), "Name");
    }
}
