//! A sequence of gateways.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use tokio::runtime::{Builder, Runtime};

use crate::fault::{Fault, Kind, Vendors};
use crate::harness::Harness;
use crate::judge::{Verdict, judge};
use crate::{log, panics};

/// A gateway for a block of faults, replaced by a new one after the block or when it has ended.
pub(crate) struct Gateways<'a> {
    key: &'a Path,
    vendors: Vendors,
    current: Option<(Runtime, Harness)>,
}

impl<'a> Gateways<'a> {
    /// Starts without a gateway for this block; the key for its upstreams is in the file `key`.
    pub(crate) fn new(key: &'a Path, seed: u64, block: u64) -> Self {
        Self {
            key,
            vendors: Vendors::of_block(seed, block),
            current: None,
        }
    }

    /// Runs a fault against the gateway; returns violations as a message.
    pub(crate) fn run(&mut self, fault: &Fault) -> Result<Verdict, String> {
        let (runtime, harness) = self.current.get_or_insert_with(|| {
            let runtime = Builder::new_current_thread()
                .enable_time()
                .start_paused(true)
                .build()
                .unwrap();
            let harness = Harness::new(self.key, self.vendors);
            (runtime, harness)
        });
        log::take();
        panics::take();
        let verdict = catch_unwind(AssertUnwindSafe(|| {
            let observed = runtime.block_on(harness.run_fault(fault));
            judge(fault, &observed, &log::take(), &panics::take())
        }));
        if verdict.is_err() || matches!(fault.kind, Kind::Shutdown(_) | Kind::Drain(_)) {
            self.current = None;
        }
        verdict.map_err(|_| panics::take().join("\n"))
    }
}

/// The number of faults for the same gateway, unless it ends. The result of a fault may depend on
/// those before it: on the connections that they left open, and on the rest of the budget for
/// retries.
pub(crate) const BLOCK: u64 = 100;
