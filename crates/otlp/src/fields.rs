//! Writes protobuf field by field, for spans. Messages of prost would be built for each of them, and walked several times
//! for the lengths of what they contain.

use prost::encoding::{WireType, encoded_len_varint};

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
    /// Appends bytes or a text.
    fn bytes(&mut self, tag: u32, value: &[u8]);
    /// Appends a message with the fields that `write` appends, or a text of several pieces.
    fn message(&mut self, tag: u32, write: impl FnOnce(&mut Self));
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
        push_key(self, tag, WireType::LengthDelimited);
        push_varint(self, value.len() as u64);
        self.extend_from_slice(value);
    }

    /// Most messages are short, so that their length needs the one byte that is left for it.
    fn message(&mut self, tag: u32, write: impl FnOnce(&mut Self)) {
        push_key(self, tag, WireType::LengthDelimited);
        let start = self.len();
        self.push(0);
        write(self);
        let length = self.len() - start - 1;
        match u8::try_from(length) {
            Ok(length @ 0..0x80) => self[start] = length,
            _ => widen(self, start, length),
        }
    }
}

/// Makes room for a length of several bytes in place of the byte at `start`.
fn widen(message: &mut Vec<u8>, start: usize, length: usize) {
    let (end, more) = (message.len(), encoded_len_varint(length as u64) - 1);
    message.resize(end + more, 0);
    message.copy_within(start + 1..end, start + 1 + more);
    let (mut rest, last) = (length, start + more);
    for byte in &mut message[start..last] {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    message[last] = rest as u8;
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
