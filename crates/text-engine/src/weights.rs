//! The weights of the model: their default path, and checking their integrity.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// The name of the default weights: SmolLM2-135M-Instruct (Apache-2.0, English), blocks in Q4_1.
pub const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";

/// The size of the default weights in bytes.
pub const BYTES: u64 = 98_362_432;

/// The SHA-256 of the default weights, in lower-case hexadecimal.
pub const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// The reason why the engine cannot be loaded. The message is one line with the file and the
/// remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file does not exist.
    #[error("no model weights at {}: run `cargo xtask fetch-model`", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("cannot read the model weights {}: {source}; run `cargo xtask fetch-model` again", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of reading it.
        source: io::Error,
    },
    /// The file is truncated, corrupt, or not a GGUF file.
    #[error("the model weights {} are damaged: {reason}; run `cargo xtask fetch-model` again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage and its place in the file.
        reason: String,
    },
    /// The file is valid, but this engine does not support its kind of model.
    #[error("the model weights {} are not supported: {reason}; run `cargo xtask fetch-model`", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The value that was found and the supported ones.
        reason: String,
    },
    /// A setting cannot be applied.
    #[error("{0}")]
    Setting(String),
}

/// The path of the weights: `$SLUICEGATE_MODEL`, or [`NAME`] in the user's cache directory.
#[must_use]
pub fn default_path() -> PathBuf {
    let named = std::env::var_os("SLUICEGATE_MODEL").filter(|path| !path.is_empty());
    named.map_or_else(|| cache().join(NAME), PathBuf::from)
}

/// The cache directory of the default weights: `$XDG_CACHE_HOME/sluicegate`, or
/// `~/.cache/sluicegate` ([XDG Base Directory
/// Specification](https://specifications.freedesktop.org/basedir-spec/latest/)).
#[must_use]
pub fn cache() -> PathBuf {
    let xdg = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute());
    let cache = xdg.unwrap_or_else(|| std::env::home_dir().unwrap_or_default().join(".cache"));
    cache.join("sluicegate")
}

/// Verifies the size and checksum of the default weights at `path`.
///
/// # Errors
/// If the file is missing or unreadable, or has another size or checksum.
pub fn verify(path: &Path) -> Result<(), LoadError> {
    let mut file = open(path)?;
    let unreadable = |source| LoadError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let damaged = |reason| LoadError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let found = file.metadata().map_err(unreadable)?.len();
    if found != BYTES {
        return Err(damaged(format!("{found} bytes, of {BYTES} expected")));
    }
    let sum = sha256(&mut file).map_err(unreadable)?;
    if sum != SHA256 {
        return Err(damaged(format!("its SHA-256 is {sum}, not {SHA256}")));
    }
    Ok(())
}

/// Opens the file; the error distinguishes a missing file from an unreadable one.
pub(crate) fn open(path: &Path) -> Result<File, LoadError> {
    File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => LoadError::Missing {
            path: path.to_owned(),
        },
        _ => LoadError::Unreadable {
            path: path.to_owned(),
            source,
        },
    })
}

fn sha256(file: &mut File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match file.read(&mut block)? {
            0 => break,
            read => hasher.update(&block[..read]),
        }
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_reported_with_its_path_and_the_command() {
        let text = verify(Path::new("/nowhere/model.gguf"))
            .unwrap_err()
            .to_string();
        assert_eq!(
            text,
            "no model weights at /nowhere/model.gguf: run `cargo xtask fetch-model`"
        );
    }

    /// A file that is not the model is reported as damaged.
    #[test]
    fn e01_another_file_is_damaged() {
        let text = verify(Path::new(env!("CARGO_MANIFEST_PATH")))
            .unwrap_err()
            .to_string();
        assert!(
            text.contains("are damaged: ") && text.contains(" bytes, of 98362432 expected"),
            "{text}"
        );
        assert!(
            text.ends_with("; run `cargo xtask fetch-model` again"),
            "{text}"
        );
    }
}
