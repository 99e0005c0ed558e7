//! The fuzzer's entry to `checks::data_url`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::data_url::check(bytes));
