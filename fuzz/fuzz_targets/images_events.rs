//! The fuzzer's entry to `checks::images_events`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::images_events::check(bytes));
