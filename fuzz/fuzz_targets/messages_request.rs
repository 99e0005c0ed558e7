//! The fuzzer's entry to `checks::messages_request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::messages_request::check(bytes));
