//! The lenient reader: forms that it tolerates, images that are not pictures, and its law.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_images::lenient::{
    Answer, Collector, Picture, PictureCheck, ReadError, Reader, Tokens, Update, collect, repaired,
    reported_tokens, tokens,
};
use sluicegate_images::{
    Background, Encoder, Operation, OutputFormat, Quality, Settled, TokensDetails, Usage,
};
use strategies::PNG;

use crate::fold;

const URL: &str = "https://pictures.example/a.png";

/// Reads a stream of generations of these events.
fn read(count: Option<u32>, events: &[Value]) -> Result<Answer<'static>, ReadError> {
    let mut collector = Collector::new(Operation::Generation, count);
    for event in events {
        collector.event(&event.to_string())?;
    }
    collector.finish()
}

fn preview(members: Value) -> Value {
    event("image_generation.partial_image", members)
}

fn completed(members: Value) -> Value {
    event("image_generation.completed", members)
}

fn event(kind: &str, mut members: Value) -> Value {
    members["type"] = kind.into();
    members
}

fn picture() -> Value {
    json!({"b64_json": PNG})
}

fn base64() -> Picture<'static> {
    Picture::Base64(PNG.into())
}

fn contradicts(events: &[Value]) -> bool {
    matches!(read(Some(1), events), Err(ReadError::Contradiction(_)))
}

#[test]
fn an_answer_may_lack_everything_but_its_images() {
    let answer = read(Some(1), &[preview(picture()), completed(picture())]).unwrap();
    assert_eq!((answer.images, answer.tokens), (vec![base64()], None));
    let reply =
        json!({"data": [{"b64_json": PNG, "revised_prompt": "A boat"}], "usage": {}}).to_string();
    let answer = collect(&reply, Some(1)).unwrap();
    assert_eq!((answer.images, answer.tokens), (vec![base64()], None));
}

#[test]
fn an_image_may_be_a_url() {
    let url = || Picture::Url(URL.into());
    for image in [
        json!({"url": URL}),
        json!({"url": URL, "b64_json": null}),
        json!({"url": URL, "b64_json": ""}),
    ] {
        let reply = json!({ "data": [image] }).to_string();
        assert_eq!(collect(&reply, None).unwrap().images, [url()]);
        let answer = read(Some(1), &[completed(image)]).unwrap();
        assert_eq!(answer.images, [url()]);
    }
    let both = json!({"data": [{"url": URL, "b64_json": PNG}]}).to_string();
    assert_eq!(collect(&both, None).unwrap().images, [base64()]);
}

#[test]
fn the_counts_of_images_add_up() {
    let image = |input: u64, output: f64| json!({"b64_json": PNG, "usage": {"input_tokens": input, "output_tokens": output}});
    let stream = [
        completed(image(3, 40.0)),
        completed(picture()),
        completed(image(0, 50.0)),
    ];
    let sum = Tokens {
        input: 3,
        output: 90,
        ..Tokens::default()
    };
    assert_eq!(read(Some(3), &stream).unwrap().tokens, Some(sum));
    assert_eq!(
        tokens(br#"{"input_tokens":3,"output_tokens":90}"#),
        Some(sum)
    );
    assert_eq!(tokens(b"null"), None);
}

/// <https://platform.openai.com/docs/api-reference/images/object>, and servers with other names.
#[test]
fn counts_of_pictures_are_read_in_every_spelling_and_add_up() {
    let counted = |usage: &str| {
        let tokens = tokens(usage.as_bytes()).unwrap();
        (tokens.input, tokens.cache_read, tokens.output)
    };
    let openai = r#"{"input_tokens":50,"output_tokens":1056,"total_tokens":1106,
        "input_tokens_details":{"text_tokens":10,"image_tokens":40,"cached_tokens":8}}"#;
    assert_eq!(counted(openai), (50, 8, 1056));
    let chat = r#"{"prompt_tokens":50,"completion_tokens":1000,"total_tokens":1106}"#;
    assert_eq!(counted(chat), (50, 0, 1056));
    let rejected = json!({"data": [], "usage": {"input_tokens": 3, "output_tokens": 4}});
    assert!(collect(&rejected.to_string(), Some(1)).is_err());
    assert_eq!(reported_tokens(&rejected.to_string()).unwrap().output, 4);
}

#[test]
fn an_image_has_content_that_is_a_picture() {
    let cut = &PNG[..PNG.len() - 8];
    for image in [
        json!({}),
        json!({"b64_json": ""}),
        json!({"b64_json": null}),
        json!({"b64_json": 7}),
        json!({"b64_json": "AA=="}),
        json!({"b64_json": "no base64"}),
        json!({"b64_json": cut}),
        json!({"b64_json": cut, "url": URL}),
        json!({"url": ""}),
    ] {
        let reply = json!({ "data": [picture(), image] }).to_string();
        let is_malformed =
            |read: Result<(), ReadError>| matches!(read, Err(ReadError::Malformed(_)));
        assert!(is_malformed(collect(&reply, None).map(drop)), "{reply}");
        for event in [preview(image.clone()), completed(image.clone())] {
            assert!(is_malformed(read(Some(1), &[event]).map(drop)), "{image}");
        }
    }
    for data in [
        json!([]),
        json!(null),
        json!({}),
        json!([null]),
        json!([PNG]),
    ] {
        let reply = json!({ "data": data }).to_string();
        assert!(collect(&reply, None).is_err(), "{reply}");
    }
    for body in ["{}", "[]", "null", ""] {
        assert!(collect(body, None).is_err(), "{body}");
    }
}

#[test]
fn an_answer_has_as_many_images_as_expected() {
    let reply = json!({"data": [picture(), picture()]}).to_string();
    assert_eq!(collect(&reply, Some(2)).unwrap().images.len(), 2);
    assert!(collect(&reply, Some(1)).is_err() && collect(&reply, Some(3)).is_err());
    let one = [completed(picture())];
    assert_eq!(read(Some(2), &one), Err(ReadError::Truncated));
    assert_eq!(read(None, &one).unwrap().images.len(), 1);
    for count in [None, Some(1)] {
        assert_eq!(read(count, &[]), Err(ReadError::Truncated));
        let only_preview = [preview(picture())];
        assert_eq!(read(count, &only_preview), Err(ReadError::Truncated));
    }
    let and_preview = [completed(picture()), preview(picture())];
    assert_eq!(read(None, &and_preview), Err(ReadError::Truncated));
}

#[test]
fn an_order_that_cannot_be_is_a_failure() {
    let at = |index: u32| preview(json!({"b64_json": PNG, "partial_image_index": index}));
    assert!(contradicts(&[at(1), at(1)]) && contradicts(&[at(1), at(0)]));
    assert!(contradicts(&[completed(picture()), completed(picture())]));
    assert!(contradicts(&[event("image_edit.completed", picture())]));
    let lean = [at(0), preview(picture()), at(1), completed(picture())];
    assert_eq!(read(Some(1), &lean).unwrap().images, [base64()]);
    // The previews of several images come in any order.
    let two = [at(1), at(0), completed(picture()), completed(picture())];
    assert_eq!(read(Some(2), &two).unwrap().images.len(), 2);
}

#[test]
fn other_events_are_distinguished() {
    let mut reader = Reader::new(Operation::Edit, Some(1));
    let mut update = |event: &Value| {
        let text = event.to_string();
        reader.event(&text).map(|update| match update {
            Update::Preview(picture) => Update::Preview(picture.into_owned()),
            Update::Image(picture) => Update::Image(picture.into_owned()),
            Update::Done => Update::Done,
            _ => Update::Other,
        })
    };
    assert_eq!(update(&json!({"type": "ping"})), Ok(Update::Other));
    let preview = event("image_edit.partial_image", picture());
    assert_eq!(update(&preview), Ok(Update::Preview(base64())));
    let completed = event("image_edit.completed", picture());
    assert_eq!(update(&completed), Ok(Update::Image(base64())));
    let mut reader = Reader::new(Operation::Edit, Some(1));
    assert_eq!(reader.event(" [DONE]\n"), Ok(Update::Done));
    for wrong in ["{}", "[]", r#"{"type":5}"#, "7", ""] {
        assert!(
            matches!(reader.event(wrong), Err(ReadError::Malformed(_))),
            "{wrong}"
        );
    }
}

#[test]
fn errors_have_many_forms() {
    for error in [
        json!({"error": {"message": "m"}}),
        json!({"error": "m"}),
        json!({"type": "error", "message": "m"}),
        json!({"object": "error", "message": "m"}),
        json!({"error": {}, "type": "image_generation.completed", "b64_json": PNG, "data": [picture()]}),
    ] {
        let reported = ReadError::Reported(error.to_string());
        assert_eq!(collect(&error.to_string(), None), Err(reported.clone()));
        assert_eq!(read(Some(1), &[error]), Err(reported));
    }
    for none in [json!(null), json!(false)] {
        let reply = json!({"error": none, "data": [picture()]}).to_string();
        assert!(collect(&reply, None).is_ok(), "{reply}");
    }
}

/// Checks the base64 of a file.
fn check(file: &[u8]) -> Result<(), ReadError> {
    let mut check = PictureCheck::default();
    check.push(STANDARD.encode(file).as_bytes());
    check.finish()
}

/// The smallest files of each format, as far as it is looked at.
const FILES: [(&str, &[u8]); 6] = [
    (
        "PNG",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0IEND\xaeB`\x82",
    ),
    ("JPEG", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\xff\xd9"),
    ("WebP", b"RIFF\x0c\0\0\0WEBPVP8L\0\0\0\0"),
    ("GIF", b"GIF89a\x01\0\x01\0\0\0\0\0;"),
    ("SVG", b"<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>"),
    ("AVIF", b"\0\0\0\x1cftypavif\0\0\0\0"),
];

#[test]
fn a_file_begins_and_ends_as_its_format_does() {
    for (name, file) in FILES {
        assert_eq!(check(file), Ok(()), "{name}");
        assert_eq!(
            check(&[file, b"\n"].concat()),
            Ok(()),
            "{name} and a line break"
        );
        let is_known = name != "AVIF";
        for lost in 1..4 {
            let cut = check(&file[..file.len() - lost]);
            assert_eq!(cut.is_err(), is_known, "{name} without its last {lost}");
        }
    }
    for text in [
        "",
        "{\"error\":\"no image\"}",
        "<html><body></body></html>",
        "no",
        "\0\x01\x02",
    ] {
        assert!(check(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn base64_is_returned_in_its_standard_form() {
    assert_eq!(repaired(PNG), Ok(None));
    for other in [
        format!("{}\r\n{}\n{}\n", &PNG[..30], &PNG[30..61], &PNG[61..]),
        PNG.trim_end_matches('=').to_owned(),
        format!("{PNG}===="),
        format!("data:image/png;base64,{PNG}"),
        format!("DATA:image/png;name=a;BASE64,{PNG}"),
        PNG.replace('/', "_").replace('+', "-"),
        PNG.replacen('A', "\tA ", 1),
    ] {
        assert_eq!(repaired(&other), Ok(Some(PNG.to_owned())), "{other}");
    }
    for wrong in [
        format!("{PNG}{PNG}"),
        format!("data:image/png,{PNG}"),
        format!("dat{PNG}"),
        PNG.replacen('A', "", 1),
        PNG.replacen('A', "=", 1),
        PNG.replacen('A', "\0", 1),
        PNG.replacen('A', "\u{e9}", 1),
    ] {
        assert!(wrong != PNG && repaired(&wrong).is_err(), "{wrong}");
    }
}

/// Padding stands behind the letters, wherever it was inserted.
#[test]
fn padding_between_letters_is_malformed() {
    let letters = PNG.trim_end_matches('=').len();
    for at in 1..letters {
        for padding in ["=", "==", "===="] {
            let wrong = format!("{}{padding}{}", &PNG[..at], &PNG[at..]);
            assert!(repaired(&wrong).is_err(), "{wrong}");
        }
    }
}

/// A file of any format. Files of known formats are complete.
fn file() -> impl Strategy<Value = Vec<u8>> {
    let unknown = vec(any::<u8>(), 12..300).prop_map(|mut file| {
        file[0] = 0;
        file
    });
    let known = (0..FILES.len() - 2, vec(any::<u8>(), 0..300)).prop_map(|(format, middle)| {
        let (head, tail) = FILES[format].1.split_at(FILES[format].1.len() - 8);
        match FILES[format].0 {
            "WebP" => [head, tail].concat(),
            _ => [head, &middle, tail].concat(),
        }
    });
    prop_oneof![unknown, known]
}

proptest! {
    /// The lenient reader reads answers that the strict types accept to the same content.
    #[test]
    fn the_strict_and_the_lenient_reading_agree(
        steps in vec((file(), any::<bool>(), 0..1_u64 << 36), 0..6),
        is_edit in any::<bool>(),
        is_counted in any::<bool>(),
    ) {
        let operation = if is_edit { Operation::Edit } else { Operation::Generation };
        let settled = Settled {
            size: "16x16".into(),
            quality: Quality::Low,
            background: Background::Opaque,
            output_format: OutputFormat::Png,
        };
        let mut encoder = Encoder::new(operation, settled);
        let events: Vec<_> = steps.iter().map(|(file, is_last, tokens)| {
            let usage = Usage::new(TokensDetails::new(0, 1), TokensDetails::new(*tokens, 0));
            if *is_last { encoder.completed(file, "id".into(), usage, 2) } else { encoder.preview(file, 1) }
        }).collect();
        let images = steps.iter().filter(|(_, is_last, _)| *is_last).count() as u32;
        let count = is_counted.then_some(images.max(1));
        let mut collector = Collector::new(operation, count);
        let read = events.iter().try_for_each(|event| collector.event(&event.data()));
        let lenient = read.and_then(|()| collector.finish());
        let strict = fold(operation, count, &events);
        prop_assert_eq!(strict.is_ok(), lenient.is_ok(), "{:?} {:?}", strict.err(), lenient);
        let Ok(strict) = strict else { return Ok(()) };
        let lenient = lenient.unwrap();
        let files: Vec<_> = strict.data.iter().map(|image| Picture::Base64(image.b64_json.as_str().into())).collect();
        prop_assert_eq!(&lenient.images, &files);
        let usage = strict.usage.as_ref().map(|usage| (usage.input_tokens, usage.output_tokens));
        prop_assert_eq!(lenient.tokens.map(|tokens| (tokens.input, tokens.output)), usage);
        let body = serde_json::to_string(&strict).unwrap();
        prop_assert_eq!(collect(&body, count).unwrap(), lenient);
    }

    /// The verdict does not depend on how the text is cut, and no text is too strange.
    #[test]
    fn pieces_are_judged_as_the_whole(text in "[A-Za-z0-9+/=\\n!]{0,200}", file in file(), size in 1..90_usize) {
        for text in [text, STANDARD.encode(&file)] {
            let (mut whole, mut pieces) = (PictureCheck::default(), PictureCheck::default());
            whole.push(text.as_bytes());
            text.as_bytes().chunks(size).for_each(|piece| pieces.push(piece));
            prop_assert_eq!(whole.finish(), pieces.finish());
        }
        prop_assert_eq!(check(&file), Ok(()));
    }

    /// Blocks of letters may be added without a look for the end of the text.
    #[test]
    fn blocks_of_letters_are_judged_as_any_piece(text in "[A-Za-z0-9+/]{0,1200}", other in "[\\\\\"=\n\u{e9}]?", at: prop::sample::Index) {
        let at = at.index(text.len() + 1);
        let text = [&text[..at], &other, &text[at..]].concat();
        let (mut whole, mut blocks) = (PictureCheck::default(), PictureCheck::default());
        whole.push(text.as_bytes());
        let length = blocks.push_letters(text.as_bytes());
        // The end of a short text may be within the scheme of a data URL.
        prop_assume!(!text.starts_with(['d', 'D']));
        let letters = if other.is_empty() { text.len() } else { at };
        prop_assert_eq!(length, letters / 256 * 256);
        blocks.push(&text.as_bytes()[length..]);
        prop_assert_eq!(whole.finish(), blocks.finish());
    }

    #[test]
    fn no_byte_outside_of_the_alphabet_is_a_letter(text in "[A-Za-z0-9+/]{256}", byte: u8, at in 0..256_usize) {
        let mut text = text.into_bytes();
        text[at] = byte;
        let is_letter = byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
        let length = PictureCheck::default().push_letters(&text);
        prop_assert_eq!(length, if is_letter { 256 } else { 0 });
    }
}
