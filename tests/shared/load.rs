//! Clients that send requests to gateways all the time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::scope;
use std::time::Duration;

use testkit::Gateway;

use crate::fleet::status;

/// The responses that clients have got, by status.
#[derive(Debug, Default)]
pub(crate) struct Load {
    stopped: AtomicBool,
    pub(crate) ok: AtomicUsize,
    /// 429: over a quota.
    pub(crate) limited: AtomicUsize,
    /// 503: the store does not answer.
    pub(crate) unavailable: AtomicUsize,
    /// Any other status.
    pub(crate) other: AtomicUsize,
}

impl Load {
    /// Has `clients` send requests to each gateway, one after another, while `during` runs.
    pub(crate) fn run(gateways: &[&Gateway], clients: usize, during: impl FnOnce(&Self)) -> Self {
        let load = Self::default();
        scope(|scope| {
            for gateway in gateways {
                for _ in 0..clients {
                    scope.spawn(|| load.send(gateway));
                }
            }
            // Also if an assertion fails: the clients have to end.
            let _stop = Stop(&load);
            during(&load);
        });
        load
    }

    fn send(&self, gateway: &Gateway) {
        while !self.stopped.load(Ordering::Relaxed) {
            let count = match status(gateway) {
                200 => &self.ok,
                429 => &self.limited,
                503 => &self.unavailable,
                _ => &self.other,
            };
            if count.fetch_add(1, Ordering::Relaxed) > 0 && !std::ptr::eq(count, &self.ok) {
                // As clients that were refused do.
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    pub(crate) fn ok(&self) -> usize {
        self.ok.load(Ordering::Relaxed)
    }
}

struct Stop<'a>(&'a Load);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stopped.store(true, Ordering::Relaxed);
    }
}
