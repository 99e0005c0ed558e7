//! The ids of a request in its trace, and the header `traceparent` that carries them:
//! [W3C Trace Context](https://www.w3.org/TR/trace-context/).

use std::fmt::{self, Write as _};
use std::num::{NonZeroU64, NonZeroU128};

use prometheus_client::encoding::{EncodeLabelValue, LabelValueEncoder};

/// The id of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(NonZeroU128);

/// The id of a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(NonZeroU64);

/// The value of a header `traceparent`: a span, to which the request with the header belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The trace.
    pub trace: TraceId,
    /// The span from which the request was sent.
    pub span: SpanId,
    /// True if the sender exports its span.
    pub is_sampled: bool,
}

/// The place of a request in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// The trace.
    pub trace: TraceId,
    /// The client's span, if the trace is the client's.
    pub parent: Option<SpanId>,
    /// The span of the request.
    pub span: SpanId,
    /// True if the request is exported also if it succeeds in time.
    pub is_sampled: bool,
}

impl TraceId {
    /// The id of these bits. All of them being zero is no id, and as unlikely as a collision.
    pub fn new(bits: u128) -> Self {
        Self(NonZeroU128::new(bits).unwrap_or(NonZeroU128::MIN))
    }

    /// The bytes, as OTLP has them.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }

    /// The digits, as logs and headers have them.
    pub fn to_hex(self) -> Hex<16> {
        Hex::new(self.to_bytes())
    }

    /// The 56 bits that are random also if the trace is another system's:
    /// <https://www.w3.org/TR/trace-context-2/#randomness-of-trace-id>.
    pub(crate) fn randomness(self) -> u64 {
        self.0.get() as u64 & ((1 << 56) - 1)
    }
}

impl SpanId {
    /// The id of these bits.
    pub fn new(bits: u64) -> Self {
        Self(NonZeroU64::new(bits).unwrap_or(NonZeroU64::MIN))
    }

    /// The bytes, as OTLP has them.
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

impl SpanId {
    fn to_hex(self) -> Hex<8> {
        Hex::new(self.to_bytes())
    }
}

impl TraceParent {
    /// The value of the header.
    pub fn to_header(self) -> [u8; LENGTH] {
        let mut value = *b"00-________________________________-________________-00";
        value[3..35].copy_from_slice(self.trace.to_hex().as_str().as_bytes());
        value[36..52].copy_from_slice(self.span.to_hex().as_str().as_bytes());
        value[LENGTH - 1] += u8::from(self.is_sampled);
        value
    }

    /// Reads the value of a header. `None` if it is invalid; then the trace begins anew.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (fixed, rest) = value.split_at_checked(LENGTH)?;
        let [version, trace, span, flags] = [0..2, 3..35, 36..52, 53..55].map(|at| &fixed[at]);
        // Later versions may have more fields.
        let has_valid_end = match hex(version)? {
            0xff => false,
            0 => rest.is_empty(),
            _ => rest.first().is_none_or(|byte| *byte == b'-'),
        };
        let is_separated = [2, 35, 52].iter().all(|at| fixed[*at] == b'-');
        if !has_valid_end || !is_separated {
            return None;
        }
        let span = u64::try_from(hex(span)?).ok()?;
        Some(Self {
            trace: TraceId(NonZeroU128::new(hex(trace)?)?),
            span: SpanId(NonZeroU64::new(span)?),
            is_sampled: hex(flags)? & SAMPLED != 0,
        })
    }
}

impl TraceContext {
    /// The header for the attempt of this number, from 0.
    pub fn of_attempt(&self, number: usize) -> TraceParent {
        TraceParent {
            trace: self.trace,
            span: self.attempt_span(number),
            is_sampled: self.is_sampled,
        }
    }

    /// The span of the attempt of this number. It follows from the span of the request, so that no
    /// attempt has to keep it.
    pub fn attempt_span(&self, number: usize) -> SpanId {
        // An odd factor, so that no two numbers have the same product.
        let distance = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        SpanId::new(self.span.0.get().wrapping_add(distance))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_hex().as_str())
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_hex().as_str())
    }
}

impl EncodeLabelValue for TraceId {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        write!(encoder, "{self}")
    }
}

impl EncodeLabelValue for SpanId {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> fmt::Result {
        write!(encoder, "{self}")
    }
}

/// The value of the header.
impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(str::from_utf8(&self.to_header()).unwrap_or_default())
    }
}

/// Lower-case hexadecimal digits of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Hex<const N: usize>([[u8; 2]; N]);

impl<const N: usize> Hex<N> {
    fn new(bytes: [u8; N]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        Self(bytes.map(|byte| [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)])))
    }

    /// The digits.
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.0.as_flattened()).unwrap_or_default()
    }
}

/// Reads lower-case hexadecimal digits: capital ones are invalid.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// The length of a value of version 0.
const LENGTH: usize = 55;
/// The flag of a span that is exported. The others are cleared, as their meaning is not known.
const SAMPLED: u128 = 1;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The example of <https://www.w3.org/TR/trace-context/#examples-of-http-traceparent-headers>.
    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn the_example_of_the_recommendation_is_read_and_written() {
        let read = TraceParent::parse(EXAMPLE.as_bytes()).unwrap();
        assert_eq!(read.trace.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(read.span.to_string(), "00f067aa0ba902b7");
        assert!(read.is_sampled);
        assert_eq!(read.to_string(), EXAMPLE);
        let unsampled = EXAMPLE.replace("-01", "-00");
        let read = TraceParent::parse(unsampled.as_bytes()).unwrap();
        assert!(!read.is_sampled);
        assert_eq!(read.to_string(), unsampled);
    }

    /// The rules of <https://www.w3.org/TR/trace-context/#versioning-of-traceparent>.
    #[test]
    fn only_valid_values_are_read() {
        for valid in [
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff",
        ] {
            assert!(TraceParent::parse(valid.as_bytes()).is_some(), "{valid}");
        }
        for invalid in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00F067AA0BA902B7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.more",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
        ] {
            assert_eq!(TraceParent::parse(invalid.as_bytes()), None, "{invalid}");
        }
    }

    #[test]
    fn the_spans_of_a_request_differ() {
        let context = TraceContext {
            trace: TraceId::new(7),
            parent: None,
            span: SpanId::new(u64::MAX),
            is_sampled: true,
        };
        let spans = (0..100).map(|number| context.attempt_span(number));
        let spans: HashSet<_> = spans
            .chain([context.span])
            .map(|it| it.to_string())
            .collect();
        assert_eq!(spans.len(), 101);
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(trace: u128, span: u64, is_sampled: bool) {
            let parent = TraceParent { trace: TraceId::new(trace), span: SpanId::new(span), is_sampled };
            prop_assert_eq!(TraceParent::parse(parent.to_string().as_bytes()), Some(parent));
        }

        #[test]
        fn nothing_that_a_client_sends_panics(value in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = TraceParent::parse(&value);
        }
    }
}
