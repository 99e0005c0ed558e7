//! The fuzzer's entry to `checks::responses_events`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::responses_events::check(bytes));
