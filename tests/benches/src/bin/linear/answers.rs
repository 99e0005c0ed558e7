//! Answers of many small parts, plain and streamed.

use crate::{Build, Case};

/// Each kind of part in the protocol of each server, for the clients of each protocol.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for kind in &KINDS {
        for (path, rest) in CLIENTS {
            let streams = kind.is_streamed;
            let how = if streams { "streamed" } else { "plain" };
            let model = kind.model;
            let body = format!("{{\"model\":\"{model}\",\"stream\":{streams},{rest}}}");
            let answer: Build = Box::new(move |count| {
                let parts: Vec<_> = (0..count).map(kind.part).collect();
                (kind.whole)(&parts)
            });
            cases.push(Case {
                name: format!("{path} from {model}, {how}: {}", kind.name),
                path,
                body: Box::new(move |_| body.clone()),
                answer: Some(answer),
            });
        }
    }
    cases
}

/// A kind of part of an answer.
struct Kind {
    model: &'static str,
    name: &'static str,
    is_streamed: bool,
    part: fn(usize) -> String,
    /// Writes the answer with these parts.
    whole: fn(&[String]) -> String,
}

const fn plain(
    model: &'static str,
    name: &'static str,
    part: fn(usize) -> String,
    whole: fn(&[String]) -> String,
) -> Kind {
    Kind {
        model,
        name,
        is_streamed: false,
        part,
        whole,
    }
}

const fn streamed(
    model: &'static str,
    name: &'static str,
    part: fn(usize) -> String,
    whole: fn(&[String]) -> String,
) -> Kind {
    Kind {
        is_streamed: true,
        ..plain(model, name, part, whole)
    }
}

const CLIENTS: [(&str, &str); 3] = [
    (
        "/chat/completions",
        r#""messages":[{"role":"user","content":"a"}]"#,
    ),
    (
        "/messages",
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"}]"#,
    ),
    (
        "/responses",
        r#""input":[{"role":"user","content":[{"type":"input_text","text":"a"}]}]"#,
    ),
];

/// An output item of Responses.
pub(crate) const MESSAGE: &str = r#"{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Yes.","annotations":[]}]}"#;

/// A plain answer of Chat whose message has these members.
pub(crate) fn chat(members: &str) -> String {
    format!(
        r#"{{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{{"index":0,"message":{{"role":"assistant",{members}}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}}}"#
    )
}

/// A plain answer of Messages with these blocks.
pub(crate) fn messages(blocks: &str) -> String {
    format!(
        r#"{{"id":"m1","type":"message","role":"assistant","model":"m","content":[{blocks}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":1,"output_tokens":1}}}}"#
    )
}

/// A plain answer of Responses with these output items.
pub(crate) fn responses(items: &str) -> String {
    format!(
        r#"{{"id":"r1","object":"response","created_at":1,"status":"completed","model":"m","output":[{items}],"usage":{{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}}"#
    )
}

fn chat_call(i: usize) -> String {
    format!(r#"{{"id":"c{i}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}"#)
}

fn chat_chunk(delta: &str) -> String {
    format!(
        r#"{{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#
    )
}

fn chat_text(_: usize) -> String {
    chat_chunk(r#"{"content":"a"}"#)
}

fn chat_reasoning(_: usize) -> String {
    chat_chunk(r#"{"reasoning_content":"a"}"#)
}

fn chat_call_chunk(i: usize) -> String {
    chat_chunk(&format!(
        r#"{{"tool_calls":[{{"index":{i},"id":"c{i}","type":"function","function":{{"name":"f","arguments":"{{}}"}}}}]}}"#
    ))
}

fn chat_arguments(i: usize) -> String {
    let (head, piece) = match i {
        0 => (
            r#""id":"c0","type":"function","#,
            r#""name":"f","arguments":"[0""#,
        ),
        _ => ("", r#""arguments":",1""#),
    };
    chat_chunk(&format!(
        r#"{{"tool_calls":[{{"index":0,{head}"function":{{{piece}}}}}]}}"#
    ))
}

/// The events of a stream of Chat.
fn chat_stream(chunks: &[String]) -> String {
    let mut stream: String = chunks.iter().map(|chunk| data(chunk)).collect();
    stream += &data(
        r#"{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#,
    );
    stream + "data: [DONE]\n\n"
}

fn messages_text(i: usize) -> String {
    let start = match i {
        0 => messages_start(0, r#"{"type":"text","text":""}"#),
        _ => String::new(),
    };
    start
        + &data(
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#,
        )
}

fn messages_start(index: usize, block: &str) -> String {
    data(&format!(
        r#"{{"type":"content_block_start","index":{index},"content_block":{block}}}"#
    ))
}

fn messages_call(i: usize) -> String {
    messages_start(i, &messages_block(i))
        + &data(&format!(
            r#"{{"type":"content_block_delta","index":{i},"delta":{{"type":"input_json_delta","partial_json":"{{}}"}}}}"#
        ))
        + &data(&format!(r#"{{"type":"content_block_stop","index":{i}}}"#))
}

fn messages_block(i: usize) -> String {
    format!(r#"{{"type":"tool_use","id":"c{i}","name":"f","input":{{}}}}"#)
}

fn messages_open(i: usize) -> String {
    messages_start(i, r#"{"type":"text","text":"a"}"#)
}

/// The events of a stream of Messages. Blocks that are open at the end stay open.
fn messages_stream(events: &[String]) -> String {
    let start = r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}"#;
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens","stop_sequence":null},"usage":{"output_tokens":1}}"#;
    data(start) + &events.concat() + &data(end) + &data(r#"{"type":"message_stop"}"#)
}

fn responses_text(_: usize) -> String {
    r#"{"type":"response.output_text.delta","output_index":0,"item_id":"m1","content_index":0,"delta":"a"}"#.to_owned()
}

fn responses_call(i: usize) -> String {
    format!(
        r#"{{"type":"response.output_item.done","output_index":{i},"item":{}}}"#,
        responses_item(i)
    )
}

fn responses_open(i: usize) -> String {
    format!(
        r#"{{"type":"response.output_item.added","output_index":{i},"item":{{"type":"message","id":"m{i}","role":"assistant","status":"in_progress","content":[]}}}}"#
    )
}

fn responses_item(i: usize) -> String {
    format!(
        r#"{{"type":"function_call","id":"f{i}","call_id":"c{i}","name":"f","arguments":"{{}}","status":"completed"}}"#
    )
}

/// The events of a stream of Responses, which ends without repeating its output.
fn responses_stream(events: &[String]) -> String {
    let start = r#"{"type":"response.created","response":{"id":"r1","object":"response","created_at":1,"status":"in_progress","model":"m","output":[]}}"#;
    let end = r#"{"type":"response.incomplete","response":{"id":"r1","object":"response","created_at":1,"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"m","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}"#;
    let events: String = events.iter().map(|event| data(event)).collect();
    data(start) + &events + &data(end)
}

fn data(event: &str) -> String {
    format!("data: {event}\n\n")
}

fn escape(_: usize) -> String {
    r"\n\u00e9".to_owned()
}

const KINDS: [Kind; 17] = [
    plain("chat", "escapes of a text", escape, |parts| {
        chat(&format!(r#""content":"{}""#, parts.concat()))
    }),
    plain("chat", "calls", chat_call, |parts| {
        chat(&format!(
            r#""content":null,"tool_calls":[{}]"#,
            parts.join(",")
        ))
    }),
    plain(
        "messages",
        "blocks",
        |_| r#"{"type":"text","text":"a"}"#.to_owned(),
        |parts| messages(&parts.join(",")),
    ),
    plain("messages", "calls", messages_block, |parts| {
        messages(&parts.join(","))
    }),
    plain(
        "responses",
        "items",
        |_| MESSAGE.to_owned(),
        |parts| responses(&parts.join(",")),
    ),
    plain("responses", "calls", responses_item, |parts| {
        responses(&parts.join(","))
    }),
    streamed("chat", "pieces of text", chat_text, chat_stream),
    streamed("chat", "pieces of reasoning", chat_reasoning, chat_stream),
    streamed("chat", "calls", chat_call_chunk, chat_stream),
    streamed("chat", "pieces of arguments", chat_arguments, chat_stream),
    streamed("chat", "escapes in one event", escape, |parts| {
        let content = format!(r#"{{"content":"{}"}}"#, parts.concat());
        chat_stream(&[chat_chunk(&content)])
    }),
    streamed("messages", "pieces of text", messages_text, messages_stream),
    streamed("messages", "calls", messages_call, messages_stream),
    streamed("messages", "open blocks", messages_open, messages_stream),
    streamed(
        "responses",
        "pieces of text",
        responses_text,
        responses_stream,
    ),
    streamed("responses", "calls", responses_call, responses_stream),
    streamed("responses", "open items", responses_open, responses_stream),
];
