//! What panics have said, those of tasks too, kept until it was looked at.

use std::cell::RefCell;
use std::sync::{Mutex, Once, PoisonError};

thread_local! {
    /// Of a thread that puts faults.
    static SAID: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Of threads that work for others, and so for a fault that may be any.
static ELSEWHERE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Keeps every panic from now on, instead of telling it. Tests tell it as well, since a test that fails panics.
pub(crate) fn keep() {
    static KEPT: Once = Once::new();
    KEPT.call_once(keep_all);
}

fn keep_all() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if cfg!(test) {
            tell(panic);
        }
        let panic = panic.to_string();
        SAID.with_borrow_mut(|said| match said {
            Some(said) => said.push(panic),
            None => ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner).push(panic),
        });
    }));
}

/// What the panics of this thread, and of those that may work for it, have said since it was last asked.
pub(crate) fn take() -> Vec<String> {
    let mut said = SAID.replace(Some(Vec::new())).unwrap_or_default();
    said.append(&mut ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner));
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task that panics takes nobody with it, and is told of all the same.
    #[test]
    fn a_panic_of_a_task_is_kept() {
        keep();
        take();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let task = runtime.block_on(async { tokio::spawn(async { panic!("a task fell") }).await });
        assert!(task.is_err());
        let said = take();
        assert!(said.len() == 1 && said[0].contains("a task fell"), "{said:?}");
    }
}
