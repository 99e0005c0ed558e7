//! The fuzzer's entry to `checks::messages_events`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::messages_events::check(bytes));
