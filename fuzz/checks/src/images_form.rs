//! Any bytes as the parts of a form: no panic, and a valid form is the same request as in JSON.
//!
//! A part is a byte for its name, a byte for its length, and so many bytes.

use bytes::Bytes;
use images::{Edit, Form, PartKind, Rules, part};

/// Checks one input; a panic is a finding.
pub fn check(parts: &[u8]) {
    let (mut form, mut rest) = (Form::default(), parts);
    while let [name, length, after @ ..] = rest {
        let name = NAMES[usize::from(*name) % NAMES.len()];
        let (content, after) = after.split_at(after.len().min((*length).into()));
        rest = after;
        match part(name, false) {
            PartKind::Text => form.text(name, &String::from_utf8_lossy(content)),
            PartKind::Picture => form.picture(name, Bytes::copy_from_slice(content)),
            PartKind::File => unreachable!("no part has a filename"),
        }
    }
    match form.finish() {
        Ok(edit) => is_the_same_in_json(edit),
        Err(found) => assert!(
            !found.is_empty() && !found.to_string().is_empty(),
            "a refusal says why"
        ),
    }
}

fn is_the_same_in_json(edit: Edit) {
    let written = serde_json::to_vec(&edit).expect("a request has a JSON form");
    let read = Edit::read(&written).expect("a form can be expressed in JSON");
    assert_eq!(read, edit, "nothing is lost");
    let rules = Rules::default();
    assert_eq!(
        read.validate(&rules),
        edit.validate(&rules),
        "both are judged alike"
    );
}

const NAMES: [&str; 20] = [
    "prompt",
    "model",
    "n",
    "size",
    "quality",
    "background",
    "output_format",
    "output_compression",
    "stream",
    "partial_images",
    "response_format",
    "seed",
    "user",
    "input_fidelity",
    "moderation",
    "image",
    "image[]",
    "image[0]",
    "mask",
    "svg[model]",
];
