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
    // A request has at most one connection to an upstream, and a fetch one to the host of its picture.
    let others = config.limits.concurrency.saturating_add(config.fetch.at_once).saturating_add(OWN);
    let left = left_for_clients(allowed, others);
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

/// All but those of the others, and at least a quarter: where there are hardly any, not all the others come at once.
fn left_for_clients(allowed: usize, others: usize) -> usize {
    allowed.saturating_sub(others).max(allowed / 4).max(1)
}

/// For listeners, operators, files, and what the runtime has of its own.
const OWN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_what_is_left() {
        for (allowed, others, left) in [(65_536, 352, 65_184), (1024, 352, 672), (400, 352, 100), (3, 352, 1)] {
            assert_eq!(left_for_clients(allowed, others), left, "{allowed}");
        }
        assert_eq!(left_for_clients(usize::MAX, usize::MAX), usize::MAX / 4);
    }
}
