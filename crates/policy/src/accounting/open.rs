//! Opens the store of a configuration.

use std::sync::Arc;
use std::time::Duration;

use accounting::{AccountingStore, StoreError};
use config::ConfigError;
use config::state::Store;
use tokio::time::{Instant, sleep};

/// Opens a store. Creates its file or schema if needed, and brings its tables up to date.
///
/// # Errors
/// Returns an error that names the setting if the store cannot be used, or not now.
pub async fn open(place: &Store) -> Result<Arc<dyn AccountingStore>, ConfigError> {
    unusable(attempt(place).await?)
}

/// As [`open`], but waits for a database that does not answer yet, as one that is started together
/// with the gateway.
pub(super) async fn open_patiently(place: &Store) -> Result<Arc<dyn AccountingStore>, ConfigError> {
    let begun = Instant::now();
    let mut is_logged = false;
    loop {
        match attempt(place).await? {
            Err(error) if error.is_temporary() && begun.elapsed() < START_TIMEOUT => {
                if !is_logged {
                    let seconds = START_TIMEOUT.as_secs();
                    tracing::warn!(%error, "the start waits up to {seconds} s for the accounting store");
                    is_logged = true;
                }
                sleep(START_INTERVAL).await;
            }
            opened => return unusable(opened),
        }
    }
}

/// The outcome of an attempt to open a store.
type Opened = Result<Arc<dyn AccountingStore>, StoreError>;

fn unusable(opened: Opened) -> Result<Arc<dyn AccountingStore>, ConfigError> {
    opened.map_err(|error| ConfigError::one(format!("state.accounting: {error}")))
}

async fn attempt(place: &Store) -> Result<Opened, ConfigError> {
    match place {
        #[cfg(feature = "sqlite")]
        Store::Sqlite(file) => Ok(accounting::Sqlite::open(file).map(|store| Arc::new(store) as _)),
        #[cfg(not(feature = "sqlite"))]
        Store::Sqlite(_) => {
            let why = "this build has no SQLite: build it with the feature 'sqlite'";
            Err(ConfigError::one(format!("state.accounting: {why}")))
        }
        #[cfg(feature = "postgres")]
        Store::Postgres(address) => {
            let store = accounting::Postgres::connect(address, SCHEMA).await;
            Ok(store.map(|store| Arc::new(store) as _))
        }
    }
}

/// The schema of the tables in a database.
#[cfg(feature = "postgres")]
pub const SCHEMA: &str = "sluicegate";
/// The time for which a start waits for a database, and the time between two attempts.
const START_TIMEOUT: Duration = Duration::from_secs(15);
const START_INTERVAL: Duration = Duration::from_millis(500);
