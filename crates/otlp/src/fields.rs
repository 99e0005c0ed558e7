//! Writes protobuf field by field, for spans. Messages of prost would be built for each of them, and walked several times
//! for the lengths of what they contain.

use prost::encoding::{WireType, encoded_len_varint, key_len};

/// Appends fields of a message. A field is named by its tag.
pub(crate) trait Fields {
    /// Appends an integer.
    fn varint(&mut self, tag: u32, value: u64);
    /// Appends an integer of 64 bits.
    fn fixed64(&mut self, tag: u32, value: u64);
    /// Appends an integer of 32 bits.
    fn fixed32(&mut self, tag: u32, value: u32);
    /// Appends a number.
    fn double(&mut self, tag: u32, value: f64);
    /// Appends bytes, a text or a message.
    fn bytes(&mut self, tag: u32, value: &[u8]);
    /// Appends the beginning of a field with so many bytes, which have to follow.
    fn begin(&mut self, tag: u32, length: usize);
}

impl Fields for Vec<u8> {
    fn varint(&mut self, tag: u32, value: u64) {
        push_key(self, tag, WireType::Varint);
        push_varint(self, value);
    }

    fn fixed64(&mut self, tag: u32, value: u64) {
        push_key(self, tag, WireType::SixtyFourBit);
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn fixed32(&mut self, tag: u32, value: u32) {
        push_key(self, tag, WireType::ThirtyTwoBit);
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn double(&mut self, tag: u32, value: f64) {
        self.fixed64(tag, value.to_bits());
    }

    fn bytes(&mut self, tag: u32, value: &[u8]) {
        self.begin(tag, value.len());
        self.extend_from_slice(value);
    }

    fn begin(&mut self, tag: u32, length: usize) {
        push_key(self, tag, WireType::LengthDelimited);
        push_varint(self, length as u64);
    }
}

fn push_key(to: &mut Vec<u8>, tag: u32, wire_type: WireType) {
    push_varint(to, u64::from(tag << 3 | wire_type as u32));
}

/// Appends seven bits in a byte, the lowest ones first. `encode_varint` of prost asks the buffer for its room at
/// each byte.
fn push_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

/// The length of an integer with its tag.
pub(crate) fn varint_length(tag: u32, value: u64) -> usize {
    key_len(tag) + encoded_len_varint(value)
}

/// The length of so many bytes with their tag.
pub(crate) fn bytes_length(tag: u32, length: usize) -> usize {
    varint_length(tag, length as u64) + length
}
