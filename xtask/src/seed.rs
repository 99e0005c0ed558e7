//! The seed of all random draws of a test run.
//!
//! It follows from the hash of the work tree, so that a tree that passed passes again, and another
//! tree tries other draws. `SLUICEGATE_TEST_SEED` sets it by hand; the nightly checks take new
//! seeds from the system.

use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use crate::outcome::{At as _, Outcome};
use crate::{process, workspace};

/// The variable that sets the seed, and from which tests read it.
pub(crate) const VARIABLE: &str = "SLUICEGATE_TEST_SEED";

/// The seed of this run: the one that the environment sets, which has to be a number, or else the
/// seed of the work tree.
pub(crate) fn current() -> Outcome<u64> {
    match std::env::var(VARIABLE) {
        Ok(text) => parse(&text),
        // A folder that is not in git has a constant seed.
        Err(_) => Ok(tree().map_or(1, |tree| of(&tree))),
    }
}

/// Passes the seed to a program whose tests draw random values, also to property tests.
pub(crate) fn pass(seed: u64, command: &mut Command) {
    let seed = seed.to_string();
    command.env("PROPTEST_RNG_SEED", &seed).env(VARIABLE, seed);
}

/// A new seed: another number at each call.
pub(crate) fn fresh() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// The seed for a text, such as the hash of a tree.
pub(crate) fn of(text: &str) -> u64 {
    let hash = Sha256::digest(text);
    let first = hash.iter().take(8);
    first.fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// The hash that git would give the work tree if it were committed as it is.
pub(crate) fn tree() -> Outcome<String> {
    let target = workspace::target()?;
    std::fs::create_dir_all(&target).at(&target)?;
    // A separate index for each call, so that the user's is not changed.
    let (process, thread) = (std::process::id(), std::thread::current().id());
    let index = target.join(format!("seed-{process}-{thread:?}.index"));
    let git = |line: &str| {
        let mut git = workspace::git(line);
        process::captured(git.env("GIT_INDEX_FILE", &index).stderr(Stdio::null()))
    };
    let tree = git("read-tree HEAD")
        .and_then(|_| git("add --all"))
        .and_then(|_| git("write-tree"));
    // It is no longer needed; if it is absent there is nothing to remove.
    let _ = std::fs::remove_file(&index);
    Ok(tree?.trim().to_owned())
}

fn parse(text: &str) -> Outcome<u64> {
    let seed = text.trim().parse();
    seed.map_err(|_| format!("{VARIABLE} is {text:?}, but a seed is a number below 2^64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_follows_from_its_text_alone() {
        // The first eight bytes of the SHA-256 of "abc".
        assert_eq!(of("abc"), 0xba78_16bf_8f01_cfea);
    }

    #[test]
    fn a_seed_is_a_number() {
        assert_eq!(parse(" 18446744073709551615\n"), Ok(u64::MAX));
        assert!(
            parse("soon")
                .unwrap_err()
                .contains("SLUICEGATE_TEST_SEED is \"soon\"")
        );
    }

    #[test]
    fn the_same_tree_has_the_same_hash() {
        let hash = tree().unwrap();
        assert_eq!((hash.len(), tree()), (40, Ok(hash)));
    }
}
