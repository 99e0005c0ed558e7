//! The memory that connections read into, one per thread: no connection holds any while it waits.

use std::cell::Cell;

thread_local! {
    static SCRATCH: Cell<Option<Box<[u8]>>> = const { Cell::new(None) };
}

/// Calls `act` with the memory of this thread. A call within a call gets memory of its own.
pub(crate) fn with<T>(act: impl FnOnce(&mut [u8]) -> T) -> T {
    let mut scratch = SCRATCH.take().unwrap_or_else(|| vec![0; SIZE].into());
    let result = act(&mut scratch);
    SCRATCH.set(Some(scratch));
    result
}

/// The maximum number of bytes of one read.
const SIZE: usize = 64 << 10;
