//! A database of PostgreSQL for one test, on the server that `cargo xtask shared` starts.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use testkit::Scratch;
use tokio::runtime::Runtime;
use tokio_postgres::types::FromSql;
use tokio_postgres::{Client, NoTls};

use crate::GATEWAY;
use crate::database::Database;

/// A new database, which is dropped with this, and a folder for the state of gateways.
pub(crate) struct Postgres {
    name: String,
    runtime: Runtime,
    state: Scratch,
}

impl Postgres {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let database = Self {
            name: format!("sluicegate_test_{}_{number}", std::process::id()),
            runtime: Runtime::new().unwrap(),
            state: GATEWAY.file("note.txt", "The state of gateways is beside this file."),
        };
        database.administer(&format!("CREATE DATABASE {}", database.name));
        database
    }

    /// The address over TCP, which needs TLS and a password.
    pub(crate) fn tls_url(&self) -> String {
        let url = url("SLUICEGATE_TEST_POSTGRES_TLS");
        url.replace("/postgres?", &format!("/{}?sslmode=require&", self.name))
    }

    /// Lets no gateway in, or all.
    pub(crate) fn set_away(&self, is_away: bool) {
        let name = &self.name;
        self.administer(&format!(
            "ALTER DATABASE {name} ALLOW_CONNECTIONS {}",
            !is_away
        ));
        if is_away {
            self.administer(&format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            ));
        }
    }

    /// The result of a query with one column.
    #[track_caller]
    fn column<T: for<'a> FromSql<'a>>(&self, sql: &str) -> Vec<Option<T>> {
        self.runtime.block_on(async {
            let client = connect(&self.socket_url()).await;
            let path = "SET search_path TO sluicegate";
            client.batch_execute(path).await.unwrap();
            let rows = client.query(sql, &[]).await.unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        })
    }

    /// Runs SQL in the database of all servers.
    fn administer(&self, sql: &str) {
        let url = url("SLUICEGATE_TEST_POSTGRES");
        let run = async { connect(&url).await.batch_execute(sql).await };
        self.runtime.block_on(run).unwrap();
    }

    fn socket_url(&self) -> String {
        let url = url("SLUICEGATE_TEST_POSTGRES");
        let server = url.strip_suffix("/postgres").unwrap();
        format!("{server}/{}", self.name)
    }
}

impl Database for Postgres {
    fn settings(&self) -> String {
        format!(
            "[state]\naccounting = \"{}\"\nreplica = \"gate-1\"\nrenewal = \"100ms\"\n",
            self.socket_url()
        )
    }

    fn command(&self) -> Command {
        let mut command = GATEWAY.command();
        command.env_remove("STATE_DIRECTORY");
        command.env("XDG_STATE_HOME", self.state.0.parent().unwrap());
        command
    }

    fn journal(&self) -> PathBuf {
        let of_all = self.state.0.with_file_name("sluicegate").join("journal");
        let mut folders = std::fs::read_dir(of_all).unwrap();
        folders.next().unwrap().unwrap().path()
    }

    #[track_caller]
    fn numbers(&self, sql: &str) -> Vec<i64> {
        let numbers = self.column::<i64>(sql).into_iter();
        numbers.map(Option::unwrap_or_default).collect()
    }

    #[track_caller]
    fn texts(&self, sql: &str) -> Vec<String> {
        let texts = self.column::<String>(sql).into_iter();
        texts.map(Option::unwrap_or_default).collect()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.administer(&format!("DROP DATABASE {} WITH (FORCE)", self.name));
    }
}

/// The address of the server in a variable.
fn url(variable: &str) -> String {
    let url = std::env::var(variable);
    url.unwrap_or_else(|_| panic!("{variable} is the URL of a database"))
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
