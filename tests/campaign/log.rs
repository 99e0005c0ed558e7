//! The gateway's log at the most verbose level, kept per thread until it is read.

use std::cell::RefCell;
use std::io;
use std::sync::Once;

use tracing::level_filters::LevelFilter;

thread_local! {
    static LINES: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps everything that is logged from now on.
pub(crate) fn keep() {
    static KEPT: Once = Once::new();
    KEPT.call_once(|| {
        let all = tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE);
        all.with_writer(|| Keep)
            .with_ansi(false)
            .without_time()
            .init();
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
