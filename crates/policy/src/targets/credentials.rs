//! The API keys of upstreams.

use std::thread;

use config::upstream::Upstream;
use upstream::Credential;

/// Reads the key of each upstream that is not `known`. The commands that print keys run at the same
/// time; this blocks until the last one has ended or was killed.
pub(super) fn read(
    upstreams: &[Upstream],
    known: impl Fn(&Upstream) -> Option<Credential>,
) -> Vec<Result<Option<Credential>, String>> {
    thread::scope(|scope| {
        let start = |upstream| {
            let has_command = Upstream::refresh(upstream).is_some();
            let is_run = has_command && known(upstream).is_none();
            is_run.then(|| scope.spawn(|| upstream.credential()))
        };
        let commands: Vec<_> = upstreams.iter().map(start).collect();
        let keys = upstreams.iter().zip(commands).map(|(upstream, command)| {
            if let Some(command) = command {
                let failed = |_| Err("api_key: the command could not be run".to_owned());
                return command.join().unwrap_or_else(failed);
            }
            known(upstream).map_or_else(|| upstream.credential(), |key| Ok(Some(key)))
        });
        keys.collect()
    })
}
