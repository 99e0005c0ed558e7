//! What panics have said, those of tasks too, kept for each thread until it was looked at.

use std::cell::RefCell;

thread_local! {
    static SAID: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps every panic from now on, instead of telling it.
pub(crate) fn keep() {
    std::panic::set_hook(Box::new(|panic| SAID.with(|said| said.borrow_mut().push(panic.to_string()))));
}

/// What the panics of this thread have said since it was last asked.
pub(crate) fn take() -> Vec<String> {
    SAID.with(RefCell::take)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task that panics takes nobody with it, and is told of all the same.
    #[test]
    fn a_panic_of_a_task_is_kept() {
        keep();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.block_on(async { tokio::spawn(async { panic!("a task fell") }).await });
        assert!(task.is_err());
        let said = take();
        assert!(said.len() == 1 && said[0].contains("a task fell"), "{said:?}");
    }
}
