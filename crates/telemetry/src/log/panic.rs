//! The panic hook: logs the location of a panic, but not its message, which may contain client
//! data.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Installs a hook that writes every panic of the process as one log line instead of free text, and
/// counts it.
pub(super) fn hook(count: &'static AtomicU64) {
    std::panic::set_hook(Box::new(move |panic| {
        count.fetch_add(1, Ordering::Relaxed);
        let place = panic.location().map(ToString::to_string);
        tracing::error!(target: "panic", place, thread = thread::current().name(), "thread panicked");
    }));
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;
    use crate::log::Lines;

    /// A panic is one line of JSON with its location; its message, which may contain a prompt, is
    /// omitted.
    #[test]
    fn p04_p05_i03_a_panic_is_one_line_without_its_words() {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let lines = Lines::default();
        let queue = Arc::clone(&lines.0);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(lines), || {
            let previous = std::panic::take_hook();
            hook(&COUNT);
            let prompt = String::from("my secret\n");
            let caught = catch_unwind(|| panic!("{prompt} cannot be cut"));
            std::panic::set_hook(previous);
            assert!(caught.is_err());
        });
        let text = String::from_utf8(queue.take_all()).unwrap();
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (line["level"].as_str(), line["log"].as_str()),
            (Some("ERROR"), Some("panic")),
            "{text}"
        );
        assert!(
            line["place"].as_str().unwrap().starts_with(file!()),
            "{text}"
        );
        assert!(
            line["thread"].is_string() && !text.contains("secret"),
            "{text}"
        );
        assert_eq!(text.matches('\n').count(), 1, "{text}");
        // Other tests may panic at the same time.
        assert!(COUNT.load(Ordering::Relaxed) >= 1);
    }
}
