//! The multipart form: it is equivalent to the JSON form, and its violations name its parts.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use multer::Multipart;
use serde_json::{Value, json};
use sluicegate_images::{Edit, Form, FormFile, PartKind, Rules, part};
use wire::Violations;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\r";
const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01";
const GIF: &[u8] = b"GIF89a\x05\0\x07\0\0\0";

/// Parses a form from a request body.
fn read(body: &'static [u8]) -> Edit {
    let chunks = body
        .chunks(100)
        .map(|chunk| Ok::<_, Infallible>(Bytes::from_static(chunk)));
    let mut multipart = Multipart::new(stream::iter(chunks), "sgboundary7f2a");
    let mut form = Form::default();
    while let Some(field) = multipart.next_field().now_or_never().unwrap().unwrap() {
        let name = field.name().unwrap().to_owned();
        let kind = part(&name, field.file_name().is_some());
        let bytes = field.bytes().now_or_never().unwrap().unwrap();
        match kind {
            PartKind::Text => form.text(&name, std::str::from_utf8(&bytes).unwrap()),
            PartKind::Picture => form.picture(&name, bytes),
            PartKind::File => panic!("{name}"),
        }
    }
    form.finish().unwrap()
}

fn json_form(body: Value) -> Edit {
    Edit::read(body.to_string().as_bytes()).unwrap()
}

/// Builds a form from settings and files.
fn form(settings: &[(&str, &str)], files: &[(&str, &'static [u8])]) -> Result<Edit, Violations> {
    let mut form = Form::default();
    settings
        .iter()
        .for_each(|(name, value)| form.text(name, value));
    files
        .iter()
        .for_each(|(name, file)| form.picture(name, Bytes::from_static(file)));
    form.finish()
}

/// Returns the code and the field of every violation of a form.
fn violations(settings: &[(&str, &str)], files: &[(&str, &'static [u8])]) -> Vec<(String, String)> {
    let found = form(settings, files).unwrap_err();
    found
        .iter()
        .map(|found| (found.code().as_str().to_owned(), found.param.clone()))
        .collect()
}

#[track_caller]
fn assert_refused(
    settings: &[(&str, &str)],
    files: &[(&str, &'static [u8])],
    code: &str,
    param: &str,
) {
    assert_eq!(
        violations(settings, files),
        [(code.to_owned(), param.to_owned())]
    );
}

#[test]
fn forms_of_clients_are_the_same_requests_as_in_json() {
    let two: Value =
        serde_json::from_str(include_str!("fixtures/images-edit-request-json.json")).unwrap();
    let masked: Value =
        serde_json::from_str(include_str!("fixtures/images-edit-request-json-mask.json")).unwrap();
    assert_eq!(
        read(include_bytes!("fixtures/images-edit-request-one.multipart")),
        json_form(json!({
            "prompt": "Add a red sail", "model": "model-image-2.5-flare", "n": 1, "partial_images": 0, "stream": true,
            "images": [two["images"][0]],
        }))
    );
    assert_eq!(
        read(include_bytes!(
            "fixtures/images-edit-request-two-mask.multipart"
        )),
        json_form(json!({
            "prompt": "Put the first on the second \u{2014} caf\u{e9}", "output_compression": 50,
            "images": two["images"], "mask": masked["mask"],
        }))
    );
}

/// No field name can break out of the header of its part.
#[test]
fn names_in_a_written_form_stay_in_their_heads() {
    let edit = json_form(json!({"prompt": "x", "images": [], "a\"; b=\"c\r\nd: e\r\n\r\nf": 1}));
    let form = sluicegate_images::write_form(&edit.generation, &[], None, &[], "sg").concat();
    let form = String::from_utf8(form).unwrap();
    let heads: Vec<_> = form
        .lines()
        .filter(|line| line.starts_with("Content-Disposition"))
        .collect();
    assert!(
        heads
            .iter()
            .any(|head| head.ends_with("name=\"a_; b=_c__d: e____f\"")),
        "{form}"
    );
    assert_eq!(heads.len(), 2, "{form}");
}

/// Parts are known by their names. Other texts are kept for the server, and other files are refused.
#[test]
fn m06_parts_are_known_by_their_names() {
    for name in [
        "prompt",
        "n",
        "stream",
        "seed",
        "user",
        "input_fidelity",
        "moderation",
    ] {
        assert_eq!(
            (part(name, false), part(name, true)),
            (PartKind::Text, PartKind::File),
            "{name}"
        );
    }
    for name in [
        "image",
        "image[]",
        "image[0]",
        "image[12]",
        "images",
        "images[]",
        "mask",
        "mask[]",
        "mask[0]",
    ] {
        assert_eq!(
            (part(name, false), part(name, true)),
            (PartKind::Picture, PartKind::Picture),
            "{name}"
        );
    }
    for name in [
        "",
        "image[",
        "image]",
        "image[x]",
        "image[-1]",
        "image[0",
        "svg[model]",
        "negative_prompt",
    ] {
        assert_eq!(
            (part(name, false), part(name, true)),
            (PartKind::Text, PartKind::File),
            "{name}"
        );
    }
}

/// Texts of unknown names are kept for the server, as they are.
#[test]
fn m06_unknown_texts_are_kept_for_the_server() {
    let texts = [
        ("prompt", "x"),
        ("negative_prompt", "blue"),
        ("guidance_scale", "3.5"),
        ("tags[]", "a"),
        ("lora", "one"),
        ("lora", "two"),
        ("svg[model]", ""),
    ];
    let edit = form(&texts, &[("image", PNG)]).unwrap();
    let extra = json!({
        "negative_prompt": "blue", "guidance_scale": "3.5", "tags[]": "a", "lora": ["one", "two"],
        "svg[model]": "",
    });
    assert_eq!(Value::Object(edit.generation.extra.clone()), extra);

    let written = sluicegate_images::write_form(&edit.generation, &[], None, &[], "sg").concat();
    let written = String::from_utf8(written).unwrap();
    for (name, value) in texts {
        let part = format!("name=\"{name}\"\r\n\r\n{value}\r\n--sg");
        assert_eq!(written.matches(&part).count(), 1, "{name}: {written}");
    }

    let mut in_json = edit.generation;
    sluicegate_images::name_lists(&mut in_json);
    assert_eq!(in_json.extra["tags"], json!(["a"]));
    assert!(!in_json.extra.contains_key("tags[]"));
    assert_eq!(in_json.extra["svg[model]"], "");
}

/// A part is refused if some server could take its name for the name of a known part.
#[test]
fn m06_names_that_look_like_known_ones_are_refused() {
    for name in [
        "Prompt",
        "MODEL",
        "model[]",
        "n[0]",
        "\u{17f}tream",
        "Mas\u{212a}",
        "image[x]",
        "mask[a][b]",
        "Images[]",
    ] {
        assert_refused(
            &[("prompt", "x"), (name, "y")],
            &[("image", PNG)],
            "unknown_parameter",
            name,
        );
    }
}

/// A form with a file of this name, beside an image.
fn with_file(name: &str) -> Result<Edit, Violations> {
    let mut form = Form::default();
    form.text("prompt", "x");
    form.picture("image", Bytes::from_static(PNG));
    form.file(FormFile {
        name: name.to_owned(),
        filename: "a.png".to_owned(),
        media_type: "image/png".to_owned(),
        bytes: Bytes::from_static(b"pixels"),
    });
    form.finish()
}

/// `markup` is a file of <https://platform.openai.com/docs/api-reference/images/createEdit>.
#[test]
fn m06_files_of_unknown_names_are_kept_for_the_server() {
    let edit = with_file("markup").unwrap();
    let form = sluicegate_images::write_form(&edit.generation, &[], None, &edit.files, "sg");
    let written = String::from_utf8(form.concat()).unwrap();
    let owed = "--sg\r\nContent-Disposition: form-data; name=\"markup\"; filename=\"a.png\"\r\n\
                Content-Type: image/png\r\n\r\npixels\r\n--sg--\r\n";
    assert!(written.ends_with(owed), "{written}");
}

#[test]
fn m06_files_of_unknown_names_are_refused_by_an_engine() {
    let mut rules = Rules::default();
    let found = with_file("markup").unwrap().validate(&rules).unwrap_err();
    let sentence =
        "Unsupported parameter: 'markup' is not supported with this model. Use 'image' instead.";
    assert_eq!(found.to_string(), sentence);
    assert_eq!(found.first().unwrap().param, "markup");
    rules.unknown_settings = true;
    assert!(with_file("markup").unwrap().validate(&rules).is_ok());
}

#[test]
fn m06_files_in_the_place_of_settings_are_refused_by_name() {
    for (name, sentence) in [
        (
            "prompt",
            "Invalid type for 'prompt': expected a string, but got a file instead.",
        ),
        (
            "Mask",
            "Unknown parameter: 'Mask'. Names are compared as they are written: expected 'mask'.",
        ),
    ] {
        let found = with_file(name).unwrap_err();
        assert_eq!(found.to_string(), sentence);
        assert_eq!(found.first().unwrap().param, name);
    }
}

#[test]
fn settings_are_read_from_text() {
    let edit = |name, value| form(&[("prompt", "x"), (name, value)], &[("image", PNG)]).unwrap();
    assert_eq!(edit("n", "2").generation.n, Some(2));
    assert_eq!(edit("n", "1.0").generation.n, Some(1));
    assert_eq!(edit("seed", "-7").generation.seed, Some(-7));
    for (text, value) in [("true", true), ("1", true), ("false", false), ("0", false)] {
        assert_eq!(edit("stream", text).generation.stream, Some(value));
    }
    assert_eq!(edit("user", "1").generation.extra["user"], "1");
    assert_eq!(edit("model", "1").generation.model.as_deref(), Some("1"));
    for name in ["n", "stream", "model", "user", "output_compression"] {
        assert_eq!(
            edit(name, ""),
            form(&[("prompt", "x")], &[("image", PNG)]).unwrap(),
            "an empty text is none"
        );
    }
}

#[test]
fn invalid_settings_are_rejected() {
    let refused = |name, value, code| {
        assert_refused(
            &[("prompt", "x"), (name, value)],
            &[("image", PNG)],
            code,
            name,
        );
    };
    for number in [
        "two",
        "1.5",
        "0x1",
        "+1",
        "1,0",
        "\"1\"",
        "true",
        "null",
        "99999999999999999999",
    ] {
        refused("n", number, "invalid_type");
    }
    for boolean in ["yes", "True", "2", "1.0", "null"] {
        refused("stream", boolean, "invalid_type");
    }
    refused("prompt", "y", "duplicate_parameter");
    for (first, second) in [("1", "1"), ("1", "x")] {
        let settings = [("prompt", "x"), ("seed", first), ("seed", second)];
        assert!(
            violations(&settings, &[("image", PNG)])
                .contains(&("duplicate_parameter".into(), "seed".into()))
        );
    }
    let ranged = form(&[("prompt", "x"), ("n", "11")], &[("image", PNG)]).unwrap();
    assert_eq!(
        ranged
            .validate(&Rules::default())
            .unwrap_err()
            .first()
            .unwrap()
            .param,
        "n"
    );
}

#[test]
fn missing_prompt_or_image_is_rejected() {
    let missing = "missing_required_parameter";
    assert_refused(&[], &[("image", PNG)], missing, "prompt");
    assert_refused(&[("prompt", "")], &[("image", PNG)], missing, "prompt");
    assert_refused(&[("prompt", "x")], &[], missing, "image");
    assert_refused(&[("prompt", "x")], &[("mask", PNG)], missing, "image");
}

#[test]
fn file_types_are_detected_from_their_bytes() {
    let prompt = [("prompt", "x")];
    let edit = form(
        &prompt,
        &[
            ("image[1]", JPEG),
            ("mask", PNG),
            ("image", PNG),
            ("image[]", JPEG),
        ],
    )
    .unwrap();
    let types: Vec<_> = edit
        .sources()
        .map(|source| source.media_type().unwrap())
        .collect();
    assert_eq!(
        types,
        ["image/jpeg", "image/png", "image/jpeg"],
        "in the order in which they came"
    );
    assert_eq!(edit.mask_source().unwrap().media_type(), Some("image/png"));
    for file in [GIF, b"", b"<svg/>", b"\x89PN", b"https://a.example/x.png"] {
        assert_refused(
            &prompt,
            &[("image", PNG), ("image[]", file)],
            "unsupported_file_mimetype",
            "image",
        );
    }
    for file in [JPEG, GIF, b""] {
        assert_refused(
            &prompt,
            &[("image", PNG), ("mask", file)],
            "unsupported_file_mimetype",
            "mask",
        );
    }
    assert_refused(
        &prompt,
        &[("image", PNG), ("mask", PNG), ("mask", PNG)],
        "duplicate_parameter",
        "mask",
    );
    assert_refused(
        &prompt,
        &[("image[]", PNG); 17],
        "array_above_max_length",
        "image",
    );
    assert_eq!(
        form(&prompt, &[("image[]", PNG); 16])
            .unwrap()
            .sources()
            .count(),
        16
    );
}

#[test]
fn file_errors_name_the_accepted_types() {
    let found = form(&[("prompt", "x")], &[("image", GIF), ("mask", JPEG)]).unwrap_err();
    assert_eq!(
        found.to_string(),
        "Invalid file 'image': unsupported mimetype ('image/gif'). Supported file formats are 'image/jpeg', \
         'image/png', and 'image/webp'. Invalid file 'mask': unsupported mimetype ('image/jpeg'). Supported file \
         formats are 'image/png'."
    );
    assert_eq!(
        form(&[("prompt", "x")], &[("image", b"?")])
            .unwrap_err()
            .to_string(),
        "Invalid file 'image': unsupported mimetype ('application/octet-stream'). Supported file formats are \
         'image/jpeg', 'image/png', and 'image/webp'."
    );
}

/// All violations of a form are reported at once.
#[test]
fn m06_every_fault_is_reported_at_once() {
    let found = violations(
        &[("n", "two"), ("stream", "perhaps")],
        &[("image", GIF), ("mask", JPEG)],
    );
    let params: Vec<_> = found.iter().map(|(_, param)| param.as_str()).collect();
    assert_eq!(params, ["prompt", "n", "stream", "image", "mask"]);
}

/// The debug output of a form contains neither the prompt nor the images.
#[test]
fn i09_debug_shows_neither_prompt_nor_pictures() {
    let mut form = Form::default();
    form.text("prompt", "secret");
    form.picture("image", Bytes::from_static(PNG));
    assert_eq!(
        format!("{form:?}"),
        r#"Form(settings ["prompt"], 1 images, 0 masks, 0 files)"#
    );
}
