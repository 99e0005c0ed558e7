//! Sluicegate
fn main() {}
