//! The fuzzer's entry to `checks::translate_stream`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::translate_stream::check(bytes));
