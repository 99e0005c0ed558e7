//! The stores of a gateway: keys, usage and audit entries.

use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::time::Duration;

#[cfg(feature = "postgres")]
use accounting::PostgresAddress;
use auth::KeyHash;
use quota::{LostLease, UnknownPrice};
use schemars::JsonSchema;
use serde::Deserialize;

#[cfg(feature = "postgres")]
use crate::journal_folder;
use crate::key;
use crate::units::Time;
use lease::Address;

wire::read_objects!(State);

/// The settings of the stores. Without them, keys are in the configuration and usage is in the log
/// alone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(remote = "Self", default, deny_unknown_fields)]
pub struct State {
    /// The store of keys, usage and audit entries: `sqlite:` and the path of a file, or the
    /// `postgres://` address of a database. Absent: none.
    #[schemars(example = &"sqlite:/var/lib/sluicegate/accounting.db")]
    pub accounting: Option<String>,
    /// The store that lends the quotas which several gateways share, such as
    /// `redis://10.0.0.5:6379`. Absent: the quotas apply to this process alone.
    #[schemars(example = &"redis://10.0.0.5:6379")]
    pub limits: Option<String>,
    /// The first part of the keys in that store, the same for all gateways that share limits.
    pub namespace: String,
    /// The duration of leases, the same for all gateways that share limits. Default 10 s.
    #[serde(with = "Time")]
    pub lease: Duration,
    /// The end of requests whose lease is lost while they run: `finish`, the default, or `end`.
    pub lost_lease: LostLease,
    /// The folder in which usage waits for the store. Absent: beside the file of the store, or, for
    /// a database, in the folder for the state of this service or user.
    #[schemars(example = &"/var/lib/sluicegate/journal")]
    pub journal: Option<PathBuf>,
    /// The name of this process in rows of usage and in the store of limits. Absent: the name of the
    /// host; in the store of limits with the number of the process.
    #[schemars(example = &"gate-1")]
    replica: Option<String>,
    /// The interval at which changed keys are looked for. Default 3 s.
    #[serde(with = "Time")]
    pub renewal: Duration,
    /// The age from which rows of usage are deleted; their sums by hour and day remain. Absent: no
    /// row is deleted.
    #[serde(deserialize_with = "Time::deserialize_some")]
    #[schemars(with = "Option<Time>", example = &"2160h")]
    pub keep_rows: Option<Duration>,
    /// The handling of models without a price: `refuse`, `free`, or `{ default = { … } }` with a price.
    pub unknown_price: UnknownPrice,
    /// The hash of the key of the admin API. Absent: the environment variable
    /// `SLUICEGATE_ADMIN_KEY`, without which there is no admin API.
    #[schemars(example = key::HASH)]
    pub admin_key: Option<String>,
    /// The names by which the admin address is called, besides `localhost` and IP addresses.
    #[schemars(extend("examples" = [["gateway.example"]]))]
    pub admin_hosts: Vec<String>,
}

/// The place of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Store {
    /// A file of SQLite.
    Sqlite(PathBuf),
    /// A database of PostgreSQL.
    #[cfg(feature = "postgres")]
    Postgres(Box<PostgresAddress>),
}

impl Default for State {
    fn default() -> Self {
        Self {
            accounting: None,
            limits: None,
            namespace: "sg:1".to_owned(),
            lease: Duration::from_secs(10),
            lost_lease: LostLease::default(),
            journal: None,
            replica: None,
            renewal: Duration::from_secs(3),
            keep_rows: None,
            unknown_price: UnknownPrice::default(),
            admin_key: None,
            admin_hosts: Vec::new(),
        }
    }
}

impl State {
    /// Returns the name of this process in rows of usage: the configured name, or else the host
    /// name.
    pub fn replica(&self) -> String {
        self.replica.clone().unwrap_or_else(host_name)
    }

    /// Returns the name of this process in the store of limits, where gateways of one host need
    /// different names: the configured one, or the name of the host and the number of the process.
    pub fn holder(&self) -> String {
        let of_process = || format!("{}-{}", host_name(), std::process::id());
        self.replica.clone().unwrap_or_else(of_process)
    }

    /// Returns the place of the store, if there is one.
    ///
    /// # Errors
    /// Returns the problem of the setting. It never repeats an address, which may have a password.
    pub fn store(&self) -> Result<Option<Store>, String> {
        let Some(text) = &self.accounting else {
            return Ok(None);
        };
        if let Some(path) = text.strip_prefix("sqlite:").filter(|path| !path.is_empty()) {
            return Ok(Some(Store::Sqlite(path.into())));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return database(text)
                .map(Some)
                .map_err(|problem| format!("state.accounting: {problem}"));
        }
        let found = match text.contains("://") {
            true => "another address",
            false => &format!("'{text}'"),
        };
        Err(format!(
            "state.accounting: is {found}, but must be 'sqlite:' and the path of a file, such as 'sqlite:/var/lib/sluicegate/accounting.db', or the address of a database, such as 'postgres://user:password@host/database'"
        ))
    }

    /// Returns the folder of the journal of a store.
    ///
    /// # Errors
    /// Returns the problem of the setting: it has no default without a folder for state.
    pub fn journal(&self, store: &Store) -> Result<PathBuf, String> {
        if let Some(folder) = &self.journal {
            return Ok(folder.clone());
        }
        match store {
            Store::Sqlite(file) => {
                let mut folder = file.as_os_str().to_owned();
                folder.push(".journal");
                Ok(folder.into())
            }
            #[cfg(feature = "postgres")]
            Store::Postgres(address) => {
                journal_folder::of_database(&address.to_string(), |name| std::env::var_os(name))
            }
        }
    }

    /// Returns the address of the store that lends quotas, if there is one. An error never repeats
    /// the setting, which may have a password.
    pub fn limits(&self) -> Result<Option<Address>, String> {
        let read = self.limits.as_ref().map(|text| text.parse());
        read.transpose()
            .map_err(|error| format!("state.limits: {error}"))
    }

    /// Returns the hash of the key of the admin API, if it is on.
    ///
    /// # Errors
    /// If the setting is no hash of a key.
    pub fn admin_key(&self) -> Result<Option<KeyHash>, String> {
        let read = self.admin_key.as_ref().map(|text| text.parse());
        read.transpose()
            .map_err(|error| format!("state.admin_key: {error}"))
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.store().err());
        problems.extend(self.admin_key().err());
        problems.extend(self.limits().err());
        if self.lease < MIN_LEASE || self.lease > MAX_LEASE {
            problems.push("state.lease: must be 1s to 1h".to_owned());
        }
        if self.renewal.is_zero() {
            problems.push("state.renewal: must be more than 0".to_owned());
        }
        if self.keep_rows == Some(Duration::ZERO) {
            problems.push(
                "state.keep_rows: must be more than 0s; to keep every row, leave it out".to_owned(),
            );
        }
        if self.replica.as_deref() == Some("") {
            problems.push(
                "state.replica: is empty; to use the name of the host, leave it out".to_owned(),
            );
        }
        for name in self.admin_hosts.iter().filter(|name| !is_host(name)) {
            problems.push(format!(
                "state.admin_hosts: has '{name}', but must have names or addresses without a port, such as 'gateway.example'"
            ));
        }
        problems.extend(self.unused());
        problems
    }

    /// Returns the problems of settings that have no effect without a store.
    fn unused(&self) -> impl Iterator<Item = String> {
        let default = Self::default();
        let (accounting, limits) = (self.accounting.is_some(), self.limits.is_some());
        let needs = [
            (
                "journal",
                self.journal.is_some(),
                accounting,
                "state.accounting",
            ),
            (
                "keep_rows",
                self.keep_rows.is_some(),
                accounting,
                "state.accounting",
            ),
            (
                "renewal",
                self.renewal != default.renewal,
                accounting,
                "state.accounting",
            ),
            (
                "namespace",
                self.namespace != default.namespace,
                limits,
                "state.limits",
            ),
            ("lease", self.lease != default.lease, limits, "state.limits"),
            (
                "lost_lease",
                self.lost_lease != default.lost_lease,
                limits,
                "state.limits",
            ),
            (
                "replica",
                self.replica.is_some(),
                accounting || limits,
                "state.accounting or state.limits",
            ),
        ];
        let unused = needs
            .into_iter()
            .filter(|(_, is_set, is_used, _)| *is_set && !is_used);
        unused.map(|(name, _, _, store)| format!("state.{name}: needs {store}"))
    }
}

/// Returns true for a name or an address without a port.
fn is_host(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "-.:[]".contains(c);
    let address = name.trim_matches(['[', ']']);
    let has_port = name.contains(':') && address.parse::<Ipv6Addr>().is_err();
    !name.is_empty() && name.chars().all(is_of_name) && !has_port
}

#[cfg(feature = "postgres")]
fn database(address: &str) -> Result<Store, String> {
    let address: Result<PostgresAddress, _> = address.parse();
    address
        .map(|address| Store::Postgres(Box::new(address)))
        .map_err(|error| error.to_string())
}

#[cfg(not(feature = "postgres"))]
fn database(_: &str) -> Result<Store, String> {
    Err("this build has no PostgreSQL: build it with the feature 'postgres'".to_owned())
}

/// Returns the name of the host, or of the program if that is not known.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let name = name.map(|name| name.trim().to_owned()).unwrap_or_default();
    match name.is_empty() {
        true => "sluicegate".to_owned(),
        false => name,
    }
}

/// The shortest lease: shorter ones would be lost by pauses of a busy machine.
const MIN_LEASE: Duration = Duration::from_secs(1);
const MAX_LEASE: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let state: State = toml::from_str(text).unwrap();
        state.problems()
    }

    #[test]
    fn the_place_of_the_store_is_read() {
        let state: State = toml::from_str("accounting = \"sqlite:/var/a.db\"").unwrap();
        let store = state.store().unwrap().unwrap();
        assert_eq!(store, Store::Sqlite("/var/a.db".into()));
        let journal = state.journal(&store).unwrap();
        assert_eq!(journal, PathBuf::from("/var/a.db.journal"));
        assert_eq!(State::default().store(), Ok(None));
    }

    #[cfg(feature = "valkey")]
    #[test]
    fn the_address_of_the_lease_store_is_never_repeated() {
        assert_eq!(
            problems("limits = \"http://user:secret@host\""),
            [
                "state.limits: the scheme is not known: expected redis://, rediss://, redis+cluster://, redis+sentinel:// or redis+unix://"
            ]
        );
        assert!(problems("limits = \"redis://user:secret@host\"").is_empty());
    }

    #[test]
    fn lost_lease_lets_requests_finish_or_ends_them() {
        let read = |text: &str| toml::from_str::<State>(text).map(|state| state.lost_lease);
        assert_eq!(read(""), Ok(LostLease::Finish));
        assert_eq!(read("lost_lease = \"finish\""), Ok(LostLease::Finish));
        assert_eq!(read("lost_lease = \"end\""), Ok(LostLease::End));
        let error = read("lost_lease = \"stop\"").unwrap_err().to_string();
        assert!(error.contains("`finish` or `end`"), "{error}");
    }

    #[cfg(not(feature = "valkey"))]
    #[test]
    fn a_build_without_the_client_accepts_no_lease_store() {
        assert_eq!(
            problems("limits = \"redis://host\""),
            [
                "state.limits: this build has no client of Valkey and Redis: build it with the feature 'valkey'"
            ]
        );
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn an_address_of_postgres_is_read_and_its_password_not_repeated() {
        for scheme in ["postgres", "postgresql"] {
            let text = format!("accounting = \"{scheme}://gate:secret@db.example/usage\"");
            let state: State = toml::from_str(&text).unwrap();
            let store = state.store().unwrap().unwrap();
            assert_eq!(
                format!("{store:?}"),
                "Postgres(postgres://db.example/usage)"
            );
        }
        for (text, problem) in [
            (
                "accounting = \"mysql://gate:secret@host/db\"",
                "state.accounting: is another address, but must be ",
            ),
            (
                "accounting = \"postgres://gate:secret@host/db?sslmode=secret\"",
                "state.accounting: has an unknown sslmode: expected 'disable', ",
            ),
            (
                "accounting = \"postgres://gate:secret@host:secret/db\"",
                "state.accounting: is not of the form 'postgres://user:password@host",
            ),
        ] {
            let found = problems(text);
            assert!(found[0].starts_with(problem), "{found:?}");
            assert!(!found[0].contains("secret"), "{found:?}");
        }
    }

    #[cfg(not(feature = "postgres"))]
    #[test]
    fn a_build_without_postgres_says_so() {
        let found = problems("accounting = \"postgres://gate:secret@host/db\"");
        assert_eq!(
            found,
            [
                "state.accounting: this build has no PostgreSQL: build it with the feature 'postgres'"
            ]
        );
    }

    #[test]
    fn problems_name_their_setting() {
        for (text, problem) in [
            (
                "accounting = \"/var/a.db\"",
                "state.accounting: is '/var/a.db', but must be 'sqlite:'",
            ),
            (
                "accounting = \"sqlite:a\"\nrenewal = \"0s\"",
                "state.renewal: must be more than 0",
            ),
            (
                "keep_rows = \"24h\"",
                "state.keep_rows: needs state.accounting",
            ),
            (
                "lost_lease = \"end\"",
                "state.lost_lease: needs state.limits",
            ),
            ("lease = \"20s\"", "state.lease: needs state.limits"),
            (
                "replica = \"gate-1\"",
                "state.replica: needs state.accounting or state.limits",
            ),
            (
                "accounting = \"sqlite:a\"\nreplica = \"\"",
                "state.replica: is empty; to use the name of the host, leave it out",
            ),
            (
                "accounting = \"sqlite:a\"\nkeep_rows = \"0s\"",
                "state.keep_rows: must be more than 0s; to keep every row, leave it out",
            ),
            ("admin_key = \"secret\"", "state.admin_key: "),
            (
                "admin_hosts = [\"gateway.example\", \"[fd00::1]\", \"a:90\"]",
                "state.admin_hosts: has 'a:90', but must have names or addresses without a port",
            ),
        ] {
            let found = problems(text);
            assert!(found[0].starts_with(problem), "{found:?}");
            assert_eq!(found.len(), 1);
        }
    }
}
