//! Captures the messages of panics, also of panics in tasks, until they are read.

use std::cell::RefCell;
use std::sync::{Mutex, Once, PoisonError};

thread_local! {
    /// Of a thread that runs faults.
    static CAPTURED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Of helper threads, whose work may belong to any fault.
static ELSEWHERE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Captures every panic from now on, instead of printing it. In tests it is printed as well, since
/// a failing test panics.
pub(crate) fn keep() {
    static KEPT: Once = Once::new();
    KEPT.call_once(keep_all);
}

fn keep_all() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if cfg!(test) {
            print(panic);
        }
        let panic = panic.to_string();
        CAPTURED.with_borrow_mut(|captured| match captured {
            Some(captured) => captured.push(panic),
            None => ELSEWHERE
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(panic),
        });
    }));
}

/// Returns the messages of the panics of this thread, and of those that may work for it, since the
/// last call.
pub(crate) fn take() -> Vec<String> {
    let mut captured = CAPTURED.replace(Some(Vec::new())).unwrap_or_default();
    captured.append(&mut ELSEWHERE.lock().unwrap_or_else(PoisonError::into_inner));
    captured
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A panic of a task affects no other task, and is captured.
    #[test]
    fn a_panic_of_a_task_is_kept() {
        keep();
        take();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let task = runtime.block_on(async { tokio::spawn(async { panic!("a task fell") }).await });
        assert!(task.is_err());
        let captured = take();
        assert!(
            captured.len() == 1 && captured[0].contains("a task fell"),
            "{captured:?}"
        );
    }
}
