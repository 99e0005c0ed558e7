//! The fuzzer's entry to `checks::responses_request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::responses_request::check(bytes));
