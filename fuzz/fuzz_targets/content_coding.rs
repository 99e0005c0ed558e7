//! The fuzzer's entry to `checks::content_coding`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::content_coding::check(bytes));
