//! The binary. Everything is in the library beside it, so that tests can have a gateway in their own process.

use std::process::ExitCode;

use tikv_jemallocator::Jemalloc;

/// Many small things of long streams among large ones of short requests leave holes, and this one leaves the fewest.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    sluicegate_server::main()
}
