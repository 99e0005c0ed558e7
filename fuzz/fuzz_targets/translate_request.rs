//! The fuzzer's entry to `checks::translate_request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::translate_request::check(bytes));
