//! The gateway's log at the most verbose level, kept per thread until it is read.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps everything that is logged from now on, without the frames of HTTP/2, which clients and
/// gateway log in the same place.
pub(crate) fn keep() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(|| Keep)
            .with_ansi(false)
            .without_time();
        let all = Targets::new()
            .with_default(LevelFilter::TRACE)
            .with_target("h2", LevelFilter::OFF);
        let log = tracing_subscriber::registry().with(lines).with(all);
        tracing::subscriber::set_global_default(log).expect("there is no other");
    });
}

/// Returns the log lines of this thread since the last call.
pub(crate) fn take() -> String {
    LINES.with(|lines| {
        String::from_utf8_lossy(&std::mem::take(&mut *lines.borrow_mut())).into_owned()
    })
}

struct Keep;

impl io::Write for Keep {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LINES.with(|lines| lines.borrow_mut().extend(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
