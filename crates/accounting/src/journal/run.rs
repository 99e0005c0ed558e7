//! The folders of runs. Each has a file that its process keeps locked, so that a folder whose lock
//! is free belongs to a process that has ended.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LOCK: &str = "lock";

/// A run and its folder.
pub(super) struct Run {
    pub(super) id: String,
    pub(super) folder: PathBuf,
}

/// A run whose lock is held as long as this lives.
pub(super) struct LockedRun {
    pub(super) run: Arc<Run>,
    _lock: File,
}

/// Creates the folder of a new run in `folder`, and takes over the folders of dead runs.
pub(super) fn begin(folder: &Path) -> io::Result<(LockedRun, Vec<LockedRun>)> {
    create_folder(folder)?;
    // Otherwise another process could take over a folder between its creation and its lock.
    let guard = lock_file(folder)?;
    guard.lock()?;
    let mut dead = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        if file.file_type()?.is_dir() {
            dead.extend(take_over(file.path(), file.file_name().into_string().ok())?);
        }
    }
    let id = new_id()?;
    let path = folder.join(&id);
    create_folder(&path)?;
    let lock = lock_file(&path)?;
    lock.lock()?;
    File::open(folder)?.sync_all()?;
    Ok((LockedRun::new(id, path, lock), dead))
}

impl Run {
    /// Returns the folder of all runs.
    pub(super) fn all(&self) -> &Path {
        self.folder.parent().unwrap_or(&self.folder)
    }

    /// Removes the folder, which must have no segments left.
    pub(super) fn remove(&self) -> io::Result<()> {
        fs::remove_file(self.folder.join(LOCK))?;
        fs::remove_dir(&self.folder)
    }
}

impl LockedRun {
    fn new(id: String, folder: PathBuf, lock: File) -> Self {
        Self {
            run: Arc::new(Run { id, folder }),
            _lock: lock,
        }
    }
}

/// Returns the run of a folder if its process has ended.
fn take_over(folder: PathBuf, name: Option<String>) -> io::Result<Option<LockedRun>> {
    let Some(id) = name.filter(|name| is_id(name)) else {
        return Ok(None);
    };
    let lock = match lock_file(&folder) {
        Ok(lock) => lock,
        // Another process is removing it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(LockedRun::new(id, folder, lock))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn lock_file(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(folder.join(LOCK))
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn new_id() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn is_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_sixteen_hexadecimal_digits() {
        assert!(is_id("0123456789abcdef"));
        for other in ["", "abc", "0123456789abcdeg", "0123456789abcdef0"] {
            assert!(!is_id(other), "{other}");
        }
        assert!(is_id(&new_id().unwrap()));
    }

    #[test]
    fn a_folder_that_is_being_removed_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("0123456789abcdef");
        let id = || Some("0123456789abcdef".to_owned());
        assert!(take_over(gone.clone(), id()).unwrap().is_none());
        // Other errors are reported.
        fs::write(&gone, "a file").unwrap();
        let error = take_over(gone, id()).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_folder_with_another_name_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let other = folder.path().join("backup");
        fs::create_dir(&other).unwrap();
        assert!(
            take_over(other.clone(), Some("backup".to_owned()))
                .unwrap()
                .is_none()
        );
        assert!(!other.join(LOCK).exists());
    }
}
