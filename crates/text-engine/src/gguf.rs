//! Reads GGUF files, which contain the weights. A damaged file is an error, never a panic or an
//! unbounded allocation.

use std::fs::File;
use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use candle_core::Device;
use candle_core::quantized::QTensor;
use candle_core::quantized::gguf_file::{Content, Value};

use crate::weights::{self, LoadError};

/// An open GGUF file with a valid header: each tensor in it is within the file.
pub(crate) struct Gguf {
    path: PathBuf,
    file: File,
    pub(crate) content: Content,
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
        let content = header(&head, length).map_err(|reason| LoadError::Damaged {
            path: path.to_owned(),
            reason,
        })?;
        Ok(Self {
            path: path.to_owned(),
            file,
            content,
        })
    }

    /// A required integer of the metadata.
    pub(crate) fn number(&self, key: &str) -> Result<usize, LoadError> {
        let value = self
            .content
            .metadata
            .get(key)
            .and_then(|value| value.to_u64().ok());
        value
            .and_then(|value| value.try_into().ok())
            .ok_or_else(|| self.damaged(format!("no integer '{key}' in its metadata")))
    }

    /// An optional floating-point number of the metadata.
    pub(crate) fn fraction(&self, key: &str) -> Option<f32> {
        self.content.metadata.get(key)?.to_f32().ok()
    }

    /// An optional text of the metadata.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.content
            .metadata
            .get(key)?
            .to_string()
            .ok()
            .map(String::as_str)
    }

    /// A list of the metadata; empty if there is none.
    pub(crate) fn list(&self, key: &str) -> &[Value] {
        self.content
            .metadata
            .get(key)
            .and_then(|value| value.to_vec().ok())
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn has(&self, tensor: &str) -> bool {
        self.content.tensor_infos.contains_key(tensor)
    }

    /// Loads a tensor, which must have this shape.
    pub(crate) fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<QTensor, LoadError> {
        let found = self
            .content
            .tensor_infos
            .get(name)
            .map(|info| info.shape.dims().to_vec());
        match found {
            None => return Err(self.damaged(format!("there is no tensor '{name}'"))),
            Some(found) if found != shape => {
                return Err(self.damaged(format!("tensor '{name}' is {found:?}, not {shape:?}")));
            }
            Some(_) => {}
        }
        self.content
            .tensor(&mut self.file, name, &Device::Cpu)
            .map_err(|why| self.damaged(format!("tensor '{name}': {}", first_line(&why))))
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

/// Parses the header at the beginning of a file of `length` bytes.
///
/// The parser only gets the first part of the file, which bounds the allocations that a wrong
/// length in it can cause.
pub(crate) fn header(head: &[u8], length: u64) -> Result<Content, String> {
    if !head.starts_with(MAGIC) {
        return Err("it does not begin with 'GGUF'".to_owned());
    }
    // The parser can panic: it divides by the alignment in the file, which may be zero.
    let parsed = catch_unwind(AssertUnwindSafe(|| Content::read(&mut Cursor::new(head))));
    let content = match parsed {
        Ok(Ok(content)) => content,
        Ok(Err(why)) => return Err(format!("its header cannot be parsed: {}", first_line(&why))),
        Err(_) => return Err("its header is invalid".to_owned()),
    };
    for name in content.tensor_infos.keys() {
        if end(&content, name).is_none_or(|end| end > length) {
            return Err(format!(
                "tensor '{name}' extends beyond the end of the file at {length} bytes"
            ));
        }
    }
    Ok(content)
}

/// The offset of the end of a tensor in the file, or `None` if it overflows.
fn end(content: &Content, tensor: &str) -> Option<u64> {
    let info = content.tensor_infos.get(tensor)?;
    let count = info
        .shape
        .dims()
        .iter()
        .try_fold(1_u64, |count, dim| count.checked_mul(*dim as u64))?;
    let blocks = count / info.ggml_dtype.block_size() as u64;
    let bytes = blocks.checked_mul(info.ggml_dtype.type_size() as u64)?;
    content
        .tensor_data_offset
        .checked_add(info.offset)?
        .checked_add(bytes)
}

/// The error message of the library without its backtrace.
fn first_line(why: &dyn std::error::Error) -> String {
    why.to_string()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

const MAGIC: &[u8] = b"GGUF";

/// Maximum length of the header in bytes. A vocabulary of 250,000 tokens needs 16 million.
const MAX_HEADER: u64 = 1 << 25;
