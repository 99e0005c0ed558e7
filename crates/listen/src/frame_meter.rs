//! Limits the frames of an HTTP/2 connection that carry neither a request nor data.
//!
//! The crate `h2` bounds what a connection can make it keep, but not how often a client may send what
//! is cheap to send: a `PING` or a `SETTINGS` that has to be acknowledged, or a `RST_STREAM` for each
//! request that was just begun (CVE-2023-44487).

use std::time::Duration;

use tokio::time::Instant;

/// Counts such frames in the received bytes.
#[derive(Debug)]
pub(crate) struct FrameMeter {
    /// The received part of the header of the current frame.
    header: Vec<u8>,
    /// The bytes that are left of its payload.
    payload: usize,
    second: Instant,
    frames: u32,
}

/// Too many such frames were received within a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flood;

impl FrameMeter {
    /// Begins with a connection, whose first bytes are the preface.
    pub(crate) fn new() -> Self {
        Self {
            header: Vec::with_capacity(HEADER),
            payload: PREFACE.len(),
            second: Instant::now(),
            frames: 0,
        }
    }

    /// Counts the frames in the next received bytes.
    pub(crate) fn note(&mut self, mut bytes: &[u8]) -> Result<(), Flood> {
        while !bytes.is_empty() {
            let skipped = self.payload.min(bytes.len());
            self.payload -= skipped;
            bytes = &bytes[skipped..];
            let missing = (HEADER - self.header.len()).min(bytes.len());
            self.header.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if let &[a, b, c, kind, ..] = &self.header[..]
                && self.header.len() == HEADER
            {
                self.header.clear();
                self.payload = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.count(kind)?;
            }
        }
        Ok(())
    }

    fn count(&mut self, kind: u8) -> Result<(), Flood> {
        if CARRIES_SOMETHING.contains(&kind) {
            return Ok(());
        }
        self.frames += 1;
        if self.frames <= MAX_PER_SECOND {
            return Ok(());
        }
        let now = Instant::now();
        if now < self.second + Duration::from_secs(1) {
            return Err(Flood);
        }
        (self.second, self.frames) = (now, 1);
        Ok(())
    }
}

/// The beginning of a connection (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The size of a frame's header (RFC 9113 §4.1).
const HEADER: usize = 9;
/// `DATA`, `HEADERS`, `WINDOW_UPDATE` and `CONTINUATION`. `h2` bounds the small frames of data, the
/// frames of a head, and the streams. A client may send an update of a window for each frame of data
/// that it gets.
const CARRIES_SOMETHING: [u8; 4] = [0, 1, 8, 9];
/// More than a busy client needs: it may cancel a thousand requests in each second.
const MAX_PER_SECOND: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0abcdefgh";
    const UPDATE: &[u8] = b"\0\0\x04\x08\0\0\0\0\0\0\0\0\x01";

    /// A meter of a connection whose preface was received.
    fn open() -> FrameMeter {
        let mut meter = FrameMeter::new();
        meter.note(PREFACE).unwrap();
        meter
    }

    #[tokio::test(start_paused = true)]
    async fn a_thousand_pings_in_a_second_are_accepted() {
        let mut meter = open();
        for _ in 0..3 {
            meter.note(&PING.repeat(1000)).unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        meter.note(&PING.repeat(1000)).unwrap();
        assert_eq!(meter.note(PING), Err(Flood));
    }

    #[tokio::test(start_paused = true)]
    async fn frames_are_found_wherever_the_bytes_are_split() {
        let mut meter = FrameMeter::new();
        let bytes = [PREFACE, &PING.repeat(1000), UPDATE].concat();
        for piece in bytes.chunks(7) {
            meter.note(piece).unwrap();
        }
        assert_eq!(meter.note(PING), Err(Flood));
    }

    #[tokio::test(start_paused = true)]
    async fn data_and_window_updates_are_not_counted() {
        let mut meter = open();
        let data = [&b"\0\x10\0\0\0\0\0\0\x01"[..], &[6; 4096]].concat();
        meter.note(&data.repeat(2000)).unwrap();
        meter.note(&UPDATE.repeat(5000)).unwrap();
    }
}
