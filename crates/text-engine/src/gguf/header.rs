//! The header of a GGUF file: its metadata, and where its tensors are
//! (<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>).

use std::collections::HashMap;

use super::format::Format;

/// The header of a file.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) metadata: HashMap<String, Value>,
    pub(crate) tensors: HashMap<String, TensorInfo>,
    /// The offset of the first tensor in the file.
    pub(crate) data: u64,
}

/// A value of the metadata.
#[derive(Debug, PartialEq)]
pub(crate) enum Value {
    Unsigned(u64),
    Signed(i64),
    Fraction(f64),
    Flag(bool),
    Text(String),
    List(Vec<Self>),
}

/// The place and form of a tensor.
#[derive(Debug)]
pub(crate) struct TensorInfo {
    pub(crate) format: Format,
    /// The dimensions: rows, then columns.
    pub(crate) shape: Vec<usize>,
    /// The offset of its first byte from the first tensor.
    pub(crate) offset: u64,
}

impl Header {
    /// Parses the header at the beginning of a file.
    pub(crate) fn parse(head: &[u8]) -> Result<Self, String> {
        let mut rest = Reader { head, at: 0 };
        if rest.take(4)? != MAGIC {
            return Err("it does not begin with 'GGUF'".to_owned());
        }
        let version = rest.u32()?;
        if !(2..=3).contains(&version) {
            return Err(format!("its version is {version}, accepted are 2 and 3"));
        }
        let (tensor_count, value_count) = (rest.u64()?, rest.u64()?);
        let mut metadata = HashMap::new();
        for _ in 0..value_count {
            let key = rest.text()?;
            let kind = rest.u32()?;
            metadata.insert(key, rest.value(kind, 0)?);
        }
        let mut tensors = HashMap::new();
        for _ in 0..tensor_count {
            let name = rest.text()?;
            let info = rest.tensor_info(&name)?;
            tensors.insert(name, info);
        }
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(Value::Unsigned(alignment @ 1..)) => *alignment,
            Some(other) => return Err(format!("its alignment is {other:?}")),
        };
        let data = (rest.at as u64).checked_next_multiple_of(alignment);
        Ok(Self {
            metadata,
            tensors,
            data: data.ok_or("its alignment is too large")?,
        })
    }
}

impl TensorInfo {
    /// The number of values, or `None` if it overflows.
    pub(crate) fn count(&self) -> Option<usize> {
        let mut dims = self.shape.iter();
        dims.try_fold(1_usize, |count, dim| count.checked_mul(*dim))
    }

    /// The number of bytes, or `None` if it overflows or the last block is incomplete.
    pub(crate) fn bytes(&self) -> Option<usize> {
        let (block, bytes) = self.format.block();
        let count = self.count().filter(|count| count.is_multiple_of(block))?;
        (count / block).checked_mul(bytes)
    }
}

/// Reads the header from front to back.
struct Reader<'h> {
    head: &'h [u8],
    at: usize,
}

impl<'h> Reader<'h> {
    fn take(&mut self, count: usize) -> Result<&'h [u8], String> {
        let rest = &self.head[self.at..];
        let taken = rest.get(..count).ok_or("its header is cut off")?;
        self.at += count;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let taken = self.take(N)?.first_chunk();
        Ok(*taken.ok_or("its header is cut off")?)
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.array().map(u64::from_le_bytes)
    }

    /// A length or dimension.
    fn size(&mut self) -> Result<usize, String> {
        let size = self.u64()?;
        size.try_into()
            .map_err(|_| format!("a length in its header is {size}"))
    }

    fn text(&mut self) -> Result<String, String> {
        let length = self.size()?;
        let bytes = self.take(length)?;
        // Some files end their texts with zeros, or have texts that are not valid UTF-8.
        let end = bytes.iter().rposition(|byte| *byte != 0);
        let text = &bytes[..end.map_or(0, |last| last + 1)];
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn value(&mut self, kind: u32, depth: usize) -> Result<Value, String> {
        Ok(match kind {
            0 => Value::Unsigned(u8::from_le_bytes(self.array()?).into()),
            1 => Value::Signed(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Unsigned(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Signed(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Unsigned(self.u32()?.into()),
            5 => Value::Signed(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Fraction(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Flag(self.array() == Ok([1])),
            8 => Value::Text(self.text()?),
            9 if depth < MAX_DEPTH => {
                let kind = self.u32()?;
                let length = self.size()?;
                let values = (0..length).map(|_| self.value(kind, depth + 1));
                Value::List(values.collect::<Result<_, _>>()?)
            }
            10 => Value::Unsigned(self.u64()?),
            11 => Value::Signed(i64::from_le_bytes(self.array()?)),
            12 => Value::Fraction(f64::from_le_bytes(self.array()?)),
            _ => return Err(format!("its header has a value of the unknown type {kind}")),
        })
    }

    fn tensor_info(&mut self, name: &str) -> Result<TensorInfo, String> {
        let dims = self.u32()?;
        if dims > MAX_DIMENSIONS {
            return Err(format!("tensor '{name}' has {dims} dimensions"));
        }
        let shape = (0..dims).map(|_| self.size());
        let mut shape: Vec<usize> = shape.collect::<Result<_, _>>()?;
        // The file has the columns first.
        shape.reverse();
        let code = self.u32()?;
        let format = Format::from_code(code)
            .ok_or_else(|| format!("tensor '{name}' has the unknown format {code}"))?;
        let offset = self.u64()?;
        Ok(TensorInfo {
            format,
            shape,
            offset,
        })
    }
}

const MAGIC: &[u8] = b"GGUF";

/// The alignment of tensors, unless the metadata states another one.
const DEFAULT_ALIGNMENT: u64 = 32;

/// Maximum number of lists within each other: reading them recurses.
const MAX_DEPTH: usize = 8;

/// Maximum number of dimensions of a tensor, as in ggml.
const MAX_DIMENSIONS: u32 = 4;
