//! The fuzzer's entry to `checks::fetch_address`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::fetch_address::check(bytes));
