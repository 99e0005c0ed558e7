//! The fuzzer's entry to `checks::auth_header`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::auth_header::check(bytes));
