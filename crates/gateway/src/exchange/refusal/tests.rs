//! Every error that a client can get, built by the code that builds it for clients, is one of the
//! table of the vendors' literals.

use std::collections::BTreeSet;

use bytes::Bytes;
use catalog::Catalog;
use coding::Coding;
use engine::Rejection;
use fetch::FetchError;
use fetch::target::NotAllowed;
use http::Method;
use http_body_util::BodyExt as _;
use quota::Remaining;
use response_store::stored_input;
use serde_json::{Value, json};
use simulator::Protocol;
use testkit::errors::{Class, ERRORS, Literal};
use translate::inbound::ClientProtocol as _;
use wire::{Code, ContextOverflow, Path, Reported, StreamCode, Violations};

use super::*;
use crate::endpoints::{models, stored_response};

/// An error of a class, as the clients of OpenAI's protocols and of Messages get it.
struct Case {
    class: &'static str,
    openai: Option<Refusal>,
    messages: Option<Refusal>,
}

impl Case {
    fn of(class: &'static str, refusal: impl Into<Refusal>) -> Self {
        let refusal = refusal.into();
        Self {
            class,
            openai: Some(refusal.clone()),
            messages: Some(refusal),
        }
    }

    /// An error that only clients of OpenAI's protocols get.
    fn of_responses(class: &'static str, refusal: Refusal) -> Self {
        Self {
            class,
            openai: Some(refusal),
            messages: None,
        }
    }

    /// An error that only clients of OpenAI's protocols get for their request.
    fn of_openai(class: &'static str, found: Violations) -> Self {
        violations(class, found, None)
    }

    fn refusals(&self) -> [(Protocol, Option<&Refusal>); 4] {
        let openai = self.openai.as_ref();
        [
            (Protocol::Responses, openai),
            (Protocol::Chat, openai),
            (Protocol::Images, openai),
            (Protocol::Messages, self.messages.as_ref()),
        ]
    }
}

/// The class of a failure of an engine or upstream. A new variant needs an arm here, and an example
/// in [`failures`].
fn class(error: &EngineError) -> &'static str {
    match error {
        EngineError::ContextLength { .. } => "prompt_too_long",
        EngineError::Unsupported { .. } => "unsupported_by_protocol",
        EngineError::Rejected { why, .. } => match why {
            Rejection::Invalid | Rejection::Signature => "refused_by_upstream",
            Rejection::ContextLength(ContextOverflow { limit: None, .. }) => {
                "prompt_of_unknown_length"
            }
            Rejection::ContextLength(ContextOverflow { output: None, .. }) => "prompt_too_long",
            Rejection::ContextLength(_) => "prompt_and_output_too_long",
            Rejection::ContentPolicy => "content_policy",
            Rejection::TooLarge => "too_large_for_upstream",
        },
        EngineError::RateLimited { .. } => "rate_of_upstream",
        EngineError::Overloaded { .. } => "overload",
        EngineError::Account { quota, .. } => match quota {
            Some(StreamCode::UsageNotIncluded) => "plan_of_upstream",
            Some(_) => "quota_of_upstream",
            None => "upstream",
        },
        EngineError::Busy => "limit_of_concurrency",
        EngineError::Unavailable(_) => "open_circuit",
        EngineError::Timeout(_) | EngineError::Unanswered(_) => "timeout_of_upstream",
        EngineError::Failed { .. }
        | EngineError::Upstream(_)
        | EngineError::Misconfigured(_)
        | EngineError::Truncated(_) => "upstream",
        EngineError::Internal(_) => "internal",
    }
}

fn failures() -> Vec<EngineError> {
    let overflow = |prompt, output, limit| {
        Rejection::ContextLength(ContextOverflow {
            prompt,
            output,
            limit,
        })
    };
    let rejections = [
        Rejection::Invalid,
        Rejection::Signature,
        Rejection::ContentPolicy,
        Rejection::TooLarge,
        overflow(None, None, None),
        overflow(Some(9000), None, Some(8192)),
        overflow(Some(8000), Some(500), Some(8192)),
    ];
    let rejected = rejections.map(|why| EngineError::Rejected {
        why,
        param: None,
        message: SECRET.to_owned(),
        reported: None,
    });
    let account = |quota| EngineError::Account {
        quota,
        cause: SECRET.to_owned(),
    };
    let (retry_after, reported) = (Some(3), None);
    let secret = || SECRET.to_owned();
    let mut failures = Vec::from(rejected);
    failures.extend([
        EngineError::ContextLength {
            limit: 8192,
            found: 9000,
        },
        EngineError::Unsupported {
            param: None,
            reason: "Documents are not supported.".to_owned(),
        },
        EngineError::RateLimited {
            retry_after,
            reported: reported.clone(),
        },
        EngineError::Overloaded {
            retry_after,
            reported: reported.clone(),
        },
        account(None),
        account(Some(StreamCode::InsufficientQuota)),
        account(Some(StreamCode::UsageNotIncluded)),
        EngineError::Failed {
            cause: secret(),
            reported,
        },
        EngineError::Busy,
        EngineError::Unavailable(secret()),
        EngineError::Timeout(secret()),
        EngineError::Unanswered(secret()),
        EngineError::Upstream(secret()),
        EngineError::Misconfigured(secret()),
        EngineError::Truncated(secret()),
        EngineError::Internal(secret()),
    ]);
    failures
}

/// The errors of upstreams whose code clients know within a stream.
fn named() -> Vec<Case> {
    let named = |code: StreamCode| {
        Refusal::from(EngineError::Overloaded {
            retry_after: None,
            reported: Some(Box::new(Reported {
                code: Some(code.as_str().to_owned()),
                ..Reported::default()
            })),
        })
    };
    vec![
        Case::of("overload_by_name", named(StreamCode::ServerIsOverloaded)),
        Case::of(
            "overload_that_asks_to_slow_down",
            named(StreamCode::SlowDown),
        ),
    ]
}

/// A limit that has no room.
fn full(dimension: Dimension, is_degraded: bool) -> Refusal {
    Refusal::limit(&Refused {
        limit: SECRET.into(),
        dimension,
        cap: 3,
        retry_after: Some(19_000_000),
        may_wait: false,
        is_degraded,
        remaining: Remaining::default(),
    })
}

fn refusals() -> Vec<Case> {
    let path = "/v1/nope";
    vec![
        Case::of("internal", Refusal::internal(SECRET)),
        Case::of("unknown_path", Refusal::not_found(&Method::POST, path)),
        Case::of("wrong_method", Refusal::method(&Method::PUT, path, "GET")),
        Case::of("websocket", Refusal::websocket()),
        Case::of_responses("name_of_a_websocket_stream", Refusal::stream_id()),
        Case::of_responses("streams_of_a_websocket", Refusal::too_many_streams(32)),
        Case::of_responses("age_of_a_websocket", Refusal::websocket_too_old(60)),
        Case::of("malformed_body", Refusal::broken_upload()),
        Case::of("wrong_transfer_coding", Refusal::transfer_coding()),
        Case::of("wrong_host", Refusal::host()),
        Case::of("no_path", Refusal::no_path(&Method::CONNECT)),
        Case::of("long_target", Refusal::target_too_long()),
        Case::of("missing_key", Refusal::missing_key()),
        Case::of("wrong_key", Refusal::invalid_key()),
        Case::of("missing_scope", Refusal::capability("images")),
        Case::of("forbidden_model", Refusal::model("coder")),
        Case::of("model_without_price", Refusal::no_price("coder")),
        Case::of("body_too_large", Refusal::too_large()),
        Case::of(
            "wrong_content_type",
            Refusal::media_type("application/json", "text/plain"),
        ),
        Case::of(
            "compressed_body",
            Refusal::content_encoding(coding::ACCEPTED),
        ),
        Case::of(
            "undecodable_body",
            Refusal::from(DecodeError::Incomplete(Coding::Gzip)),
        ),
        Case::of("slow_upload", Refusal::slow_upload()),
        Case::of("timeout_of_upstream", Refusal::timeout()),
        Case::of("no_memory_for_body", Refusal::overloaded(SECRET)),
        Case::of("no_engine", Refusal::no_engine()),
        Case::of("unchecked_limit", Refusal::aborted(Outcome::LeaseLost)),
        Case::of("shutting_down", Refusal::aborted(Outcome::Shutdown)),
        Case::of(
            "ended_by_operator",
            Refusal::aborted(Outcome::EndedByOperator),
        ),
        Case::of("limit_of_concurrency", full(Dimension::Concurrency, false)),
        Case::of("limit_of_requests", full(Dimension::Requests, false)),
        Case::of("limit_of_tokens", full(Dimension::Tokens, false)),
        Case::of("budget", full(Dimension::Budget, false)),
        Case::of("unchecked_limit", full(Dimension::Tokens, true)),
        Case::of(
            "no_journal",
            Refusal::not_journaled(&std::io::Error::other(SECRET)),
        ),
    ]
}

/// The error for these violations, in the words of each protocol.
fn violations(class: &'static str, openai: Violations, messages: Option<Violations>) -> Case {
    Case {
        class,
        openai: Some(ApiError::from(openai).into()),
        messages: messages.map(|found| messages::refusal(found).into()),
    }
}

/// The violations in a request of Responses with these members.
fn responses(members: Value) -> Violations {
    let body = json!({"model": "m", "input": [{"role": "user", "content": "Hi."}]});
    let read = responses::Request::read(merged(body, members).to_string().as_bytes());
    let valid = read.and_then(|request| request.validate(&responses::Rules::default()));
    valid.expect_err("a mistake")
}

/// The violations in a request of Chat Completions with these members.
fn chat(members: Value) -> Violations {
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi."}]});
    let read = chat::Request::read(merged(body, members).to_string().as_bytes());
    let valid = read.and_then(|request| request.validate(&chat::Rules::default()));
    valid.expect_err("a mistake")
}

/// The violations in a request of Messages with these members.
fn messages(members: Value) -> Option<Violations> {
    let user = json!([{"role": "user", "content": "Hi."}]);
    let body = json!({"model": "m", "max_tokens": 9, "messages": user});
    let read = messages::Request::read(merged(body, members).to_string().as_bytes());
    let valid = read.and_then(|request| request.validate(&messages::Rules::default()));
    Some(valid.expect_err("a mistake"))
}

/// The violations in a request for images with these members.
fn generation(members: Value) -> Violations {
    let body = merged(json!({"prompt": "A cat."}), members).to_string();
    let read = images::Generation::read(body.as_bytes());
    let valid = read.and_then(|request| request.validate(&images::Rules::default()));
    valid.expect_err("a mistake")
}

/// The violations in an edit with these members.
fn edit(members: Value) -> Violations {
    let image = json!([{"image_url": "https://images.example/a.png"}]);
    let body = merged(json!({"prompt": "A cat.", "images": image}), members).to_string();
    let read = images::Edit::read(body.as_bytes());
    let valid = read.and_then(|request| request.validate(&images::Rules::default()));
    valid.expect_err("a mistake")
}

/// The client's own mistakes: a request of Responses or Chat Completions, and one of Messages.
fn mistakes() -> Vec<Case> {
    let read = |body: &str| responses::Request::read(body.as_bytes());
    let long_list = {
        let mut found = Violations::default();
        found.check_length(&Path::ROOT.key("tools"), 129, 128);
        Some(found)
    };
    let long_text = {
        let mut found = Violations::default();
        found.check_text(&Path::ROOT.key("system"), "ab", 1);
        Some(found)
    };
    let big = {
        let mut found = Violations::default();
        found.check_integer(&Path::ROOT.key("n"), Some(4), 0, 3);
        found
    };
    let tools = |name: &str| json!({"tools": [{"type": "function", "name": name}]});
    let tool = json!({"type": "function", "name": "a", "parameters": {}});
    let named = |name: &str| json!({"tools": [{"name": name, "input_schema": {}}]});
    let no_json = messages::Request::read(b"{").expect_err("no JSON");
    let file = json!({"type": "image", "source": {"type": "file", "file_id": "f"}});
    let file = json!({"messages": [{"role": "user", "content": [file]}]});
    vec![
        violations("not_json", read("{").expect_err("no JSON"), Some(no_json)),
        violations(
            "missing_member",
            responses(json!({"model": null})),
            messages(json!({"max_tokens": null})),
        ),
        violations(
            "wrong_type",
            responses(json!({"temperature": "warm"})),
            messages(json!({"max_tokens": "1"})),
        ),
        violations(
            "unknown_word",
            responses(json!({"tool_choice": "perhaps"})),
            messages(json!({"messages": [{"role": "king", "content": "Hi."}]})),
        ),
        violations(
            "integer_below_minimum",
            responses(json!({"max_output_tokens": 0})),
            messages(json!({"max_tokens": 0})),
        ),
        violations("integer_above_maximum", big.clone(), Some(big)),
        violations(
            "decimal_below_minimum",
            responses(json!({"top_p": -0.5})),
            messages(json!({"top_p": -0.5})),
        ),
        violations(
            "decimal_above_maximum",
            responses(json!({"temperature": 2.5})),
            messages(json!({"temperature": 1.5})),
        ),
        violations(
            "empty_array",
            responses(json!({"input": []})),
            messages(json!({"messages": []})),
        ),
        violations(
            "string_too_long",
            responses(json!({"metadata": {"topic": "c".repeat(513)}})),
            long_text,
        ),
        violations(
            "array_too_long",
            responses(json!({"tools": vec![tool; 129]})),
            long_list,
        ),
        violations(
            "wrong_name",
            responses(tools("a b")),
            messages(named("a b")),
        ),
        violations(
            "misspelt_member",
            responses(json!({"Temperature": 1})),
            messages(json!({"Temperature": 1})),
        ),
        violations(
            "unsupported_member",
            responses(json!({"background": true})),
            messages(file),
        ),
    ]
}

/// Members that are valid by themselves, but not together or not here.
fn combinations() -> Vec<Case> {
    let openai = Case::of_openai;
    let both = violations;
    let part = |part: Value| json!({"input": [{"role": "user", "content": [part]}]});
    let block = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
    let picture = |url: &str| part(json!({"type": "input_image", "image_url": url}));
    let source = |source: Value| block(json!({"type": "image", "source": source}));
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "4"});
    let tool_result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "4"});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "a", "input": {}});
    let late = json!({"messages": [
        {"role": "user", "content": "Hi."},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "text", "text": "Hi."}, tool_result]},
    ]});
    let file = json!({"type": "input_image", "file_id": "file_1"});
    let function = json!({"type": "function", "function": {"name": "b"}});
    vec![
        openai(
            "replaced_member",
            responses(json!({"conversation": "conv_1"})),
        ),
        openai(
            "replaced_member",
            responses(json!({"prompt": {"id": "pmpt_1"}})),
        ),
        openai("replaced_member", responses(part(file))),
        openai("replaced_member", chat(json!({"functions": []}))),
        openai("replaced_member", chat(json!({"function_call": "auto"}))),
        openai(
            "replaced_member",
            edit(json!({"images": [{"file_id": "file_1"}]})),
        ),
        openai(
            "replaced_member",
            edit(json!({"mask": {"file_id": "file_1"}})),
        ),
        openai("unsupported_member", chat(json!({"audio": {}}))),
        openai(
            "unsupported_member",
            chat(json!({"web_search_options": {}})),
        ),
        openai("unsupported_value", chat(json!({"modalities": ["audio"]}))),
        openai(
            "unsupported_value",
            generation(json!({"output_format": "gif"})),
        ),
        openai("only_default", chat(json!({"n": 2}))),
        openai(
            "only_default",
            generation(json!({"response_format": "url"})),
        ),
        openai(
            "unknown_previous_response",
            responses(json!({"previous_response_id": "resp_1"})),
        ),
        openai(
            "item_reference",
            responses(json!({"input": [{"type": "item_reference", "id": "msg_1"}]})),
        ),
        both(
            "empty_string",
            responses(json!({"model": ""})),
            messages(json!({"model": ""})),
        ),
        openai("empty_string", generation(json!({"prompt": ""}))),
        both(
            "wrong_url",
            responses(picture("http://images.example/a.png")),
            messages(source(
                json!({"type": "url", "url": "http://images.example/a.png"}),
            )),
        ),
        both(
            "wrong_data_url",
            responses(picture("data:image/png;base64,?")),
            messages(source(
                json!({"type": "base64", "media_type": "image/png", "data": "?"}),
            )),
        ),
        both(
            "wrong_schema",
            responses(json!({"tools": [{"type": "function", "name": "a", "parameters": 1}]})),
            messages(json!({"tools": [{"name": "a", "input_schema": 1}]})),
        ),
        openai("result_without_call", responses(json!({"input": [result]}))),
        Case {
            class: "result_after_text",
            openai: None,
            messages: messages(late).map(|found| messages::refusal(found).into()),
        },
        both(
            "choice_without_tools",
            responses(json!({"tool_choice": "required"})),
            messages(json!({"tool_choice": {"type": "any"}})),
        ),
        openai(
            "choice_without_tools",
            chat(json!({"tool_choice": "required"})),
        ),
        both(
            "choice_of_unknown_function",
            responses(json!({"tool_choice": {"type": "function", "name": "b"}})),
            messages(json!({"tool_choice": {"type": "tool", "name": "b"}})),
        ),
        openai(
            "choice_of_unknown_function",
            chat(json!({"tool_choice": function})),
        ),
        openai(
            "both_caps",
            chat(json!({"max_tokens": 1, "max_completion_tokens": 2})),
        ),
        openai(
            "alternatives_without_logprobs",
            chat(json!({"top_logprobs": 2})),
        ),
        openai("wrong_size", generation(json!({"size": "large"}))),
        openai(
            "transparent_jpeg",
            generation(json!({"background": "transparent", "output_format": "jpeg"})),
        ),
        openai(
            "wrong_mask",
            edit(json!({"mask": {"image_url": "https://images.example/a.png"}})),
        ),
    ]
}

/// The errors of a translation, which refuses what has no form in the protocol of the target.
fn translations() -> Vec<Case> {
    let unsupported = |value| ApiError::unsupported_value("input[0].content[0].type", value);
    let instead = ApiError::unsupported_parameter("input[0].content[0].file_id", "image_url");
    let outline = field_map::Outline::read(
        vendor::Protocol::Chat,
        br#"{"model": "m", "messages": [], "logprobs": true}"#,
    );
    let dropped = outline
        .expect("JSON")
        .dropped_fields(vendor::Protocol::Messages);
    let block = json!([{"type": "container_upload", "file_id": "file_1"}]);
    let body =
        json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": block}]});
    let request = messages::Request::read(body.to_string().as_bytes()).expect("a request");
    let mut rules = messages::Rules::default();
    rules.unknown_types = true;
    let request = request.validate(&rules).expect("a valid request");
    let block = translate::inbound::Messages::request(request);
    vec![
        Case::of("unsupported_value", unsupported("'input_audio'")),
        Case::of("unsupported_value", dropped.expect_err("a refusal")),
        Case::of_responses("replaced_member", instead.into()),
        Case {
            class: "unsupported_block",
            openai: None,
            messages: Some(block.expect_err("a refusal").into()),
        },
    ]
}

/// The errors for image URLs that are not fetched.
fn image_urls() -> Vec<Case> {
    let url = |class, error| {
        let url = format!("https://images.example/a.png?key={SECRET}");
        Case::of(class, Refusal::image_url(error, &url, Some("input[0]")))
    };
    let chat = |class, refusal: Refusal| {
        Case::of_responses(class, refusal.with_image_url_code(Code::InvalidImageUrl))
    };
    let url_in_chat = |class, error| {
        chat(
            class,
            Refusal::image_url(error, "https://images.example", None),
        )
    };
    vec![
        url("image_not_downloaded", FetchError::Timeout),
        url("image_not_downloaded", FetchError::Status(404)),
        url("image_not_an_image", FetchError::Kind),
        url("image_url_not_allowed", NotAllowed::Port.into()),
        url("image_url_not_allowed", FetchError::NotListed),
        url("image_urls_off", FetchError::Off),
        url("too_many_downloads", FetchError::Busy),
        Case::of("too_many_image_urls", Refusal::too_many_image_urls(16)),
        url_in_chat("image_not_downloaded_in_chat", FetchError::Timeout),
        url_in_chat("image_not_an_image_in_chat", FetchError::Kind),
        url_in_chat("image_url_not_allowed_in_chat", NotAllowed::Port.into()),
        url_in_chat("image_urls_off_in_chat", FetchError::Off),
        url_in_chat("too_many_downloads", FetchError::Busy),
        chat(
            "too_many_image_urls_in_chat",
            Refusal::too_many_image_urls(16),
        ),
    ]
}

/// The errors for the form of an image edit.
fn forms() -> Vec<Case> {
    let form = |texts: &[(&str, &str)], files: &[(&str, &'static [u8])]| {
        let mut form = images::Form::default();
        for (name, text) in [("prompt", "A cat.")].iter().chain(texts) {
            form.text(name, text);
        }
        for (name, bytes) in files {
            form.picture(name, Bytes::from_static(bytes));
        }
        form.finish().expect_err("a mistake")
    };
    let png: (&str, &[u8]) = ("image", b"\x89PNG\r\n\x1a\n\0\0\0\r");
    let file_as_text = {
        let mut form = images::Form::default();
        form.text("prompt", "A cat.");
        form.picture(png.0, Bytes::from_static(png.1));
        form.file(images::FormFile {
            name: "size".to_owned(),
            filename: "a.txt".to_owned(),
            media_type: "text/plain".to_owned(),
            bytes: Bytes::new(),
        });
        form.finish().expect_err("a mistake")
    };
    let openai = Case::of_openai;
    vec![
        Case::of_responses(
            "malformed_form",
            Refusal::malformed_form("a part has no name"),
        ),
        Case::of_responses("part_too_large", Refusal::part_too_large(Some("prompt"))),
        Case::of_responses(
            "picture_too_large",
            Refusal::picture_too_large("image", 9, 8),
        ),
        openai("missing_member", form(&[], &[])),
        openai("repeated_part", form(&[("n", "1"), ("n", "2")], &[png])),
        openai(
            "repeated_part",
            form(&[], &[png, ("mask", png.1), ("mask", png.1)]),
        ),
        openai(
            "wrong_type_of_file",
            form(&[], &[("image", b"GIF89a\x05\0\x07\0\0\0")]),
        ),
        openai(
            "wrong_type_of_file",
            form(&[], &[png, ("mask", b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01")]),
        ),
        openai("wrong_type_of_file", form(&[], &[("image", b"?")])),
        openai("wrong_type", file_as_text),
        openai("misspelt_member", form(&[("Size", "auto")], &[png])),
    ]
}

/// The errors of the endpoints that read a query.
fn queries() -> Vec<Case> {
    let models = |query: &str| {
        let list = models::page(query).and_then(|page| Catalog::builtin().list(&page, |_| true));
        list.expect_err("a mistake")
    };
    let both = |class, query| violations(class, models(query), Some(models(query)));
    let items = |query| stored_response::Page::read(query).err().expect("a mistake");
    vec![
        both("wrong_type", "limit=many"),
        both("integer_below_minimum", "limit=0"),
        both("integer_above_maximum", "limit=1001"),
        both("unknown_cursor", "after_id=nope"),
        both("unknown_cursor", "before_id=nope"),
        Case::of_openai("wrong_type", items("limit=many")),
        Case::of_openai("integer_above_maximum", items("limit=101")),
        Case::of_openai("unknown_word", items("order=up")),
    ]
}

/// The errors for a response that a request refers to, and for one that cannot be counted.
fn references() -> Vec<Case> {
    let of = Case::of_responses;
    vec![
        of("unknown_response", Refusal::unknown_response("resp_1")),
        of("synchronous_response", Refusal::synchronous_response()),
        of("no_replay", Refusal::no_replay()),
        of("no_background_over_a_websocket", Refusal::no_background()),
        of(
            "unknown_previous_response",
            stored_input::no_response("resp_1").into(),
        ),
        of("unknown_item", stored_input::no_item("rs_1").into()),
        of("repeated_item", stored_input::repeated("msg_1").into()),
        Case::of("not_countable", Refusal::not_countable("coder")),
    ]
}

/// Puts members into a body. `null` removes one.
fn merged(mut body: Value, members: Value) -> Value {
    let known = body.as_object_mut().expect("an object");
    for (name, value) in members.as_object().expect("an object") {
        match value {
            Value::Null => drop(known.remove(name)),
            value => drop(known.insert(name.clone(), value.clone())),
        }
    }
    body
}

fn unknown_things() -> Vec<Case> {
    let catalog = Catalog::builtin();
    let of = |name: &str, protocol| {
        let error = catalog.serves(name, protocol).expect_err("not served");
        Some(error.into())
    };
    vec![
        Case {
            class: "unknown_model",
            openai: of("nope", catalog::Protocol::Responses),
            messages: of("nope", catalog::Protocol::Messages),
        },
        Case {
            class: "model_of_another_endpoint",
            openai: of("msg-sonnet-5", catalog::Protocol::Responses),
            messages: of("alt-flash", catalog::Protocol::Messages),
        },
    ]
}

fn cases() -> Vec<Case> {
    let failures = failures()
        .into_iter()
        .map(|error| Case::of(class(&error), error));
    let mut cases: Vec<_> = failures.collect();
    cases.extend(named());
    cases.extend(refusals());
    cases.extend(mistakes());
    cases.extend(unknown_things());
    cases.extend(combinations());
    cases.extend(translations());
    cases.extend(image_urls());
    cases.extend(forms());
    cases.extend(queries());
    cases.extend(references());
    cases
}

/// The status and the error object of the response to a client of this protocol.
fn response(refusal: &Refusal, client: Protocol) -> (u16, Value) {
    let style = match client {
        Protocol::Messages => Style::Messages,
        _ => Style::OpenAi,
    };
    let response = refusal.clone().into_response(style, "req_1");
    let status = response.status().as_u16();
    let body = futures_util::FutureExt::now_or_never(response.into_body().collect());
    let body = body.expect("a whole body").expect("a body").to_bytes();
    let body: Value = serde_json::from_slice(&body).expect("JSON");
    (status, body["error"].clone())
}

/// The error object within a stream for a client of this protocol.
fn event(refusal: &Refusal, client: Protocol) -> Value {
    let error = vendor::in_stream(&refusal.error);
    match client {
        Protocol::Messages => json!(messages::ErrorDetail::from(&error)),
        Protocol::Responses => json!(responses::ResponseError::from(&error)),
        Protocol::Chat | Protocol::Images => json!(error.body().error),
    }
}

/// Returns true if an error has the status, the type, the code and the words of the literal, and
/// nothing that is private to the operator.
fn is_owed(owed: &Literal, status: Option<u16>, found: &Value) -> bool {
    let member = |name: &str| found[name].as_str().unwrap_or_default();
    let (kind, code, words) = (member("type"), member("code"), member("message"));
    let owed_code = owed.code.as_deref().unwrap_or_default();
    // An upstream's own sentence is passed on where nothing else could say what is wrong.
    let is_upstreams = owed.words == "*";
    (owed.status, &*owed.kind, owed_code) == (status, kind, code)
        && owed.says(words)
        && (is_upstreams || !words.contains(SECRET))
}

#[test]
fn each_error_is_the_one_of_the_clients_vendor() {
    let mut wrong = Vec::new();
    for case in cases() {
        let class = &ERRORS[case.class];
        let mut check = |client: Protocol, owed: &Literal, status, found: Value| {
            if !is_owed(owed, status, &found) {
                wrong.push(format!("{} for {client:?}: {status:?} {found}", case.class));
            }
        };
        for (client, refusal) in case.refusals() {
            let Some(refusal) = refusal else { continue };
            if let Some(owed) = class.response(client) {
                let (status, found) = response(refusal, client);
                check(client, owed, Some(status), found);
            }
            let internal = ERRORS["internal"].event(client);
            let owed = class.event(client).or(internal).expect("an error");
            check(client, owed, None, event(refusal, client));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A class without an error in the code, an error whose class has no row, and a code without a row
/// are all found here.
#[test]
fn the_table_of_errors_is_complete() {
    let built: BTreeSet<_> = cases().iter().map(|case| case.class).collect();
    let listed: BTreeSet<_> = ERRORS.keys().map(String::as_str).collect();
    assert_eq!(built, listed);
    let codes = ERRORS.values().flat_map(Class::literals);
    let codes: BTreeSet<_> = codes
        .filter_map(|literal| literal.code.as_deref())
        .collect();
    let all: BTreeSet<_> = Code::VALUES.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes, all);
}

/// Each member of the gateway's own is listed by name, with its reason. All others have a source.
#[test]
fn each_literal_has_a_source_or_a_reason() {
    for (name, class) in ERRORS.iter() {
        for literal in class.literals() {
            let members = [
                ("status", literal.status.is_some()),
                ("type", true),
                ("code", literal.code.is_some()),
                ("words", true),
            ];
            let has = |own: &String| members.contains(&(own.as_str(), true));
            assert!(literal.own.iter().all(has), "{name}: {literal:?}");
            assert!(
                literal.own.is_empty() || literal.why.is_some(),
                "{name}: {literal:?}"
            );
            let count = members.iter().filter(|(_, has)| *has).count();
            let is_own = literal.own.len() == count;
            assert!(is_own || literal.source.is_some(), "{name}: {literal:?}");
        }
    }
}

/// Text that no client may see.
const SECRET: &str = "secret.example";
