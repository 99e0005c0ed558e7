//! Any text as a data URL: parsing, validation and decoding agree, and encoding gives the same
//! text.

use images::Source;
use wire::DataUrl;

use crate::leading_text;

/// Checks one input; a panic is a finding.
pub fn check(bytes: &[u8]) {
    let text = leading_text(bytes);
    let url = DataUrl::parse(text);
    assert!(
        url.is_err() || DataUrl::is_meant(text),
        "what parses was meant"
    );
    let bytes = url.ok().and_then(|url| {
        let bytes = url.decode();
        assert_eq!(
            url.check().is_ok(),
            bytes.is_ok(),
            "checked without being decoded"
        );
        bytes.ok()
    });
    let source = Source::from(text);
    let written = serde_json::to_value(&source).expect("a source is a string");
    let written = written.as_str().expect("a source is a string");
    match (source, bytes) {
        (Source::Inline { bytes: found, .. }, Some(bytes)) => {
            assert_eq!(found, bytes, "decoded the same");
            // The scheme may be in upper case.
            assert_eq!(
                (&written[..5], &written[5..]),
                ("data:", &text[5..]),
                "written the same"
            );
        }
        (Source::Url(_), None) => assert_eq!(written, text, "kept as it came"),
        (source, _) => panic!("{source:?}"),
    }
}
