//! Tries the stores of a configuration, for `sluicegate check`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use accounting::{AccountingStore, StoreError};
use config::ConfigError;
use config::state::{State, Store};
use policy::accounting::open;
use policy::lease_store;
use policy::policy_keys::StoredKeys;

/// The findings about the stores of a configuration.
#[derive(Default)]
pub(crate) struct Stores {
    /// The keys of the accounting store; none without one.
    pub(crate) keys: Arc<StoredKeys>,
    /// A line for each store.
    pub(crate) report: String,
}

/// Tries all stores. One that cannot be used is an error, which names its setting.
pub(crate) async fn try_all(state: &State) -> Result<Stores, ConfigError> {
    let mut stores = Stores::default();
    if let Some(place) = state.store().map_err(ConfigError::one)? {
        try_accounting(&place, &mut stores).await?;
    }
    if let Some(address) = state.limits().map_err(ConfigError::one)? {
        let unusable = |error| ConfigError::one(format!("state.limits: {error}"));
        let store = lease_store::open(address, state.holder(), &state.namespace, state.lease)
            .map_err(unusable)?;
        let found = store.check().await;
        let found = found.map_err(|error| unusable(error.to_string()))?;
        // Writing to a String cannot fail.
        let _ = writeln!(
            stores.report,
            "limits: the lease store answers, and keeps what it has lent (noeviction)"
        );
        if found.min_replicas_to_write == Some(0) {
            stores.report += "note: state.limits: min-replicas-to-write is 0: a primary that is cut off from its replicas goes on lending\n";
        }
        if found.requires_full_coverage == Some(true) {
            stores.report += "note: state.limits: cluster-require-full-coverage is on: no limit is lent while a part of the cluster is away\n";
        }
    }
    Ok(stores)
}

async fn try_accounting(place: &Store, stores: &mut Stores) -> Result<(), ConfigError> {
    let failed = |error: StoreError| ConfigError::one(format!("state.accounting: {error}"));
    let (name, store) = match place {
        Store::Sqlite(file) => (file.display().to_string(), find_file(place, file).await?),
        #[cfg(feature = "postgres")]
        Store::Postgres(address) => {
            let found = accounting::Postgres::connect_to_existing(address, open::SCHEMA).await;
            let store = found.map_err(failed)?.map(|store| Arc::new(store) as _);
            (address.to_string(), store)
        }
    };
    let Some(store) = store else {
        stores.report +=
            &format!("accounting: {name} is new: its tables are created at the start\n");
        return Ok(());
    };
    let live = store.keys().await.map_err(failed)?;
    let keys = live.keys.len();
    stores.keys = Arc::new(StoredKeys::new(live));
    stores.report += &format!("accounting: {name} has {keys} keys\n");
    Ok(())
}

/// Opens the store in a file, if the file exists.
async fn find_file(
    place: &Store,
    file: &Path,
) -> Result<Option<Arc<dyn AccountingStore>>, ConfigError> {
    if file.exists() {
        return open::open(place).await.map(Some);
    }
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    match folder.is_some_and(|folder| !folder.is_dir()) {
        false => Ok(None),
        true => Err(ConfigError::one(format!(
            "state.accounting: the folder of {} does not exist",
            file.display()
        ))),
    }
}
