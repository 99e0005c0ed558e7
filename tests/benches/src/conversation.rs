//! A conversation of 300 KiB with a coding agent, in two protocols: text of both sides, calls of a
//! tool, and the files that they return.

use std::fmt::Write as _;

/// The members of a Chat request after the model.
pub(crate) fn chat() -> String {
    let mut turns = String::new();
    for turn in 0..TURNS {
        let _ = write!(
            turns,
            r#"{{"role":"user","content":"{QUESTION}"}},{{"role":"assistant","content":"{ANSWER}","tool_calls":[{{"id":"call_{turn}","type":"function","function":{{"name":"read_file","arguments":"{ARGUMENTS}"}}}}]}},{{"role":"tool","tool_call_id":"call_{turn}","content":"{}"}},"#,
            file()
        );
    }
    format!(
        r#""tools":[{{"type":"function","function":{FUNCTION}}}],"messages":[{turns}{{"role":"user","content":"{QUESTION}"}}]"#
    )
}

/// The members of a Responses request after the model.
pub(crate) fn responses() -> String {
    let mut turns = String::new();
    for turn in 0..TURNS {
        let _ = write!(
            turns,
            r#"{{"role":"user","content":[{{"type":"input_text","text":"{QUESTION}"}}]}},{{"role":"assistant","content":[{{"type":"output_text","text":"{ANSWER}"}}]}},{{"type":"function_call","call_id":"call_{turn}","name":"read_file","arguments":"{ARGUMENTS}"}},{{"type":"function_call_output","call_id":"call_{turn}","output":"{}"}},"#,
            file()
        );
    }
    let function = FUNCTION.trim_start_matches('{');
    format!(
        r#""tools":[{{"type":"function",{function}],"input":[{turns}{{"role":"user","content":[{{"type":"input_text","text":"{QUESTION}"}}]}}]"#
    )
}

/// A file of 5 KiB, as it is within a JSON string.
fn file() -> String {
    LINE.repeat(FILE / LINE.len())
}

const TURNS: usize = 54;
const FILE: usize = 5 << 10;
const QUESTION: &str = "Where is the limit of a request read, and which test shows that a larger one is refused? Café, 東京.";
const ANSWER: &str = "The limit is read in `limits.rs`.\\n\\nI look at the file to see what is compared with it:\\n\\n- the length of the body\\n- the length of each line";
const ARGUMENTS: &str = r#"{\"path\":\"src/limits.rs\",\"from\":1,\"to\":120}"#;
const LINE: &str = r#"    if length > limit { return Err(format!(\"{length} bytes, at most {limit}\")); } // § 4\n"#;
const FUNCTION: &str = r#"{"name":"read_file","description":"Reads some lines of a file.","parameters":{"type":"object","properties":{"path":{"type":"string"},"from":{"type":"integer"},"to":{"type":"integer"}},"required":["path","from","to"],"additionalProperties":false}}"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_have_300_kib() {
        for text in [chat(), responses()] {
            assert!(
                (290 << 10..330 << 10).contains(&text.len()),
                "{}",
                text.len()
            );
        }
    }
}
