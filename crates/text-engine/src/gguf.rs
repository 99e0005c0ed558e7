//! Reads GGUF files, which contain the weights. A damaged file is an error, never a panic or an
//! unbounded allocation.

pub(crate) mod format;
mod header;

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

pub(crate) use self::header::{Header, Value};
use crate::weights::{self, LoadError};

/// An open GGUF file with a valid header: each tensor in it is within the file.
pub(crate) struct Gguf {
    path: PathBuf,
    file: File,
    header: Header,
}

impl Gguf {
    pub(crate) fn open(path: &Path) -> Result<Self, LoadError> {
        let mut file = weights::open(path)?;
        let unreadable = |source| LoadError::Unreadable {
            path: path.to_owned(),
            source,
        };
        let length = file.metadata().map_err(unreadable)?.len();
        let mut head = Vec::new();
        file.by_ref()
            .take(MAX_HEADER)
            .read_to_end(&mut head)
            .map_err(unreadable)?;
        let header = header(&head, length).map_err(|reason| LoadError::Damaged {
            path: path.to_owned(),
            reason,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            header,
        })
    }

    /// A value of the metadata.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.header.metadata.get(key)
    }

    /// A required integer of the metadata.
    pub(crate) fn number(&self, key: &str) -> Result<usize, LoadError> {
        let number = match self.value(key) {
            Some(Value::Unsigned(number)) => (*number).try_into().ok(),
            _ => None,
        };
        number.ok_or_else(|| self.damaged(format!("no integer '{key}' in its metadata")))
    }

    /// An optional floating-point number of the metadata.
    pub(crate) fn fraction(&self, key: &str) -> Option<f32> {
        match self.value(key)? {
            Value::Fraction(fraction) => Some(*fraction as f32),
            _ => None,
        }
    }

    /// An optional text of the metadata.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.as_text()
    }

    /// A list of the metadata; empty if it is missing.
    pub(crate) fn list(&self, key: &str) -> &[Value] {
        match self.value(key) {
            Some(Value::List(values)) => values,
            _ => &[],
        }
    }

    pub(crate) fn has(&self, tensor: &str) -> bool {
        self.header.tensors.contains_key(tensor)
    }

    /// Loads a tensor, which must have this shape, as full numbers.
    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let info = match self.header.tensors.get(name) {
            None => return Err(self.damaged(format!("there is no tensor '{name}'"))),
            Some(info) if info.shape != shape => {
                let found = &info.shape;
                return Err(self.damaged(format!("tensor '{name}' is {found:?}, not {shape:?}")));
            }
            Some(info) => info,
        };
        let mut bytes = vec![0; info.bytes().unwrap_or_default()];
        let start = SeekFrom::Start(self.header.data + info.offset);
        let read = self.file.seek(start);
        read.and_then(|_| self.file.read_exact(&mut bytes))
            .map_err(|why| self.damaged(format!("tensor '{name}': {why}")))?;
        Ok(info.format.decode(&bytes))
    }

    pub(crate) fn damaged(&self, reason: String) -> LoadError {
        LoadError::Damaged {
            path: self.path.clone(),
            reason,
        }
    }

    pub(crate) fn unsupported(&self, reason: String) -> LoadError {
        LoadError::Unsupported {
            path: self.path.clone(),
            reason,
        }
    }
}

impl Value {
    pub(crate) fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Parses the header at the beginning of a file of `length` bytes.
///
/// The parser only gets the first part of the file, which bounds the allocations that a wrong
/// length in it can cause.
fn header(head: &[u8], length: u64) -> Result<Header, String> {
    let header = Header::parse(head)?;
    for (name, info) in &header.tensors {
        let start = header.data.checked_add(info.offset);
        let end = info
            .bytes()
            .and_then(|bytes| start?.checked_add(bytes as u64));
        match end {
            Some(end) if end <= length => {}
            Some(_) => {
                return Err(format!(
                    "tensor '{name}' extends beyond the end of the file at {length} bytes"
                ));
            }
            None => return Err(format!("tensor '{name}' has the shape {:?}", info.shape)),
        }
    }
    Ok(header)
}

/// Maximum length of the header in bytes. A vocabulary of 250,000 tokens needs 16 million.
const MAX_HEADER: u64 = 1 << 25;
