//! The fuzzer's entry to `checks::chat_request`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::chat_request::check(bytes));
