//! The fuzzer's entry to `checks::chat_events`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::chat_events::check(bytes));
