//! Refreshes the API keys of upstreams that commands print and the lists of their models, in the
//! background. Until a new key or list is there, requests use the old one.

use std::sync::Arc;
use std::time::Duration;

use policy::Policies;
use policy::refresh_schedule::RefreshSchedule;
use policy::targets::UpstreamTarget;
use telemetry::metrics::Metrics;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Refreshes the keys and the lists of the current policy when they are due, forever.
pub(super) async fn run(policies: Arc<Policies>, metrics: Arc<Metrics>) {
    loop {
        sleep(POLL_INTERVAL).await;
        for server in policies.current().routes.upstreams() {
            if server
                .key_schedule
                .as_ref()
                .is_some_and(RefreshSchedule::start)
            {
                tokio::spawn(refresh_key(Arc::clone(server), Arc::clone(&metrics)));
            }
            let list = server.model_list.as_ref();
            if list.is_some_and(|list| list.schedule.start()) {
                tokio::spawn(refresh_list(Arc::clone(server)));
            }
        }
    }
}

async fn refresh_key(server: Arc<UpstreamTarget>, metrics: Arc<Metrics>) {
    let reading = Arc::clone(&server);
    let read = spawn_blocking(move || reading.config.credential()).await;
    let problem = match read {
        Ok(Ok(Some(credential))) => {
            server.replace_credential(credential);
            None
        }
        Ok(Ok(None)) => None,
        Ok(Err(problem)) => Some(problem),
        Err(error) => Some(format!("api_key: {error}")),
    };
    let upstream = &server.config.name;
    metrics.key_refreshed(upstream, problem.is_none());
    if let Some(schedule) = &server.key_schedule {
        schedule.ended(problem.is_none());
    }
    match problem {
        None => tracing::info!(upstream, "key refreshed"),
        Some(cause) => {
            tracing::error!(
                upstream,
                cause,
                "key refresh failed, keeping the previous key"
            );
        }
    }
}

async fn refresh_list(server: Arc<UpstreamTarget>) {
    let Some(list) = &server.model_list else {
        return;
    };
    let upstream = &server.config.name;
    match list.refresh().await {
        Ok(models) => tracing::info!(upstream, models, "list of models read"),
        Err(cause) => {
            tracing::warn!(
                upstream,
                cause,
                "list of models not read, keeping the previous facts"
            );
        }
    }
}

/// The interval at which due keys and lists are looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
