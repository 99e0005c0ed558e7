//! Each rule, with the code and the path of its violation.

use serde_json::{Value, json};
use sluicegate_images::{Edit, Generation, Rules, Source};
use wire::{ApiError, Violations};

const PNG: &str = "data:image/png;base64,iVBORw0KGgoAAAAN";

fn first_violation(found: Violations) -> (String, String, String) {
    let error = ApiError::from(found);
    (
        error.code.to_owned(),
        error.param.unwrap_or_default(),
        error.message,
    )
}

fn read(change: Value) -> Result<Generation, Violations> {
    let mut body = json!({"prompt": "A boat"});
    body.as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    Generation::read(body.to_string().as_bytes())
}

fn generation(change: Value) -> Result<(), (String, String, String)> {
    let read = read(change).map_err(first_violation)?;
    read.validate(&Rules::default())
        .map(drop)
        .map_err(first_violation)
}

fn edit(body: Value) -> Result<(), (String, String, String)> {
    let read = Edit::read(body.to_string().as_bytes()).map_err(first_violation)?;
    read.validate(&Rules::default())
        .map(drop)
        .map_err(first_violation)
}

#[track_caller]
fn assert_refused(found: Result<(), (String, String, String)>, code: &str, param: &str) {
    let (found_code, found_param, message) = found.unwrap_err();
    assert_eq!(
        (found_code.as_str(), found_param.as_str()),
        (code, param),
        "{message}"
    );
}

#[test]
fn settings_have_their_ranges_and_words() {
    for (change, code, param) in [
        (json!({"prompt": ""}), "empty_string", "prompt"),
        (json!({"prompt": null}), "invalid_type", "prompt"),
        (
            json!({"prompt": "x".repeat(32_001)}),
            "string_above_max_length",
            "prompt",
        ),
        (json!({"n": 0}), "integer_below_min_value", "n"),
        (json!({"n": 11}), "integer_above_max_value", "n"),
        (json!({"n": "1"}), "invalid_type", "n"),
        (json!({"n": 1.5}), "invalid_type", "n"),
        (
            json!({"output_compression": -1}),
            "integer_below_min_value",
            "output_compression",
        ),
        (
            json!({"partial_images": 4, "stream": false}),
            "integer_above_max_value",
            "partial_images",
        ),
        (
            json!({"output_format": "svg"}),
            "unsupported_value",
            "output_format",
        ),
        (json!({"seed": "1"}), "invalid_type", "seed"),
        (json!({"size": "1x10"}), "invalid_value", "size"),
        (
            json!({"partial_images": -1}),
            "integer_below_min_value",
            "partial_images",
        ),
        (
            json!({"partial_images": 4}),
            "integer_above_max_value",
            "partial_images",
        ),
        (
            json!({"output_compression": 101}),
            "integer_above_max_value",
            "output_compression",
        ),
        (json!({"size": "big"}), "invalid_value", "size"),
        (json!({"size": "0x10"}), "invalid_value", "size"),
        (json!({"size": "1024X1024"}), "invalid_value", "size"),
        (json!({"size": "100000x10"}), "invalid_value", "size"),
        (json!({"quality": "best"}), "invalid_value", "quality"),
        (json!({"background": "blue"}), "invalid_value", "background"),
        (
            json!({"background": "transparent", "output_format": "jpeg"}),
            "invalid_value",
            "background",
        ),
        (
            json!({"output_format": "gif"}),
            "unsupported_value",
            "output_format",
        ),
        (
            json!({"response_format": "url"}),
            "unsupported_value",
            "response_format",
        ),
        (json!({"model": ""}), "empty_string", "model"),
        (json!({"stream": "true"}), "invalid_type", "stream"),
    ] {
        assert_refused(generation(change), code, param);
    }
    for change in [
        json!({"n": 10, "partial_images": 3, "stream": true, "size": "auto", "quality": "xhigh"}),
        json!({"n": 1.0, "size": "1254x1254", "response_format": "b64_json", "style": "vivid", "seed": 7}),
        json!({"background": "transparent", "output_format": "webp", "output_compression": 0}),
        json!({"n": null, "size": null, "model": null}),
        json!({"user": 1, "safety_identifier": "a", "moderation": "low", "complexity": {}, "frame_count": 2, "svg": {}}),
    ] {
        assert_eq!(generation(change.clone()), Ok(()), "{change}");
    }
}

#[test]
fn an_edit_starts_from_pictures() {
    let with = |images: Value| edit(json!({"prompt": "x", "images": images}));
    for (found, code, param) in [
        (
            edit(json!({"prompt": "x"})),
            "missing_required_parameter",
            "images",
        ),
        (with(json!([])), "missing_required_parameter", "images"),
        (
            edit(json!({"images": [{"image_url": PNG}]})),
            "missing_required_parameter",
            "prompt",
        ),
        (
            with(json!([{}])),
            "missing_required_parameter",
            "images[0].image_url",
        ),
        (
            with(json!([{"image_url": PNG}, {"file_id": "f"}])),
            "unsupported_parameter",
            "images[1].file_id",
        ),
        (
            with(json!([{"image_url": "http://a.example/x.png"}])),
            "invalid_value",
            "images[0].image_url",
        ),
        (
            with(json!([{"image_url": "data:image/gif;base64,R0lGOA=="}])),
            "invalid_value",
            "images[0].image_url",
        ),
        (
            with(json!([{"image_url": "data:image/png;base64,?"}])),
            "invalid_value",
            "images[0].image_url",
        ),
        (
            with(json!([{"image_url": "data:image/png;base64,"}])),
            "invalid_value",
            "images[0].image_url",
        ),
        (
            with(json!([{"image_url": "data:;base64,aGk="}])),
            "invalid_value",
            "images[0].image_url",
        ),
        (
            with(json!([{"image_url": "boat.png"}])),
            "invalid_value",
            "images[0].image_url",
        ),
        (
            with(json!([{"image_url": 1}])),
            "invalid_type",
            "images[0].image_url",
        ),
        (
            with(json!(vec![json!({"image_url": PNG}); 17])),
            "array_above_max_length",
            "images",
        ),
        (with(json!({"image_url": PNG})), "invalid_type", "images"),
        (
            edit(json!({"prompt": "x", "image": "ftp://a.example"})),
            "invalid_value",
            "image",
        ),
    ] {
        assert_refused(found, code, param);
    }
    assert_eq!(edit(json!({"prompt": "x", "image": PNG})), Ok(()));
    assert_eq!(
        with(json!([{"image_url": PNG}, {"image_url": "https://a.example/x.png"}])),
        Ok(())
    );
}

/// A mask that is not a PNG is rejected with 400.
#[test]
fn i06_a_mask_is_a_png_within_the_request() {
    let with =
        |mask: Value| edit(json!({"prompt": "x", "images": [{"image_url": PNG}], "mask": mask}));
    for url in [PNG, "data:IMAGE/PNG;base64,iVBORw0KGgoAAAAN"] {
        assert_eq!(with(json!({ "image_url": url })), Ok(()));
    }
    assert_refused(
        with(json!({"file_id": "f"})),
        "unsupported_parameter",
        "mask.file_id",
    );
    assert_refused(
        with(json!({})),
        "missing_required_parameter",
        "mask.image_url",
    );
    for url in [
        "https://a.example/mask.png",
        "data:image/jpeg;base64,/9j/",
        "data:image/jpeg;base64,iVBORw0KGgoAAAAN",
        "data:image/png;base64,/9j/4AAQSkZJRgAB",
        "data:image/png;base64,aGk=",
        "data:image/png;base64,?",
        "data:;base64,aGk=",
    ] {
        assert_refused(with(json!({ "image_url": url })), "invalid_value", "mask");
    }
}

/// Violations by invalid images have the same wording in every field.
#[test]
fn i05_a_picture_has_the_same_error_wherever_it_is() {
    let message = |url: &str| {
        edit(json!({"prompt": "x", "images": [{"image_url": url}]}))
            .unwrap_err()
            .2
    };
    assert_eq!(
        message("data:image/gif;base64,R0lGOA=="),
        "Invalid Data URL in 'images[0].image_url': expected one of image/png, image/jpeg, image/webp."
    );
    assert_eq!(
        message("data:image/png;base64,?"),
        "Invalid Data URL in 'images[0].image_url': its content is not base64 (standard alphabet, padded)."
    );
    assert_eq!(
        message("http://a.example/x.png"),
        "Invalid 'images[0].image_url'. Expected a valid URL, but got a value with an invalid format."
    );
}

#[test]
fn the_alias_is_read_when_there_is_no_list() {
    let both =
        json!({"prompt": "x", "image": "https://a.example/b.png", "images": [{"image_url": PNG}]});
    let both = Edit::read(both.to_string().as_bytes()).unwrap();
    assert_eq!(
        both.sources()
            .map(|source| source.media_type())
            .collect::<Vec<_>>(),
        [Some("image/png")]
    );
    assert_eq!(
        both.clone().into_sources().1,
        both.sources().cloned().collect::<Vec<_>>()
    );
    let alias = Edit::read(json!({"prompt": "x", "image": PNG}).to_string().as_bytes()).unwrap();
    assert_eq!(
        alias.clone().into_sources().1,
        alias.sources().cloned().collect::<Vec<_>>()
    );
    assert_eq!(alias.sources().count(), 1);
}

/// DALL·E 3 has qualities of its own: <https://platform.openai.com/docs/api-reference/images/create>.
#[test]
fn a_server_may_know_other_settings() {
    let mut rules = Rules::default();
    rules.unknown_settings = true;
    let read = |change: &Value| read(change.clone()).unwrap();
    for change in [
        json!({"quality": "standard"}),
        json!({"quality": "hd", "style": "vivid"}),
        json!({"background": "blurred"}),
        json!({"output_format": "avif", "output_compression": 101}),
        json!({"output_format": "jpeg", "background": "transparent"}),
        json!({"size": "16:9"}),
        json!({"size": "2K"}),
        json!({"response_format": "url"}),
    ] {
        assert!(read(&change).check_settings().is_err(), "{change}");
        assert!(read(&change).validate(&rules).is_ok(), "{change}");
    }
    for change in [
        json!({"n": 11}),
        json!({"partial_images": 4}),
        json!({"prompt": ""}),
        json!({"model": ""}),
    ] {
        assert!(read(&change).validate(&rules).is_err(), "{change}");
    }
}

/// Programs send `image/jpg`, upper-case types and parameters.
#[test]
fn a_picture_may_have_another_name_of_its_type() {
    for url in [
        "data:image/jpg;base64,/9j/",
        "data:IMAGE/JPEG;base64,/9j/",
        "data:image/jpeg;name=a.jpg;base64,/9j/",
    ] {
        for body in [
            json!({"prompt": "x", "images": [{"image_url": url}]}),
            json!({"prompt": "x", "image": url}),
        ] {
            assert_eq!(edit(body.clone()), Ok(()), "{body}");
            let read = Edit::read(body.to_string().as_bytes()).unwrap();
            let sources: Vec<_> = read.sources().map(Source::media_type).collect();
            assert_eq!(sources, [Some("image/jpeg")]);
        }
    }
}

#[test]
fn a_model_may_take_less() {
    let mut rules = Rules::default();
    (rules.max_count, rules.max_references) = (1, 2);
    let refusal = |body: Value| {
        let edit = Edit::read(body.to_string().as_bytes()).unwrap();
        edit.validate(&rules)
            .map(drop)
            .map_err(|found| ApiError::from(found).message)
    };
    let body = |n: u32, images: usize| json!({"prompt": "x", "n": n, "images": vec![json!({"image_url": PNG}); images]});
    assert_eq!(refusal(body(1, 2)), Ok(()));
    let message =
        "Invalid 'n': integer above maximum value. Expected a value <= 1, but got 2 instead.";
    assert_eq!(refusal(body(2, 2)), Err(message.to_owned()));
    let message = "Invalid 'images': array too long. Expected an array with maximum length 2, but got an array with length 3 instead.";
    assert_eq!(refusal(body(1, 3)), Err(message.to_owned()));
}

/// The debug output of a request contains no image data.
#[test]
fn i09_debug_shows_no_picture() {
    let edit = |url: &str| {
        Edit::read(json!({"prompt": "x", "image": url}).to_string().as_bytes()).unwrap()
    };
    assert!(format!("{:?}", edit(PNG)).contains("Inline(image/png, 12 bytes)"));
    assert!(
        format!("{:?}", edit("data:image/png;base64,c2VjcmV0?")).contains("Url(data:, 31 bytes)")
    );
    assert!(format!("{:?}", edit("https://a.example/x.png")).contains("https://a.example/x.png"));
}
