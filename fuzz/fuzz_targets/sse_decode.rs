//! The fuzzer's entry to `checks::sse_decode`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::sse_decode::check(bytes));
