//! The fuzzer's entry to `checks::picture_head`.

#![no_main]

libfuzzer_sys::fuzz_target!(init: let_decoders_panic(), |bytes: &[u8]| checks::picture_head::check(bytes));

/// Decoders panic on damaged pictures, and `decode` catches that. The fuzzer would end at the panic
/// itself; with this hook only a panic that is not caught ends it, and so does one of our own code.
fn let_decoders_panic() {
    let end = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_ours = panic
            .location()
            .is_none_or(|place| !place.file().contains("/registry/"));
        if is_ours {
            end(panic);
        }
    }));
}
