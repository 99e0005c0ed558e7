//! The fuzzer's entry to `checks::images_request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::images_request::check(bytes));
