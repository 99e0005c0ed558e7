//! The fuzzer's entry to `checks::translate_relay`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::translate_relay::check(bytes));
