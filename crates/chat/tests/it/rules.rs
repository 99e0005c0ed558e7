//! Validation errors and their wording.

use serde_json::{Value, json};
use sluicegate_chat::{Request, Rules};
use wire::ApiError;

/// Returns the code, param and message of the violation by a valid request with `change` merged
/// into it.
fn refusal(change: Value) -> (&'static str, String, String) {
    let mut body = json!({"model": "alt-flash", "messages": [{"role": "user", "content": "Hi."}]});
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    let found = Request::read(body.to_string().as_bytes())
        .and_then(|request| request.validate(&Rules::default()));
    let error = ApiError::from(found.unwrap_err());
    (error.code, error.param.unwrap_or_default(), error.message)
}

#[track_caller]
fn refused(change: Value, code: &str, param: &str) {
    let (got_code, got_param, message) = refusal(change);
    assert_eq!((got_code, got_param.as_str()), (code, param), "{message}");
}

#[test]
fn fields_out_of_range_are_refused_by_name() {
    refused(json!({"model": ""}), "empty_string", "model");
    refused(json!({"messages": []}), "empty_array", "messages");
    refused(
        json!({"max_tokens": 0}),
        "integer_below_min_value",
        "max_tokens",
    );
    refused(json!({"max_tokens": 1e300}), "invalid_type", "max_tokens");
    refused(
        json!({"max_tokens": 3, "max_completion_tokens": 4}),
        "invalid_parameter_combination",
        "max_tokens",
    );
    refused(
        json!({"temperature": 2.5}),
        "decimal_above_max_value",
        "temperature",
    );
    refused(json!({"top_p": -0.1}), "decimal_below_min_value", "top_p");
    refused(json!({"top_logprobs": 3}), "invalid_value", "top_logprobs");
    refused(
        json!({"stop": ["a", "b", "c", "d", "e"]}),
        "array_above_max_length",
        "stop",
    );
    refused(json!({"stop": []}), "empty_array", "stop");
    refused(json!({"n": 2}), "unsupported_value", "n");
    refused(json!({"n": 129}), "integer_above_max_value", "n");
    refused(
        json!({"reasoning_effort": "huge"}),
        "invalid_value",
        "reasoning_effort",
    );
    refused(json!({"stream": "true"}), "invalid_type", "stream");
    let tools = vec![json!({"type": "function", "function": {"name": "f"}}); 129];
    refused(json!({"tools": tools}), "array_above_max_length", "tools");
}

#[test]
fn messages_are_held_to_their_roles() {
    let messages = |message: Value| json!({ "messages": [message] });
    refused(
        messages(json!({"role": "king", "content": ""})),
        "invalid_value",
        "messages[0].role",
    );
    refused(
        messages(json!({"content": ""})),
        "missing_required_parameter",
        "messages[0].role",
    );
    refused(
        messages(json!({"role": "user"})),
        "missing_required_parameter",
        "messages[0].content",
    );
    refused(
        messages(json!({"role": "assistant"})),
        "missing_required_parameter",
        "messages[0].content",
    );
    refused(
        messages(json!({"role": "tool", "content": "4"})),
        "missing_required_parameter",
        "messages[0].tool_call_id",
    );
    let part = |part: Value| messages(json!({"role": "user", "content": [part]}));
    refused(
        part(json!({"type": "smell"})),
        "invalid_value",
        "messages[0].content[0].type",
    );
    refused(
        part(json!({"type": "text"})),
        "missing_required_parameter",
        "messages[0].content[0].text",
    );
    let image = |url: &str| part(json!({"type": "image_url", "image_url": {"url": url}}));
    for url in [
        "http://a.example/x.png",
        "data:image/png;base64,",
        "data:image/png;base64,?",
        "data:text/plain;base64,aGk=",
    ] {
        refused(
            image(url),
            "invalid_value",
            "messages[0].content[0].image_url.url",
        );
    }
    let file = part(json!({"type": "file", "file": {"file_id": "f"}}));
    refused(
        file,
        "unsupported_parameter",
        "messages[0].content[0].file.file_id",
    );
}

#[test]
fn tools_and_formats_are_held_to_their_shapes() {
    let named = |name: &str| json!({"type": "function", "function": {"name": name}});
    refused(
        json!({"tools": [named("a b")]}),
        "invalid_value",
        "tools[0].function.name",
    );
    refused(
        json!({"tools": [{"type": "web"}]}),
        "invalid_value",
        "tools[0].type",
    );
    refused(
        json!({"tools": [named("a")], "tool_choice": named("b")}),
        "invalid_value",
        "tool_choice",
    );
    refused(
        json!({"tool_choice": "perhaps"}),
        "invalid_value",
        "tool_choice",
    );
    refused(
        json!({"tool_choice": "required"}),
        "invalid_value",
        "tool_choice",
    );
    refused(
        json!({"response_format": {"type": "xml"}}),
        "invalid_value",
        "response_format.type",
    );
    let schema = json!({"type": "json_schema", "json_schema": {"name": "", "schema": {}}});
    refused(
        json!({ "response_format": schema }),
        "invalid_value",
        "response_format.json_schema.name",
    );
    refused(
        json!({"functions": []}),
        "unsupported_parameter",
        "functions",
    );
    refused(
        json!({"modalities": ["text", "audio"]}),
        "unsupported_value",
        "modalities",
    );
}

#[test]
fn every_violation_is_reported_at_once() {
    let (_, _, message) = refusal(json!({"temperature": 3, "n": 0, "stop": []}));
    assert_eq!(message.matches("Invalid '").count(), 3, "{message}");
}

/// Returns true if a request with this change is valid by these rules.
fn read(change: Value, set: fn(&mut Rules)) -> bool {
    let mut rules = Rules::default();
    set(&mut rules);
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi."}]});
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    Request::read(body.to_string().as_bytes())
        .unwrap()
        .validate(&rules)
        .is_ok()
}

#[test]
fn somebody_else_may_interpret_unknown_types() {
    let unknown: fn(&mut Rules) = |rules| rules.unknown_types = true;
    let files: fn(&mut Rules) = |rules| rules.file_ids = true;
    let content = |part: Value| json!({"messages": [{"role": "user", "content": [part]}]});
    for (change, set) in [
        (
            json!({"messages": [{"role": "critic", "content": "Hi."}]}),
            unknown,
        ),
        (content(json!({"type": "smell"})), unknown),
        (json!({"tools": [{"type": "crystal_ball"}]}), unknown),
        (json!({"tool_choice": {"type": "crystal_ball"}}), unknown),
        (json!({"reasoning_effort": "extreme"}), unknown),
        (json!({"response_format": {"type": "regex"}}), unknown),
        (
            content(json!({"type": "file", "file": {"file_id": "file_1"}})),
            files,
        ),
    ] {
        assert!(!read(change.clone(), |_| {}), "{change}");
        assert!(read(change.clone(), set), "{change}");
    }
}

/// Servers know parts in more messages than OpenAI does, calls that only they have made, the
/// predecessors of `tools`, and more stop sequences.
#[test]
fn somebody_else_may_interpret_known_members_in_other_places() {
    let turn = |message: Value| json!({"messages": [message]});
    let picture = json!([{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]);
    for change in [
        turn(json!({"role": "assistant", "content": [{"type": "file", "file": {}}]})),
        turn(json!({"role": "system", "content": picture})),
        turn(json!({"role": "assistant", "reasoning_content": "Hm."})),
        json!({"tool_choice": {"type": "function", "function": {"name": "theirs"}}}),
        json!({"tool_choice": "sometimes"}),
        json!({"functions": [{"name": "f"}], "function_call": "auto"}),
        json!({"stop": ["a", "b", "c", "d", "e"]}),
    ] {
        assert!(!read(change.clone(), |_| {}), "{change}");
        assert!(
            read(change.clone(), |rules| rules.unknown_types = true),
            "{change}"
        );
    }
}

/// Parts of an earlier message come with each later request.
#[test]
fn parts_of_earlier_messages_are_no_reason_to_refuse() {
    for part in [
        json!({"type": "smell"}),
        json!({"type": "file", "file": {"file_id": "file_1"}}),
    ] {
        let message = json!({"role": "user", "content": [part]});
        let answer = json!({"role": "assistant", "content": "Yes."});
        let next = json!({"role": "user", "content": "So?"});
        assert!(!read(json!({"messages": [message]}), |_| {}), "{part}");
        assert!(
            !read(json!({"messages": [message, answer]}), |_| {}),
            "{part}"
        );
        assert!(
            read(json!({"messages": [message, answer, next]}), |_| {}),
            "{part}"
        );
    }
}
