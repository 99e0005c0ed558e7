//! Damaged and unsupported weights.

use std::fs;
use std::path::PathBuf;

use sluicegate_text_engine::{EmbeddedTextEngine, LoadError, Options, weights};

/// Writes a file in the temporary directory of the test run.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

fn refused(path: PathBuf) -> LoadError {
    let model = Some(path.clone());
    let error = EmbeddedTextEngine::load(Options {
        model,
        ..Options::default()
    })
    .err()
    .unwrap();
    let text = error.to_string();
    assert!(
        text.contains(&path.display().to_string()) && text.contains("`cargo xtask fetch-model`"),
        "{text}"
    );
    assert!(!text.contains('\n'), "{text}");
    error
}

/// The header of the real weights.
fn header() -> Vec<u8> {
    let whole = fs::read(weights::default_path());
    let mut whole = whole.unwrap_or_else(|_| panic!("no weights: run `cargo xtask fetch-model`"));
    whole.truncate(4 << 20);
    whole
}

/// The offset of a text in the header.
fn offset_of(header: &[u8], text: &str) -> usize {
    header
        .windows(text.len())
        .position(|window| window == text.as_bytes())
        .unwrap()
}

#[test]
fn a_missing_file_is_reported() {
    assert!(matches!(
        refused(PathBuf::from("/nowhere/model.gguf")),
        LoadError::Missing { .. }
    ));
}

/// A truncated file is damaged, and its error names the path and the remedy.
#[test]
fn e01_a_file_cut_short_is_damaged() {
    for (name, length) in [
        ("empty", 0),
        ("magic", 4),
        ("head", 1000),
        ("tensors", 4 << 20),
    ] {
        assert!(
            matches!(
                refused(file(name, &header()[..length])),
                LoadError::Damaged { .. }
            ),
            "{name}"
        );
    }
}

/// A file of another format is damaged.
#[test]
fn e01_another_format_is_damaged() {
    let LoadError::Damaged { reason, .. } = refused(file("text", b"hello there")) else {
        panic!()
    };
    assert_eq!(reason, "it does not begin with 'GGUF'");
}

/// A model of another architecture is not supported.
#[test]
fn e01_another_architecture_is_not_taken() {
    let mut whole = fs::read(weights::default_path()).unwrap();
    let at = offset_of(&whole, "general.architecture") + "general.architecture".len() + 4 + 8;
    assert_eq!(&whole[at..at + 5], b"llama");
    whole[at..at + 5].copy_from_slice(b"camel");
    let path = file("camel.gguf", &whole);
    let error = refused(path.clone());
    fs::remove_file(path).unwrap();
    let LoadError::Unsupported { reason, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(reason, "its architecture is 'camel', accepted is 'llama'");
}

/// A single flipped bit in a tensor of the default weights is detected.
#[test]
fn e01_a_flipped_bit_of_a_tensor_is_damage() {
    let mut whole = fs::read(weights::default_path()).unwrap();
    let at = whole.len() - 4096;
    whole[at] ^= 1;
    let path = file(weights::NAME, &whole);
    let error = refused(path.clone());
    fs::remove_file(path).unwrap();
    let LoadError::Damaged { reason, .. } = error else {
        panic!("{error}")
    };
    assert!(reason.starts_with("its SHA-256 is "), "{reason}");
}

/// Flipped bytes of the header are errors, never a panic.
#[test]
fn e01_flipped_bytes_of_the_header_never_panic() {
    let header = header();
    let start = offset_of(&header, "general.architecture");
    for at in (0..start + 600).step_by(7) {
        let mut flipped = header.clone();
        flipped[at] ^= 0xff;
        let path = file("flipped", &flipped);
        assert!(
            EmbeddedTextEngine::load(Options {
                model: Some(path),
                ..Options::default()
            })
            .is_err(),
            "byte {at}"
        );
    }
}
