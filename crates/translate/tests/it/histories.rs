//! Histories that servers refuse as they are: calls and results that do not match, and messages
//! without content.

use ::field_map::Outline;
use serde_json::{Value, json};
use sluicegate_translate::outbound::encode;
use vendor::Protocol::{self, Chat, Messages, Responses};

use crate::clients::{SETTINGS, neutral};
use crate::rules::served;
use crate::vendor_rules::body;

/// The request as an upstream without a preset gets it.
fn sent(client: Protocol, upstream: Protocol, request: &Value) -> (Value, Vec<String>) {
    served(client, (None, upstream), request)
}

fn chat(messages: Value) -> Value {
    body(Chat, json!({ "messages": messages }))
}

fn responses(input: Value) -> Value {
    body(Responses, json!({ "input": input }))
}

fn say(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": text })
}

fn call(id: &str) -> Value {
    json!({ "type": "function_call", "call_id": id, "name": "f", "arguments": "{}" })
}

fn output(id: &str, text: &str) -> Value {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}

fn chat_calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let calls: Vec<_> = ids.iter().map(call).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn chat_result(id: &str, text: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text })
}

/// "`tool_use` ids were found without `tool_result` blocks immediately after":
/// <https://github.com/anthropics/claude-code/issues/1776>,
/// <https://github.com/microsoft/vscode/issues/299295>
#[test]
fn calls_whose_results_are_missing_get_one() {
    let interrupted = "The tool call was interrupted.";
    let of_chat = chat(json!([
        say("user", "Hi."),
        chat_calls(&["a", "b"]),
        chat_result("a", "4"),
        say("user", "Stop.")
    ]));
    let (messages, dropped) = sent(Chat, Messages, &of_chat);
    assert_eq!(
        messages["messages"][2]["content"],
        json!([
            { "type": "tool_result", "tool_use_id": "a", "content": "4" },
            { "type": "tool_result", "tool_use_id": "b", "content": interrupted, "is_error": true },
            { "type": "text", "text": "Stop." },
        ])
    );
    assert_eq!(dropped, ["tool_result"]);
    let (of_openai, dropped) = sent(Chat, Responses, &of_chat);
    assert_eq!(
        of_openai["input"][4],
        output("b", &format!("[error] {interrupted}"))
    );
    assert_eq!(dropped, ["tool_result"]);
    let cut = responses(json!([
        say("user", "Hi."),
        call("a"),
        call("b"),
        output("a", "4")
    ]));
    let (of_chat, dropped) = sent(Responses, Chat, &cut);
    assert_eq!(
        of_chat["messages"][3],
        chat_result("b", &format!("[error] {interrupted}"))
    );
    assert_eq!(dropped, ["tool_result"]);
}

/// The turn of the calls ends with the next message of somebody else.
#[test]
fn interrupted_calls_of_a_turn_in_pieces_get_their_results_behind_it() {
    let input = responses(json!([
        say("user", "Hi."),
        call("a"),
        say("assistant", "And."),
        call("b"),
        say("user", "Stop.")
    ]));
    let (of_chat, _) = sent(Responses, Chat, &input);
    let ids: Vec<_> = of_chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["tool_call_id"].as_str().unwrap_or("-"))
        .collect();
    assert_eq!(ids, ["-", "-", "a", "b", "-"]);
}

/// Nobody has run the calls at the end of a conversation, such as after a client has crashed.
#[test]
fn calls_at_the_end_get_results() {
    let request = responses(json!([say("user", "Hi."), call("a")]));
    let (messages, dropped) = sent(Responses, Messages, &request);
    let result = &messages["messages"][2]["content"][0];
    assert_eq!(result["tool_use_id"], "a", "{messages}");
    assert_eq!(dropped, ["tool_result"]);
    let (of_chat, _) = sent(Responses, Chat, &request);
    assert_eq!(of_chat["messages"][2]["tool_call_id"], "a");
}

/// "each tool_use must have a single result. Found multiple `tool_result` blocks with id":
/// <https://github.com/QwenLM/qwen-code/issues/8163>
#[test]
fn several_results_of_a_call_become_one() {
    for between in [vec![], vec![say("user", "Go.")]] {
        let mut history = vec![say("user", "Hi."), chat_calls(&["a"])];
        history.push(chat_result("a", "one"));
        history.extend(between.clone());
        history.extend([chat_result("a", "two"), say("user", "So?")]);
        let request = chat(history.into());
        let (messages, dropped) = sent(Chat, Messages, &request);
        let content = &messages["messages"][2]["content"];
        assert_eq!(
            content[0],
            json!({ "type": "tool_result", "tool_use_id": "a", "content": "one\n\ntwo" })
        );
        assert_eq!(messages.to_string().matches("tool_use_id").count(), 1);
        assert_eq!(dropped, ["tool_result"]);
        let (of_openai, _) = sent(Chat, Responses, &request);
        assert_eq!(of_openai["input"][2], output("a", "one\n\ntwo"));
        assert_eq!(of_openai.to_string().matches("call_output").count(), 1);
    }
}

/// A text behind a call would stand between the call and its result:
/// <https://github.com/anomalyco/opencode/issues/5750>
#[test]
fn a_text_behind_a_call_goes_before_it() {
    let of_responses = responses(json!([
        say("user", "Hi."),
        call("a"),
        say("assistant", "I looked."),
        output("a", "4 C"),
        say("user", "Go.")
    ]));
    let of_chat = chat(json!([
        say("user", "Hi."),
        chat_calls(&["a"]),
        say("assistant", "I looked."),
        chat_result("a", "4 C"),
        say("user", "Go.")
    ]));
    for (client, request) in [(Responses, of_responses), (Chat, of_chat)] {
        let (messages, dropped) = sent(client, Messages, &request);
        assert_eq!(
            messages["messages"][1]["content"],
            json!([
                { "type": "text", "text": "I looked." },
                { "type": "tool_use", "id": "a", "name": "f", "input": {} },
            ])
        );
        assert_eq!(dropped, ["message_position"]);
    }
}

/// "string too long. Expected a string with maximum length 40":
/// <https://github.com/langgenius/dify/issues/28987>,
/// <https://github.com/Portkey-AI/gateway/issues/1062>
#[test]
fn ids_of_calls_have_at_most_40_characters_in_chat() {
    let (fits, long) = ("a".repeat(40), "a".repeat(41));
    for id in [&fits, &long] {
        let history = json!([say("user", "Hi."), call(id), output(id, "4")]);
        let (of_chat, dropped) = sent(Responses, Chat, &responses(history));
        let of_call = &of_chat["messages"][1]["tool_calls"][0]["id"];
        assert_eq!(*of_call, of_chat["messages"][2]["tool_call_id"]);
        // The SHA-256 of the id, cut to half of its digits.
        let expected = match id.len() {
            40 => fits.as_str(),
            _ => "call_c0f8bd4dbc2b0c03107c1c37913f2a75",
        };
        assert_eq!(of_call, expected);
        assert_eq!(dropped, Vec::<String>::new());
    }
    let history = chat(json!([
        say("user", "Hi."),
        chat_calls(&[&long]),
        chat_result(&long, "4")
    ]));
    assert_eq!(
        sent(Chat, Responses, &history).0["input"][1]["call_id"],
        long
    );
}

/// Templates read the arguments of earlier calls as JSON:
/// <https://github.com/vllm-project/vllm/issues/19419>
#[test]
fn arguments_to_chat_are_an_object() {
    let kept = r#"{ "a": 1.0, "b": [1e2] }"#;
    for (arguments, expected, named) in [
        (kept, kept, false),
        ("", "{}", false),
        (" ", "{}", false),
        (r#"{"a": "b"#, r#"{"arguments":"{\"a\": \"b"}"#, true),
        ("[1]", r#"{"arguments":"[1]"}"#, true),
    ] {
        let mut call = call("a");
        call["arguments"] = json!(arguments);
        let history = json!([say("user", "Hi."), call, output("a", "4")]);
        let (of_chat, dropped) = sent(Responses, Chat, &responses(history));
        let sent = &of_chat["messages"][1]["tool_calls"][0]["function"]["arguments"];
        assert_eq!(sent, expected);
        let name = named.then(|| "arguments".to_owned());
        assert_eq!(dropped, Vec::from_iter(name), "{arguments}");
    }
}

/// A message with an empty list is refused: "array too short", and an answer without text or calls:
/// "Assistant message must have either content or tool_calls"
/// (<https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py>).
#[test]
fn messages_that_say_nothing_are_left_out() {
    let empty = json!({ "role": "user", "content": [] });
    let silent = say("assistant", "");
    for upstream in [Chat, Messages] {
        let request = responses(json!([
            say("user", "Hi."),
            silent,
            empty,
            say("user", "Go.")
        ]));
        let (sent, _) = sent(Responses, upstream, &request);
        let texts = sent["messages"].to_string();
        assert!(texts.contains("Go."), "{texts}");
        let messages = sent["messages"].as_array().unwrap();
        let says = |message: &Value| {
            message["content"].as_str() != Some("") && message["content"] != json!([])
        };
        assert!(messages.iter().all(says), "{texts}");
    }
    let request = chat(json!([empty, say("user", "Go.")]));
    assert_eq!(
        sent(Chat, Responses, &request).0["input"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

/// No reader of JSON goes deeper, and a history is no reason to refuse a request.
#[test]
fn arguments_that_nest_too_deep_are_a_text() {
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(60), "]".repeat(60));
    let mut call = call("a");
    call["arguments"] = json!(deep);
    let history = json!([say("user", "Hi."), call, output("a", "4")]);
    let (messages, dropped) = sent(Responses, Messages, &responses(history));
    let input = &messages["messages"][1]["content"][0]["input"];
    assert_eq!(*input, json!({ "arguments": deep }));
    assert_eq!(dropped, ["arguments"]);
}

const DOCX: &str =
    "data:application/vnd.openxmlformats-officedocument.wordprocessingml.document;base64,UEsDBA==";

/// A document comes with each later request: it is no reason to refuse them. This protocol has no
/// documents by their address, and Messages PDF and text alone.
#[test]
fn unsupported_earlier_documents_become_texts() {
    let url = "https://example.com/a.pdf";
    let of_messages = json!({ "type": "document", "source": { "type": "url", "url": url } });
    let of_responses = json!({ "type": "input_file", "file_url": url });
    let docx = json!({ "type": "file", "file": { "filename": "a.docx", "file_data": DOCX } });
    let docx_of_responses =
        json!({ "type": "input_file", "filename": "a.docx", "file_data": DOCX });
    let read = |name: &str| format!("[A document, which this model cannot read: {name}]");
    for (client, upstream, part, name) in [
        (Messages, Chat, of_messages, url),
        (Responses, Chat, of_responses, url),
        (Chat, Messages, docx, "a.docx"),
        (Responses, Messages, docx_of_responses, "a.docx"),
    ] {
        let list = match client {
            Responses => "input",
            Chat | Messages => "messages",
        };
        let new = json!({ "role": "user", "content": [part] });
        let history = json!([new, say("assistant", "Done."), say("user", "Go.")]);
        let (of_upstream, dropped) =
            sent(client, upstream, &body(client, json!({ list: history })));
        assert!(
            of_upstream["messages"][0].to_string().contains(&read(name)),
            "{of_upstream}"
        );
        assert_eq!(dropped, ["documents"]);
        assert!(is_refused(
            client,
            upstream,
            &body(client, json!({ list: [new] }))
        ));
    }
}

/// Returns true if the encoder refuses the request, or its client's protocol has no neutral form of it.
fn is_refused(client: Protocol, upstream: Protocol, request: &Value) -> bool {
    let inbound = neutral(client, request.to_string().as_bytes()).unwrap();
    inbound.is_err_and(|error| error.kind.status() == 400)
        || neutral(client, request.to_string().as_bytes())
            .unwrap()
            .is_ok_and(|inbound| encode::request(upstream, &inbound.request, &SETTINGS).is_err())
}

/// A result that is refused would end the session, because the client sends it again.
#[test]
fn documents_in_results_are_never_refused() {
    let document = json!({ "type": "input_file", "filename": "a.docx", "file_data": DOCX });
    let result = json!({ "type": "function_call_output", "call_id": "a", "output": [document] });
    let request = responses(json!([say("user", "Hi."), call("a"), result]));
    let (messages, dropped) = sent(Responses, Messages, &request);
    assert_eq!(
        messages["messages"][2]["content"][0]["content"],
        "[A document, which this model cannot read: a.docx]"
    );
    assert_eq!(dropped, ["documents"]);
}

/// Parts that no other protocol has are refused in the last message of the user alone.
#[test]
fn parts_without_a_neutral_form_become_texts() {
    let audio =
        json!({ "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } });
    let file = json!({ "type": "file", "file": { "file_id": "file-1" } });
    let file_of_responses = json!({ "type": "input_file", "file_id": "file-1" });
    let image = json!({ "type": "input_image", "file_id": "file-1" });
    let video = json!({ "type": "video_url", "video_url": { "url": "https://example.com/a.mp4" } });
    let other =
        |kind: &str| format!("[Content of the type '{kind}', which this model cannot read.]");
    let document = "[A document, which this model cannot read.]".to_owned();
    let picture = "[An image, which this model cannot see.]".to_owned();
    for (client, part, text) in [
        (Chat, &audio, &other("input_audio")),
        (Responses, &audio, &other("input_audio")),
        (Chat, &file, &document),
        (Responses, &file_of_responses, &document),
        (Responses, &image, &picture),
        (Chat, &video, &other("video_url")),
        (Responses, &video, &other("video_url")),
    ] {
        let list = match client {
            Responses => "input",
            Chat | Messages => "messages",
        };
        let new = json!({ "role": "user", "content": [part, { "type": "text", "text": "Look." }] });
        let history = json!([new, say("assistant", "Done."), say("user", "Go.")]);
        let request = body(client, json!({ list: history }));
        let (messages, dropped) = sent(client, Messages, &request);
        assert_eq!(
            messages["messages"][0]["content"],
            json!([{ "type": "text", "text": text }, { "type": "text", "text": "Look." }])
        );
        assert_eq!(dropped, [format!("{list}[].content[]")]);
        let outline = request.to_string();
        let outline = Outline::read(client, outline.as_bytes()).unwrap();
        let named = outline.dropped_fields(Messages).unwrap();
        assert!(named.iter().all(|name| name.starts_with(list)), "{named:?}");
        let request = body(client, json!({ list: [new] })).to_string();
        let read = neutral(client, request.as_bytes());
        assert!(!matches!(read, Some(Ok(_))), "{request}");
    }
}

/// Blocks of betas come back in each later request:
/// <https://platform.claude.com/docs/en/build-with-claude/compaction>
#[test]
fn unknown_blocks_of_earlier_messages_do_not_end_a_session() {
    let compaction = json!({ "type": "compaction", "content": "Sum." });
    let fallback = json!({ "type": "fallback", "from": { "model": "a" }, "to": { "model": "b" } });
    let addition = json!({ "type": "tool_addition", "tools": [] });
    for (block, text, named) in [
        (&compaction, "Sum.Ok.", false),
        (&fallback, "Ok.", true),
        (&addition, "Ok.", true),
    ] {
        let request = body(
            Messages,
            json!({ "messages": [
                say("user", "Hi."),
                { "role": "assistant", "content": [block, { "type": "text", "text": "Ok." }] },
                say("user", "Go."),
            ] }),
        );
        let (of_chat, _) = sent(Messages, Chat, &request);
        assert_eq!(of_chat["messages"][1]["content"], text);
        let (of_openai, _) = sent(Messages, Responses, &request);
        assert!(of_openai["input"][1].to_string().contains("Ok."));
        let outline = request.to_string();
        let outline = Outline::read(Messages, outline.as_bytes()).unwrap();
        let name = named.then(|| "messages[].content[]".to_owned());
        assert_eq!(outline.dropped_fields(Chat), Ok(Vec::from_iter(name)));
    }
    let image = json!({ "type": "image", "source": { "type": "file", "file_id": "file_1" } });
    let request = body(
        Messages,
        json!({ "messages": [
            { "role": "user", "content": [image, { "type": "text", "text": "Read." }] },
            say("assistant", "Done."),
            say("user", "Go."),
        ] }),
    );
    let (of_chat, dropped) = sent(Messages, Chat, &request);
    assert_eq!(of_chat["messages"][0]["content"], "Read.");
    assert_eq!(dropped, ["messages[].content[]"]);
}

/// "unknown variant `image_url`, expected `text`": <https://github.com/nesquena/hermes-webui/issues/2297>.
/// Content is one text: <https://github.com/BerriAI/litellm/issues/6642>, and not absent beside calls.
#[test]
fn messages_to_deepseek_are_texts() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let image =
        json!({ "type": "image", "source": { "type": "url", "url": "https://a.example/a.png" } });
    let document = json!({ "type": "document", "title": "Oslo",
        "source": { "type": "base64", "media_type": "application/pdf", "data": "JVBERg==" } });
    let call = json!({ "type": "tool_use", "id": "a", "name": "f", "input": {} });
    let result = json!({ "type": "tool_result", "tool_use_id": "a", "content": [image] });
    let request = |model: &str| {
        body(
            Messages,
            json!({ "model": model, "messages": [
                { "role": "user", "content": [text("One."), text("Two."), image] },
                { "role": "assistant", "content": [call] },
                { "role": "user", "content": [result, document, text("So?")] },
            ] }),
        )
    };
    let to_deepseek = |model: &str| served(Messages, (Some("deepseek"), Chat), &request(model));
    let (of_chat, dropped) = to_deepseek("deepseek-chat");
    let contents: Vec<_> = of_chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    let picture = "[An image, which this model cannot see.]";
    assert_eq!(
        contents,
        [
            &format!("One.\n\nTwo.\n\n{picture}"),
            "",
            picture,
            "[A document, which this model cannot read: Oslo]\n\nSo?"
        ]
    );
    assert_eq!(dropped, ["images", "documents"]);
    let (of_chat, _) = to_deepseek("deepseek-vl2");
    assert_eq!(of_chat["messages"][0]["content"][2]["type"], "image_url");
}

/// Images and documents are "Not Supported": <https://api-docs.deepseek.com/guides/anthropic_api>.
/// Flash sees images: <https://api-docs.deepseek.com/guides/vision>.
#[test]
fn messages_of_deepseek_have_no_images_and_documents() {
    let image = json!({ "type": "image_url", "image_url": { "url": "https://a.example/a.png" } });
    let document = json!({ "type": "file", "file": { "filename": "a.pdf",
        "file_data": "data:application/pdf;base64,JVBERg==" } });
    let request = |model: &str| {
        let content = json!([image, document]);
        json!({ "model": model, "messages": [{ "role": "user", "content": content }] })
    };
    let target = (Some("deepseek"), Messages);
    let (sent, dropped) = served(Chat, target, &request("deepseek-v4-pro"));
    let text = |text: &str| json!({ "type": "text", "text": text });
    assert_eq!(
        sent["messages"][0]["content"],
        json!([
            text("[An image, which this model cannot see.]"),
            text("[A document, which this model cannot read: a.pdf]")
        ])
    );
    assert_eq!(dropped, ["images", "documents"]);
    let (sent, _) = served(Chat, target, &request("deepseek-flash"));
    assert_eq!(sent["messages"][0]["content"][0]["type"], "image");
}

/// A result without the name of its function is refused: <https://github.com/NousResearch/hermes-agent/issues/19728>
#[test]
fn results_to_gemini_have_the_name_of_their_function() {
    let history = json!([
        say("user", "Hi."),
        call("a"),
        output("a", "4"),
        say("user", "So?")
    ]);
    for (preset, name) in [
        ("gemini", json!("f")),
        ("vertex", json!("f")),
        ("openai", Value::Null),
    ] {
        let (of_chat, _) = served(Responses, (Some(preset), Chat), &responses(history.clone()));
        assert_eq!(of_chat["messages"][2]["name"], name);
    }
}

/// "Conversation roles must alternate user/assistant/user/assistant/...":
/// <https://github.com/google/adk-python/issues/1373>
#[test]
fn messages_of_the_user_that_meet_are_one_for_templates() {
    let picture = json!({ "role": "user", "content": [{ "type": "input_image", "image_url": "https://a.example/a.png" }] });
    for (next, expected) in [
        (say("user", "Go."), json!("Context.\n\nGo.")),
        (
            picture,
            json!([
                { "type": "text", "text": "Context." },
                { "type": "image_url", "image_url": { "url": "https://a.example/a.png" } },
            ]),
        ),
    ] {
        let request = responses(json!([say("user", "Context."), next]));
        let (of_chat, _) = served(Responses, (Some("vllm"), Chat), &request);
        assert_eq!(
            of_chat["messages"],
            json!([{ "role": "user", "content": expected }])
        );
        let (of_chat, _) = served(Responses, (Some("openai"), Chat), &request);
        assert_eq!(of_chat["messages"].as_array().map(Vec::len), Some(2));
    }
}

/// "Extra inputs are not permitted" (Mistral), "property 'refusal' is unsupported" (Groq):
/// <https://docs.mistral.ai/api/endpoint/chat>, <https://console.groq.com/docs/api-reference#chat-create>
#[test]
fn earlier_refusals_are_texts_where_they_have_no_member() {
    let refusal =
        json!({ "role": "assistant", "content": [{ "type": "refusal", "refusal": "No." }] });
    let both = json!({ "role": "assistant", "content": [{ "type": "output_text", "text": "Hm." },
        { "type": "refusal", "refusal": "No." }] });
    for (preset, of_refusal, of_both) in [
        ("mistral", json!(["No.", null]), json!(["Hm.\n\nNo.", null])),
        ("groq", json!(["No.", null]), json!(["Hm.\n\nNo.", null])),
        ("vllm", json!(["No.", null]), json!(["Hm.\n\nNo.", null])),
        ("openai", json!([null, "No."]), json!(["Hm.", "No."])),
    ] {
        for (answer, expected) in [(&refusal, of_refusal), (&both, of_both)] {
            let request = responses(json!([say("user", "Hi."), answer, say("user", "So?")]));
            let (of_chat, _) = served(Responses, (Some(preset), Chat), &request);
            let message = &of_chat["messages"][1];
            assert_eq!(json!([message["content"], message["refusal"]]), expected);
        }
    }
}

/// "Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant":
/// <https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py>
#[test]
fn the_beginning_of_an_answer_is_marked_for_mistral() {
    let request = body(
        Messages,
        json!({ "messages": [say("user", "Hi."), say("assistant", "{")] }),
    );
    for (preset, mark) in [("mistral", json!(true)), ("openai", Value::Null)] {
        let (of_chat, _) = served(Messages, (Some(preset), Chat), &request);
        assert_eq!(of_chat["messages"][1]["prefix"], mark);
        assert_eq!(of_chat["messages"][1]["content"], "{");
    }
}

/// A document that is a text can be read.
#[test]
fn documents_to_deepseek_keep_their_text() {
    let part = json!({ "type": "input_file", "filename": "a.md", "file_data": "data:text/markdown;base64,SGku" });
    let request = responses(json!([{ "role": "user", "content": [part] }]));
    let (of_chat, dropped) = served(Responses, (Some("deepseek"), Chat), &request);
    assert_eq!(of_chat["messages"][0]["content"], "Hi.");
    assert_eq!(dropped, ["documents"]);
}
