//! The binary. All its code is in the library, so that tests can run a gateway in their own
//! process.

use std::process::ExitCode;

#[cfg(feature = "jemalloc")]
use tikv_jemallocator::Jemalloc;

/// jemalloc, because it fragments least with the small, long-lived allocations of streams among the
/// large, short-lived ones of unary requests.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    sluicegate_server::main()
}
