//! Adapts the connection limit to the process's limit of file descriptors.

use std::io;

use config::Config;

/// Raises the soft limit of file descriptors to the hard limit, and lowers `limits.connections` to
/// the number that remains for clients: without a free descriptor no upstream and no admin request
/// could be served.
pub(crate) fn clamp(config: &mut Config) {
    let allowed = match raise() {
        Ok(allowed) => allowed,
        Err(error) => return tracing::warn!(%error, "cannot read the limit of file descriptors"),
    };
    let left = left_for_clients(allowed, config.limits.concurrency, config.fetch.at_once);
    if left < config.limits.connections {
        tracing::warn!(
            connections = left,
            wanted = config.limits.connections,
            descriptors = allowed,
            "limits.connections is lowered to the limit of file descriptors; raise it with `ulimit -n`"
        );
        config.limits.connections = left;
    }
}

fn raise() -> io::Result<usize> {
    // Without the permission to raise it, the current limit applies.
    let allowed =
        rlimit::increase_nofile_limit(u64::MAX).or_else(|_| rlimit::Resource::NOFILE.get_soft())?;
    Ok(usize::try_from(allowed).unwrap_or(usize::MAX))
}

/// The descriptors that remain for client connections. A client has one request at a time, which
/// has at most one upstream connection, and a fetch has one connection to its host. If there are
/// too few descriptors for all of these, clients get at least a quarter.
fn left_for_clients(allowed: usize, requests: usize, fetches: usize) -> usize {
    let available = allowed.saturating_sub(fetches).saturating_sub(RESERVED);
    available
        .saturating_sub(requests)
        .max(available / 2)
        .max(allowed / 4)
        .max(1)
}

/// Descriptors for listeners, admin connections, files and the runtime.
const RESERVED: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_remaining_descriptors() {
        for (allowed, requests, left) in [
            (65_536, 256, 65_184),
            (1024, 256, 672),
            (20_000, 20_000, 9952),
            (400, 256, 152),
            (48, 256, 12),
            (3, 256, 1),
        ] {
            assert_eq!(left_for_clients(allowed, requests, 32), left, "{allowed}");
        }
        assert_eq!(
            left_for_clients(usize::MAX, usize::MAX, usize::MAX),
            usize::MAX / 4
        );
    }
}
