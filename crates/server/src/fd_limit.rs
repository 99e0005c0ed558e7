//! Each connection takes a descriptor of the process, and the system allows only so many.

use std::io;

use crate::config::Config;

/// Raises what the process may have to the most that the system allows it, and lowers `limits.connections` to what is
/// left for clients then: with the last descriptor gone no upstream could be asked, and no operator be answered.
pub(crate) fn fit(config: &mut Config) {
    let allowed = match raise() {
        Ok(allowed) => allowed,
        Err(error) => return tracing::warn!(%error, "cannot tell how many descriptors the system allows"),
    };
    let left = left_for_clients(allowed, config.limits.concurrency, config.fetch.at_once);
    if left < config.limits.connections {
        tracing::warn!(
            connections = left,
            wanted = config.limits.connections,
            descriptors = allowed,
            "limits.connections is lowered to what the system has descriptors for; allow more with `ulimit -n`"
        );
        config.limits.connections = left;
    }
}

fn raise() -> io::Result<usize> {
    // Who may not raise it keeps what there is.
    let allowed = rlimit::increase_nofile_limit(u64::MAX).or_else(|_| rlimit::Resource::NOFILE.get_soft())?;
    Ok(usize::try_from(allowed).unwrap_or(usize::MAX))
}

/// A client has one request at a time, and that at most one connection to an upstream; a fetch has one to the host of
/// its picture. Where there are hardly any, not all of these come at once: a quarter is for clients.
fn left_for_clients(allowed: usize, requests: usize, fetches: usize) -> usize {
    let room = allowed.saturating_sub(fetches).saturating_sub(OWN);
    room.saturating_sub(requests).max(room / 2).max(allowed / 4).max(1)
}

/// For listeners, operators, files, and what the runtime has of its own.
const OWN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_is_left() {
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
        assert_eq!(left_for_clients(usize::MAX, usize::MAX, usize::MAX), usize::MAX / 4);
    }
}
