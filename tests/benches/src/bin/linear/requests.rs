//! Requests of many small parts.

use crate::{Build, Case};

/// Each kind of part in each protocol, for a server of each text protocol.
pub(crate) fn cases() -> Vec<Case> {
    let text = KINDS.iter().flat_map(|kind| {
        MODELS.iter().filter_map(move |model| {
            if kind.only.is_some_and(|only| only != *model) {
                return None;
            }
            let (start, end) = (kind.start, kind.end);
            let part = kind.part;
            let body: Build = Box::new(move |count| {
                let parts: Vec<_> = (0..count).map(part).collect();
                let parts = parts.join(if kind.is_text { "" } else { "," });
                format!("{{\"model\":\"{model}\",{start}{parts}{end}}}")
            });
            Some(Case {
                name: format!("{} to {model}: {}", kind.path, kind.name),
                path: kind.path,
                body,
                answer: None,
            })
        })
    });
    text.collect()
}

/// A kind of part of a request.
struct Kind {
    path: &'static str,
    name: &'static str,
    start: &'static str,
    part: fn(usize) -> String,
    end: &'static str,
    /// True if the parts are within one string.
    is_text: bool,
    /// The only model that takes so many of them.
    only: Option<&'static str>,
}

impl Kind {
    const fn new(
        path: &'static str,
        name: &'static str,
        start: &'static str,
        part: fn(usize) -> String,
        end: &'static str,
    ) -> Self {
        Self {
            path,
            name,
            start,
            part,
            end,
            is_text: false,
            only: None,
        }
    }

    const fn within_a_string(mut self) -> Self {
        self.is_text = true;
        self
    }

    const fn only(mut self, model: &'static str) -> Self {
        self.only = Some(model);
        self
    }
}

const MODELS: [&str; 3] = ["chat", "messages", "responses"];
const CHAT: &str = "/chat/completions";
const MESSAGES: &str = "/messages";
const RESPONSES: &str = "/responses";

const KINDS: [Kind; 23] = [
    Kind::new(
        CHAT,
        "developer messages",
        r#""messages":[{"role":"user","content":"a"},"#,
        |_| r#"{"role":"developer","content":"a"}"#.to_owned(),
        "]",
    ),
    Kind::new(
        CHAT,
        "messages in turn",
        r#""messages":[{"role":"user","content":"a"},"#,
        |i| {
            let role = if i % 2 == 0 { "assistant" } else { "user" };
            format!(r#"{{"role":"{role}","content":"a"}}"#)
        },
        r#",{"role":"user","content":"a"}]"#,
    ),
    Kind::new(
        CHAT,
        "parts of a message",
        r#""messages":[{"role":"user","content":["#,
        |_| r#"{"type":"text","text":"a"}"#.to_owned(),
        "]}]",
    ),
    Kind::new(
        CHAT,
        "calls and results",
        r#""messages":[{"role":"user","content":"a"},"#,
        |i| {
            format!(
                r#"{{"role":"assistant","tool_calls":[{{"id":"c{i}","type":"function","function":{{"name":"f.{i}","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c{i}","content":"a"}}"#
            )
        },
        "]",
    ),
    Kind::new(
        CHAT,
        "tools",
        r#""messages":[{"role":"user","content":"a"}],"tools":["#,
        |i| format!(r#"{{"type":"function","function":{{"name":"f-{i}"}}}}"#),
        "]",
    )
    .only("messages"),
    Kind::new(
        CHAT,
        "properties of a schema",
        r#""messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object","additionalProperties":false,"properties":{"#,
        |i| format!(r#""p{i}":{{}}"#),
        "}}}}]",
    ),
    Kind::new(
        CHAT,
        "escapes of a text",
        r#""messages":[{"role":"user","content":""#,
        |_| r"\n\u00e9".to_owned(),
        r#""}]"#,
    )
    .within_a_string(),
    Kind::new(
        CHAT,
        "unknown members",
        r#""messages":[{"role":"user","content":"a"}],"#,
        |i| format!(r#""m{i}":1"#),
        "",
    ),
    Kind::new(
        CHAT,
        "unknown members of messages",
        r#""messages":[{"role":"user","content":"a"},"#,
        |i| format!(r#"{{"role":"user","content":"a","m{i}":1}}"#),
        "]",
    ),
    Kind::new(
        MESSAGES,
        "messages in turn",
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"},"#,
        |i| {
            let role = if i % 2 == 0 { "assistant" } else { "user" };
            format!(r#"{{"role":"{role}","content":"a"}}"#)
        },
        r#",{"role":"user","content":"a"}]"#,
    ),
    Kind::new(
        MESSAGES,
        "blocks of a message",
        r#""max_tokens":9,"messages":[{"role":"user","content":["#,
        |_| r#"{"type":"text","text":"a"}"#.to_owned(),
        "]}]",
    ),
    Kind::new(
        MESSAGES,
        "blocks of the instructions",
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"}],"system":["#,
        |_| r#"{"type":"text","text":"a"}"#.to_owned(),
        "]",
    ),
    Kind::new(
        MESSAGES,
        "calls and results",
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"},"#,
        |i| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"c{i}","name":"f.{i}","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"c{i}","content":"a"}}]}}"#
            )
        },
        "]",
    ),
    Kind::new(
        MESSAGES,
        "tools",
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"}],"tools":["#,
        |i| format!(r#"{{"name":"f-{i}","input_schema":{{"type":"object"}}}}"#),
        "]",
    )
    .only("messages"),
    Kind::new(
        MESSAGES,
        "escapes of a text",
        r#""max_tokens":9,"messages":[{"role":"user","content":""#,
        |_| r"\n\u00e9".to_owned(),
        r#""}]"#,
    )
    .within_a_string(),
    Kind::new(
        MESSAGES,
        "stop sequences",
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"}],"stop_sequences":["#,
        |i| format!(r#""s{i}""#),
        "]",
    )
    .only("messages"),
    Kind::new(
        MESSAGES,
        "unknown members",
        r#""max_tokens":9,"messages":[{"role":"user","content":"a"}],"#,
        |i| format!(r#""m{i}":1"#),
        "",
    ),
    Kind::new(
        RESPONSES,
        "items",
        r#""input":[{"role":"user","content":[{"type":"input_text","text":"a"}]},"#,
        |_| r#"{"role":"developer","content":"a"}"#.to_owned(),
        "]",
    ),
    Kind::new(
        RESPONSES,
        "parts of an item",
        r#""input":[{"role":"user","content":["#,
        |_| r#"{"type":"input_text","text":"a"}"#.to_owned(),
        "]}]",
    ),
    Kind::new(
        RESPONSES,
        "calls and results",
        r#""input":[{"role":"user","content":"a"},"#,
        |i| {
            format!(
                r#"{{"type":"function_call","call_id":"c{i}","name":"f.{i}","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c{i}","output":"a"}}"#
            )
        },
        "]",
    ),
    Kind::new(
        RESPONSES,
        "parts of a summary",
        r#""input":[{"role":"user","content":"a"},{"type":"reasoning","summary":["#,
        |_| r#"{"type":"summary_text","text":"a"}"#.to_owned(),
        r#"]},{"role":"user","content":"a"}]"#,
    ),
    Kind::new(
        RESPONSES,
        "escapes of a text",
        r#""input":[{"role":"user","content":""#,
        |_| r"\n\u00e9".to_owned(),
        r#""}]"#,
    )
    .within_a_string(),
    Kind::new(
        RESPONSES,
        "unknown members",
        r#""input":[{"role":"user","content":"a"}],"#,
        |i| format!(r#""m{i}":1"#),
        "",
    ),
];
