//! The fuzzer's entry to `checks::images_form`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::images_form::check(bytes));
