//! The files of the journal of one run. Each holds a segment, whose name is the position of its
//! first byte in the journal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest part that is read at once.
const MAX_PART: u64 = 1024 * 1024;

const EXTENSION: &str = "journal";

/// The segment that is being written.
pub(crate) struct SegmentWriter {
    folder: PathBuf,
    file: Arc<File>,
    base: u64,
    len: u64,
    max_len: u64,
    /// True if the file may have more bytes than `len`.
    is_torn: bool,
    is_finished: bool,
    /// True if a segment has to reach the disk before the next one begins.
    is_synced: bool,
    /// Segments that are complete, but may not have reached the disk.
    complete: Vec<Arc<File>>,
}

impl SegmentWriter {
    /// Creates the first segment of a journal, whose segments end after `max_len` bytes. `is_synced`
    /// states whether a segment has to reach the disk before the next one begins.
    pub(crate) fn create(folder: &Path, max_len: u64, is_synced: bool) -> io::Result<Self> {
        let file = create(folder, 0)?;
        File::open(folder)?.sync_all()?;
        Ok(Self {
            folder: folder.to_owned(),
            file: Arc::new(file),
            base: 0,
            len: 0,
            max_len,
            is_torn: false,
            is_finished: false,
            is_synced,
            complete: Vec::new(),
        })
    }

    /// Writes whole records. If that fails, none of them is part of the journal.
    pub(crate) fn write(&mut self, records: &[u8]) -> io::Result<()> {
        if self.is_finished {
            return Err(io::Error::other("the journal is finished"));
        }
        if self.is_torn || self.len >= self.max_len || is_removed(&self.file)? {
            self.rotate()?;
        }
        if let Err(error) = (&*self.file).write_all(records) {
            // A part may have been written. If it cannot be cut off, the next segment begins where
            // it begins, and readers stop there.
            self.is_torn = self.file.set_len(self.len).is_err();
            return Err(error);
        }
        self.len += records.len() as u64;
        Ok(())
    }

    /// Writes a file beside the segments, and removes it.
    pub(crate) fn probe(&self) -> io::Result<()> {
        let path = self.folder.join("probe");
        let written = fs::write(&path, [0; 4096]);
        // It is written over the next time.
        let _ = fs::remove_file(&path);
        written
    }

    /// Refuses all further writes.
    pub(crate) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Returns the length of the journal.
    pub(crate) fn position(&self) -> u64 {
        self.base + self.len
    }

    /// Returns the file that was written last.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Returns all files that may not have reached the disk, and the folder after each of them.
    pub(crate) fn take_unsynced(&mut self) -> Vec<Arc<File>> {
        let mut files = std::mem::take(&mut self.complete);
        files.push(self.file());
        files
    }

    fn rotate(&mut self) -> io::Result<()> {
        let base = self.position();
        let next = Arc::new(create(&self.folder, base)?);
        // The new name has to survive a power cut like the records.
        let folder = File::open(&self.folder)?;
        if self.is_synced {
            self.file.sync_all()?;
            folder.sync_all()?;
        } else {
            self.complete.extend([self.file(), Arc::new(folder)]);
        }
        self.file = next;
        self.base = base;
        self.len = 0;
        self.is_torn = false;
        Ok(())
    }
}

/// A part of a journal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    /// The position of the first byte. It is behind the one asked for if files are missing.
    pub(crate) start: u64,
    /// The bytes, all of one segment.
    pub(crate) bytes: Vec<u8>,
    /// True if the segment has no more bytes behind these.
    pub(crate) is_end_of_segment: bool,
    /// The position of the next segment, if there is one.
    pub(crate) next: Option<u64>,
}

/// Reads the journal in `folder` from `position`, but not beyond `end`. Returns `None` if there is
/// nothing more.
pub(crate) fn read(folder: &Path, position: u64, end: u64) -> io::Result<Option<Part>> {
    let bases = bases(folder)?;
    let at = bases.partition_point(|base| *base <= position);
    let (base, start, next) = match at.checked_sub(1).and_then(|before| bases.get(before)) {
        Some(base) => (*base, position, bases.get(at).copied()),
        // The segment of this position is missing.
        None => match bases.first() {
            Some(first) => (*first, *first, bases.get(1).copied()),
            None => return Ok(None),
        },
    };
    let mut file = File::open(path(folder, base))?;
    let end_of_file = base.saturating_add(file.metadata()?.len());
    let end_of_segment = end_of_file.min(next.unwrap_or(u64::MAX));
    let wanted = end.min(end_of_segment).saturating_sub(start).min(MAX_PART);
    if wanted == 0 && next.is_none() {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(start - base))?;
    let mut bytes = Vec::new();
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok(Some(Part {
        is_end_of_segment: start + bytes.len() as u64 >= end_of_segment,
        start,
        bytes,
        next,
    }))
}

/// Removes the segments that end at or before `position`, the oldest first, but never the last one.
pub(crate) fn remove_before(folder: &Path, position: u64) -> io::Result<()> {
    let bases = bases(folder)?;
    for pair in bases.windows(2).take_while(|pair| pair[1] <= position) {
        fs::remove_file(path(folder, pair[0]))?;
    }
    Ok(())
}

/// Returns true if [`remove_before`] has something to remove.
pub(crate) fn has_before(folder: &Path, position: u64) -> io::Result<bool> {
    Ok(bases(folder)?.get(1).is_some_and(|base| *base <= position))
}

/// Removes all segments, the oldest first.
pub(crate) fn remove_all(folder: &Path) -> io::Result<()> {
    bases(folder)?
        .into_iter()
        .try_for_each(|base| fs::remove_file(path(folder, base)))
}

/// Returns the positions at which the segments begin, in their order.
fn bases(folder: &Path) -> io::Result<Vec<u64>> {
    let mut bases = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = PathBuf::from(file?.file_name());
        if path
            .extension()
            .is_some_and(|extension| extension == EXTENSION)
        {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            bases.extend(stem.and_then(|stem| stem.parse::<u64>().ok()));
        }
    }
    bases.sort_unstable();
    Ok(bases)
}

fn path(folder: &Path, base: u64) -> PathBuf {
    folder.join(format!("{base:020}.{EXTENSION}"))
}

/// Returns true if the file has no name any more, so that nobody will read what is written to it.
#[cfg(unix)]
fn is_removed(file: &File) -> io::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) == 0)
}

#[cfg(not(unix))]
fn is_removed(_: &File) -> io::Result<bool> {
    Ok(false)
}

fn create(folder: &Path, base: u64) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path(folder, base))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(start: u64, bytes: &str, is_end_of_segment: bool, next: Option<u64>) -> Part {
        Part {
            start,
            bytes: bytes.into(),
            is_end_of_segment,
            next,
        }
    }

    /// A journal whose segments are "one\ntwo\n" and "three\n".
    fn two_segments(folder: &Path) -> SegmentWriter {
        let mut writer = SegmentWriter::create(folder, 8, false).unwrap();
        for record in ["one\n", "two\n", "three\n"] {
            writer.write(record.as_bytes()).unwrap();
        }
        writer
    }

    #[test]
    fn a_journal_is_read_segment_by_segment() {
        let folder = tempfile::tempdir().unwrap();
        let writer = two_segments(folder.path());
        assert_eq!(writer.position(), 14);
        let read = |position, end| read(folder.path(), position, end).unwrap();
        assert_eq!(read(0, 14), Some(part(0, "one\ntwo\n", true, Some(8))));
        assert_eq!(read(4, 14), Some(part(4, "two\n", true, Some(8))));
        assert_eq!(read(8, 14), Some(part(8, "three\n", true, None)));
        assert_eq!(read(14, 14), None);
        assert_eq!(read(14, u64::MAX), None);
    }

    /// A sync needs each complete segment with its folder, once, and the segment that is being written.
    #[test]
    fn files_are_handed_out_for_a_sync_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = two_segments(folder.path());
        let files: Vec<_> = writer.take_unsynced();
        let is_folder = |file: &Arc<File>| file.metadata().unwrap().is_dir();
        assert_eq!(
            files.iter().map(is_folder).collect::<Vec<_>>(),
            [false, true, false]
        );
        assert_eq!(files[0].metadata().unwrap().len(), 8);
        let files = writer.take_unsynced();
        assert_eq!(files.len(), 1);
        assert_eq!(files[0].metadata().unwrap().len(), 6);
    }

    /// Records that nobody can read are not written: the next segment begins, if there is a folder.
    #[cfg(unix)]
    #[test]
    fn a_removed_file_is_replaced_and_a_removed_folder_fails() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = SegmentWriter::create(folder.path(), 64, false).unwrap();
        writer.write(b"one\n").unwrap();
        fs::remove_file(path(folder.path(), 0)).unwrap();
        writer.write(b"two\n").unwrap();
        let found = read(folder.path(), 0, 8).unwrap();
        assert_eq!(found, Some(part(4, "two\n", true, None)));
        writer.probe().unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        assert_eq!(writer.probe().unwrap_err().kind(), io::ErrorKind::NotFound);
        let error = writer.write(b"three\n").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert_eq!(writer.position(), 8);
    }

    /// The reader may know less than the folder has: it must not skip what lies between.
    #[test]
    fn a_segment_does_not_end_where_the_reader_stops() {
        let folder = tempfile::tempdir().unwrap();
        two_segments(folder.path());
        let found = read(folder.path(), 0, 4).unwrap();
        assert_eq!(found, Some(part(0, "one\n", false, Some(8))));
    }

    #[test]
    fn bytes_behind_a_segment_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        two_segments(folder.path());
        let first = path(folder.path(), 0);
        fs::write(&first, "one\ntwo\nthr").unwrap();
        let found = read(folder.path(), 0, u64::MAX).unwrap();
        assert_eq!(found, Some(part(0, "one\ntwo\n", true, Some(8))));
    }

    #[test]
    fn shipped_segments_are_removed_but_never_the_last_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = two_segments(folder.path());
        assert!(!has_before(folder.path(), 7).unwrap());
        remove_before(folder.path(), 7).unwrap();
        assert_eq!(bases(folder.path()).unwrap(), [0, 8]);
        assert!(has_before(folder.path(), 14).unwrap());
        remove_before(folder.path(), 14).unwrap();
        assert_eq!(bases(folder.path()).unwrap(), [8]);
        // The position of the part shows the missing bytes.
        let found = read(folder.path(), 0, 14).unwrap();
        assert_eq!(found, Some(part(8, "three\n", true, None)));
        writer.finish();
        assert!(writer.write(b"four\n").is_err());
    }
}
