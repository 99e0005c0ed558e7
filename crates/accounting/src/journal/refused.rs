//! The file of entries that the store will never take, for the operator to look at.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::usage::Entry;

const NAME: &str = "refused.jsonl";

/// An entry, and why the store refuses it.
#[derive(Serialize)]
pub(super) struct Refused<'a> {
    pub(super) reason: String,
    pub(super) entry: &'a Entry,
}

/// Returns the file in the folder of the journals of all runs.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join(NAME)
}

/// Returns the lines for these entries.
pub(super) fn lines(refused: &[Refused<'_>]) -> serde_json::Result<Vec<u8>> {
    let mut lines = Vec::new();
    for entry in refused {
        serde_json::to_writer(&mut lines, entry)?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Appends lines to the file and brings them to the disk.
pub(super) fn append(folder: &Path, lines: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file(folder))?;
    // In one call, because other processes may write to the same file.
    file.write_all(lines)?;
    file.sync_all()
}
