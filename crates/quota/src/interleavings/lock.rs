//! The lock of the shared ledger in the tests: loom's where a test explores interleavings, and else the
//! standard library's, because loom's exists only within its models.

use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError};

/// A lock like the standard library's.
#[derive(Debug)]
pub(crate) enum Mutex<T> {
    Std(std::sync::Mutex<T>),
    Loom(loom::sync::Mutex<T>),
}

/// The access to the value that a [`Mutex`] protects.
#[derive(Debug)]
pub(crate) enum MutexGuard<'m, T> {
    Std(std::sync::MutexGuard<'m, T>),
    Loom(loom::sync::MutexGuard<'m, T>),
}

/// Calls `create`, in which each new lock is loom's.
pub(super) fn of_loom<T>(create: impl FnOnce() -> T) -> T {
    OF_LOOM.set(true);
    let created = create();
    OF_LOOM.set(false);
    created
}

thread_local! {
    static OF_LOOM: Cell<bool> = const { Cell::new(false) };
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        if OF_LOOM.get() {
            Self::Loom(loom::sync::Mutex::new(T::default()))
        } else {
            Self::Std(std::sync::Mutex::default())
        }
    }
}

impl<T> Mutex<T> {
    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        match self {
            Self::Std(mutex) => wrapped(mutex.lock(), MutexGuard::Std),
            Self::Loom(mutex) => wrapped(mutex.lock(), MutexGuard::Loom),
        }
    }
}

fn wrapped<G, W>(locked: LockResult<G>, wrap: fn(G) -> W) -> LockResult<W> {
    let poisoned = |error: PoisonError<G>| PoisonError::new(wrap(error.into_inner()));
    locked.map(wrap).map_err(poisoned)
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Std(guard) => guard,
            Self::Loom(guard) => guard,
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::Std(guard) => guard,
            Self::Loom(guard) => guard,
        }
    }
}
