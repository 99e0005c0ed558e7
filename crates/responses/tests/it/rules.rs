//! Validation errors and their wording.

use serde_json::{Value, json};
use sluicegate_responses::{
    FunctionCall, Item, Request, Rules, Tool, ToolChoice, ToolChoiceObject, ValidRequest,
};
use wire::ApiError;

/// Returns a valid request with `change` merged into it.
fn read(change: Value) -> Result<Request, ApiError> {
    let mut body = json!({"model": "model-5.5", "input": [{"role": "user", "content": "Hi."}]});
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    let found = Request::read(body.to_string().as_bytes())
        .and_then(|request| request.validate(&Rules::default()));
    found.map(ValidRequest::into_inner).map_err(ApiError::from)
}

#[track_caller]
fn refused(change: Value, code: &str, param: &str) {
    let error = read(change).unwrap_err();
    assert_eq!(
        (error.code, error.param.as_deref().unwrap_or_default()),
        (code, param),
        "{}",
        error.message
    );
    // The vendor does not repeat the path of a value that is not one of a list.
    let is_word = error.message.starts_with("Invalid value: ");
    assert!(
        is_word || error.message.contains(param),
        "{}",
        error.message
    );
}

/// Asserts the code, path and message of a violation.
#[track_caller]
fn assert_violation(change: Value, code: &str, param: &str, message: &str) {
    let error = read(change).unwrap_err();
    assert_eq!(
        (error.code, error.param.as_deref().unwrap_or_default()),
        (code, param),
        "{}",
        error.message
    );
    assert_eq!(error.message, message);
}

#[track_caller]
fn accepted(change: Value) -> Request {
    read(change).unwrap()
}

fn input(items: Value) -> Value {
    json!({ "input": items })
}

/// Returns a user message with one part.
fn part(part: Value) -> Value {
    input(json!([{"role": "user", "content": [part]}]))
}

#[test]
fn the_input_is_a_list_of_items() {
    let refusal =
        "Invalid type for 'input': expected an array of objects, but got a string instead.";
    assert_violation(json!({"input": "Hi."}), "invalid_type", "input", refusal);
    let refusal = "Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.";
    assert_violation(input(json!([])), "empty_array", "input", refusal);
    refused(input(json!(null)), "invalid_type", "input");
    refused(input(json!(["Hi."])), "invalid_type", "input[0]");
    let error = ApiError::from(Request::read(br#"{"stream":true}"#).unwrap_err());
    assert_eq!(
        (error.code, error.param.as_deref()),
        ("missing_required_parameter", Some("model"))
    );
    assert_eq!(
        error.message,
        "Missing required parameter: 'model'. Missing required parameter: 'input'."
    );
}

#[test]
fn a_model_may_take_a_text_for_the_input() {
    let mut rules = Rules::default();
    rules.string_input = true;
    let read = |input: &Value| {
        Request::read(
            json!({"model": "alt-flash", "input": input})
                .to_string()
                .as_bytes(),
        )
        .unwrap()
        .validate(&rules)
    };
    assert!(read(&json!("Hi.")).is_ok());
    assert!(read(&json!([{"role": "user", "content": "Hi."}])).is_ok());
    assert_eq!(read(&json!([])).unwrap_err().len(), 1);
}

#[test]
fn fields_out_of_range_are_refused_by_name() {
    assert_violation(
        json!({"model": ""}),
        "empty_string",
        "model",
        "Invalid 'model': empty string. Expected a string with minimum length 1, but got an empty string instead.",
    );
    assert_violation(
        json!({"max_output_tokens": 0}),
        "integer_below_min_value",
        "max_output_tokens",
        "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
    );
    assert_violation(
        json!({"temperature": 2.5}),
        "decimal_above_max_value",
        "temperature",
        "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
    );
    refused(json!({"model": 5}), "invalid_type", "model");
    refused(
        json!({"max_output_tokens": 1.5}),
        "invalid_type",
        "max_output_tokens",
    );
    refused(
        json!({"max_output_tokens": "64"}),
        "invalid_type",
        "max_output_tokens",
    );
    refused(
        json!({"max_output_tokens": true}),
        "invalid_type",
        "max_output_tokens",
    );
    refused(
        json!({"max_tool_calls": 0}),
        "integer_below_min_value",
        "max_tool_calls",
    );
    refused(
        json!({"top_logprobs": 21}),
        "integer_above_max_value",
        "top_logprobs",
    );
    refused(
        json!({"top_logprobs": -1}),
        "integer_below_min_value",
        "top_logprobs",
    );
    refused(json!({"top_p": 1.1}), "decimal_above_max_value", "top_p");
    refused(
        json!({"presence_penalty": -2.1}),
        "decimal_below_min_value",
        "presence_penalty",
    );
    refused(
        json!({"frequency_penalty": 2.1}),
        "decimal_above_max_value",
        "frequency_penalty",
    );
    refused(json!({"stream": "true"}), "invalid_type", "stream");
    refused(
        json!({"truncation": "middle"}),
        "invalid_value",
        "truncation",
    );
    refused(
        json!({"reasoning": {"effort": "huge"}}),
        "invalid_value",
        "reasoning.effort",
    );
    refused(
        json!({"reasoning": {"summary": "long"}}),
        "invalid_value",
        "reasoning.summary",
    );
    refused(
        json!({"reasoning": {"generate_summary": "long"}}),
        "invalid_value",
        "reasoning.generate_summary",
    );
    refused(json!({"include": "reasoning"}), "invalid_type", "include");
    refused(
        json!({"stream_options": {"include_obfuscation": 1}}),
        "invalid_type",
        "stream_options.include_obfuscation",
    );
}

#[test]
fn in_range_unknown_and_null_fields_are_accepted() {
    let request = accepted(json!({
        "max_output_tokens": 1.0, "top_logprobs": 20, "temperature": 0, "top_p": 1, "presence_penalty": -2,
        "include": ["reasoning.encrypted_content", "tomorrow"], "client_metadata": {"a": [1]}, "store": true,
        "background": false,
    }));
    assert_eq!(
        (
            request.max_output_tokens,
            request.top_logprobs,
            request.store
        ),
        (Some(1), Some(20), Some(true))
    );
    assert!(
        request.includes(Request::ENCRYPTED_REASONING)
            && !request.includes("message.output_text.logprobs")
    );
    assert_eq!(request.extra["client_metadata"], json!({"a": [1]}));
    let names = [
        "instructions",
        "max_output_tokens",
        "stream",
        "stream_options",
        "tools",
        "tool_choice",
        "temperature",
        "text",
        "reasoning",
        "include",
        "metadata",
        "store",
        "previous_response_id",
        "conversation",
        "prompt",
        "background",
        "truncation",
        "service_tier",
        "user",
    ];
    let nulls: Value = names
        .into_iter()
        .map(|name| (name.to_owned(), Value::Null))
        .collect();
    assert_eq!(accepted(nulls), accepted(json!({})));
}

#[test]
fn fields_that_need_stored_state_are_rejected() {
    assert_violation(
        json!({"previous_response_id": "resp_1"}),
        "previous_response_not_found",
        "previous_response_id",
        "Previous response with id 'resp_1' not found.",
    );
    assert_violation(
        json!({"background": true}),
        "unsupported_parameter",
        "background",
        "Unsupported parameter: 'background' is not supported with this model.",
    );
    refused(
        json!({"conversation": "conv_1"}),
        "unsupported_parameter",
        "conversation",
    );
    refused(
        json!({"conversation": {"id": "conv_1"}}),
        "unsupported_parameter",
        "conversation",
    );
    refused(
        json!({"prompt": {"id": "pmpt_1"}}),
        "unsupported_parameter",
        "prompt",
    );
    let references = [
        json!({"type": "item_reference", "id": "msg_1"}),
        json!({"type": null, "id": "msg_1"}),
        json!({"id": "msg_1"}),
    ];
    for reference in references {
        assert_violation(
            input(json!([{"role": "user", "content": "Hi."}, reference])),
            "unsupported_item_reference",
            "input[1]",
            "input[1]: item_reference is not supported because this service keeps no state between requests; send \
             the full item instead (clients: set store to false).",
        );
    }
}

#[test]
fn a_server_with_a_memory_may_be_asked_for_it() {
    type Set = fn(&mut Rules);
    let read = |change: Value, set: Set| {
        let mut rules = Rules::default();
        rules.string_input = true;
        set(&mut rules);
        let mut body = json!({"model": "m", "input": "Hi."});
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::read(body.to_string().as_bytes())
            .unwrap()
            .validate(&rules)
            .is_ok()
    };
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "12"});
    let reference = json!({"type": "item_reference", "id": "fc_1"});
    let file = json!([{"role": "user", "content": [{"type": "input_file", "file_id": "file_1"}]}]);
    let cases: [(Value, Set); 8] = [
        (json!({"previous_response_id": "resp_1"}), |rules| {
            rules.previous_response = true;
        }),
        // The server keeps the call.
        (
            json!({"previous_response_id": "resp_1", "input": [result]}),
            |rules| rules.previous_response = true,
        ),
        (
            json!({"conversation": "conv_1", "input": [result]}),
            |rules| {
                rules.conversation = true;
            },
        ),
        (json!({"input": [reference, result]}), |rules| {
            rules.item_references = true;
        }),
        (json!({"input": [{"id": "msg_1"}]}), |rules| {
            rules.item_references = true;
        }),
        (json!({"prompt": {"id": "pmpt_1"}}), |rules| {
            rules.prompt = true;
        }),
        (json!({"background": true}), |rules| rules.background = true),
        (json!({ "input": file }), |rules| rules.file_ids = true),
    ];
    for (change, set) in cases {
        assert!(!read(change.clone(), |_| {}), "{change}");
        assert!(read(change.clone(), set), "{change}");
    }
    assert!(!read(json!({"input": [result]}), |rules| {
        rules.previous_response = true;
    }));
}

#[test]
fn somebody_else_may_interpret_unknown_types() {
    let read = |change: Value, unknown_types: bool| {
        let mut rules = Rules::default();
        rules.unknown_types = unknown_types;
        let mut body = json!({"model": "m", "input": [{"role": "user", "content": "Hi."}]});
        for (name, value) in change.as_object().unwrap() {
            body[name] = value.clone();
        }
        Request::read(body.to_string().as_bytes())
            .unwrap()
            .validate(&rules)
            .is_ok()
    };
    for change in [
        json!({"input": [{"type": "telepathy"}]}),
        json!({"input": [{"role": "critic", "content": "Hi."}]}),
        json!({"input": [{"role": "user", "content": [{"type": "smell"}]}]}),
        json!({"input": [{"type": "reasoning", "summary": [{"type": "sketch"}]}]}),
        json!({"tools": [{"type": "crystal_ball"}]}),
        json!({"tool_choice": {"type": "crystal_ball"}}),
        json!({"reasoning": {"effort": "extreme"}}),
        json!({"reasoning": {"summary": "verbose"}}),
        json!({"text": {"verbosity": "extreme"}}),
        json!({"text": {"format": {"type": "regex"}}}),
        json!({"truncation": "middle"}),
    ] {
        assert!(!read(change.clone(), false), "{change}");
        assert!(read(change.clone(), true), "{change}");
    }
    for change in [
        json!({"input": [{"content": "Hi."}]}),
        json!({"input": [{"role": "assistant", "content": [{"type": "input_image"}]}]}),
        json!({"tools": [{"type": ""}]}),
    ] {
        assert!(!read(change.clone(), true), "{change}");
    }
}

#[test]
fn items_are_of_a_kind() {
    let kinds = "'message', 'function_call', 'function_call_output', 'reasoning', 'custom_tool_call', \
                 'custom_tool_call_output', and 'item_reference'";
    assert_violation(
        input(json!([{"type": "telepathy"}])),
        "invalid_value",
        "input[0].type",
        &format!("Invalid value: 'telepathy'. Supported values are: {kinds}."),
    );
    assert_violation(
        input(json!([{"content": "Hi."}])),
        "invalid_type",
        "input[0]",
        "Invalid type for 'input[0]': expected an item with a 'type' or a 'role', but got an object without them \
         instead.",
    );
    refused(input(json!([{"type": 7}])), "invalid_type", "input[0].type");
    refused(
        input(json!([{"type": "message", "content": ""}])),
        "missing_required_parameter",
        "input[0].role",
    );
    for kind in [
        "web_search_call",
        "local_shell_call",
        "mcp_approval_request",
        "tool_search_output",
        "compaction",
    ] {
        let request = accepted(input(json!([{"type": kind, "deep": {"a": 1}}])));
        assert_eq!(
            serde_json::to_value(&request).unwrap()["input"],
            json!([{"type": kind, "deep": {"a": 1}}])
        );
    }
}

#[test]
fn messages_are_held_to_their_roles() {
    assert_violation(
        input(json!([{"role": "king", "content": ""}])),
        "invalid_value",
        "input[0].role",
        "Invalid value: 'king'. Supported values are: 'user', 'assistant', 'system', and 'developer'.",
    );
    refused(
        input(json!([{"role": "user"}])),
        "missing_required_parameter",
        "input[0].content",
    );
    refused(
        input(json!([{"role": "user", "content": 7}])),
        "invalid_type",
        "input[0].content",
    );
    assert_violation(
        part(json!({"type": "output_text", "text": "Hi."})),
        "invalid_value",
        "input[0].content[0].type",
        "Invalid value: 'output_text'. Supported values are: 'input_text', \
         'input_image', 'input_file', 'input_audio', and 'text'.",
    );
    refused(
        part(json!({"type": "input_text"})),
        "missing_required_parameter",
        "input[0].content[0].text",
    );
    let message_with = |role: &str, part: Value| input(json!([{"role": role, "content": [part]}]));
    let image = json!({"type": "input_image", "image_url": "https://a.example/x.png"});
    for role in ["system", "developer", "assistant"] {
        refused(
            message_with(role, image.clone()),
            "invalid_value",
            "input[0].content[0].type",
        );
        accepted(message_with(role, json!({"type": "text", "text": "Hi."})));
    }
    refused(
        message_with("assistant", json!({"type": "input_text", "text": ""})),
        "invalid_value",
        "input[0].content[0].type",
    );
    accepted(message_with(
        "assistant",
        json!({"type": "refusal", "refusal": "No."}),
    ));
    accepted(message_with(
        "assistant",
        json!({"type": "output_text", "text": "Hi.", "annotations": [], "logprobs": []}),
    ));
    accepted(part(
        json!({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}),
    ));
}

#[test]
fn pictures_and_documents_are_held_to_their_sources() {
    let image = |members: Value| {
        let mut image = json!({"type": "input_image"});
        members
            .as_object()
            .unwrap()
            .iter()
            .for_each(|(name, value)| image[name] = value.clone());
        part(image)
    };
    let at = "input[0].content[0].image_url";
    for url in [
        "http://a.example/x.png",
        "data:image/png;base64,",
        "data:image/png;base64,?",
        "data:text/plain;base64,aGk=",
    ] {
        refused(image(json!({ "image_url": url })), "invalid_value", at);
    }
    refused(image(json!({})), "missing_required_parameter", at);
    refused(
        image(json!({"image_url": {"url": "https://a.example/x.png"}})),
        "invalid_type",
        at,
    );
    assert_violation(
        image(json!({"file_id": "file_1"})),
        "unsupported_parameter",
        "input[0].content[0].file_id",
        "Unsupported parameter: 'input[0].content[0].file_id' is not supported with this model. Use 'image_url' \
         instead.",
    );
    let usable = "data:image/png;base64,aGk=";
    refused(
        image(json!({"image_url": usable, "detail": "all"})),
        "invalid_value",
        "input[0].content[0].detail",
    );
    accepted(image(json!({"image_url": usable, "detail": "original"})));
    accepted(image(
        json!({"image_url": "https://a.example/x.png", "detail": null}),
    ));

    let file = |members: Value| {
        let mut file = json!({"type": "input_file"});
        members
            .as_object()
            .unwrap()
            .iter()
            .for_each(|(name, value)| file[name] = value.clone());
        part(file)
    };
    refused(
        file(json!({"filename": "a.pdf"})),
        "missing_required_parameter",
        "input[0].content[0].file_data",
    );
    refused(
        file(json!({"file_id": "file_1"})),
        "unsupported_parameter",
        "input[0].content[0].file_id",
    );
    refused(
        file(json!({"file_url": "http://a.example"})),
        "invalid_value",
        "input[0].content[0].file_url",
    );
    let broken = "data:application/pdf;base64,?";
    refused(
        file(json!({ "file_data": broken })),
        "invalid_value",
        "input[0].content[0].file_data",
    );
    accepted(file(
        json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}),
    ));
    accepted(file(json!({"file_url": "https://a.example/a.pdf"})));
}

#[test]
fn results_follow_their_calls() {
    let call =
        json!({"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "no JSON"});
    let result = json!({"type": "function_call_output", "call_id": "call_1", "output": "4"});
    assert_violation(
        input(json!([result, call])),
        "invalid_value",
        "input[0].call_id",
        "No tool call found for function call output with call_id call_1.",
    );
    let Item::FunctionCall(FunctionCall { arguments, .. }) =
        accepted(input(json!([call, result]))).input.parts()[0].clone()
    else {
        panic!("a call")
    };
    assert_eq!(arguments, "no JSON");
    let with = |item: &Value, name: &str, value: Value| {
        let mut item = item.clone();
        item[name] = value;
        item
    };
    refused(
        input(json!([with(&call, "call_id", json!(""))])),
        "empty_string",
        "input[0].call_id",
    );
    assert_violation(
        input(json!([with(&call, "call_id", json!("a".repeat(65)))])),
        "string_above_max_length",
        "input[0].call_id",
        "Invalid 'input[0].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
    );
    accepted(input(json!([with(
        &call,
        "call_id",
        json!("\u{e9}".repeat(64))
    )])));
    // Optional since openai-python 3.5.0.
    let unnamed = json!({"type": "function_call_output", "output": "4"});
    accepted(input(json!([unnamed])));
    refused(
        input(json!([with(&call, "arguments", json!({}))])),
        "invalid_type",
        "input[0].arguments",
    );
    let message_with = |part: Value| input(json!([call, with(&result, "output", json!([part]))]));
    refused(
        message_with(json!({"type": "refusal", "refusal": ""})),
        "invalid_value",
        "input[1].output[0].type",
    );
    refused(
        message_with(json!({"type": "input_image", "image_url": "x"})),
        "invalid_value",
        "input[1].output[0].image_url",
    );
    accepted(message_with(json!({"type": "input_text", "text": "4"})));
}

#[test]
fn thoughts_come_back_with_or_without_ids() {
    accepted(input(
        json!([{"type": "reasoning", "summary": [], "content": null, "encrypted_content": null}]),
    ));
    accepted(input(
        json!([{"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]}]),
    ));
    refused(
        input(json!([{"type": "reasoning"}])),
        "missing_required_parameter",
        "input[0].summary",
    );
    let spoken = json!([{"type": "reasoning", "summary": [{"type": "spoken", "text": "Hm."}]}]);
    refused(input(spoken), "invalid_value", "input[0].summary[0].type");
}

#[test]
fn tools_are_held_to_their_shapes() {
    let tools = |tool: Value| json!({ "tools": [tool] });
    let named = |name: &str| tools(json!({"type": "function", "name": name}));
    assert_violation(
        named("a b"),
        "invalid_value",
        "tools[0].name",
        "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]{1,64}$'.",
    );
    refused(named(""), "invalid_value", "tools[0].name");
    refused(named(&"a".repeat(65)), "invalid_value", "tools[0].name");
    refused(
        tools(json!({"type": "function"})),
        "missing_required_parameter",
        "tools[0].name",
    );
    refused(
        tools(json!({"type": "function", "function": {}})),
        "missing_required_parameter",
        "tools[0].function.name",
    );
    refused(
        tools(json!({"type": "telepathy"})),
        "invalid_value",
        "tools[0].type",
    );
    let schema = json!({"type": "function", "name": "f", "parameters": []});
    refused(tools(schema), "invalid_value", "tools[0].parameters");
    let many: Vec<_> = (0..129)
        .map(|i| json!({"type": "function", "name": format!("f{i}")}))
        .collect();
    assert_violation(
        json!({ "tools": many }),
        "array_above_max_length",
        "tools",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.",
    );
    for kind in [
        "custom",
        "web_search_preview",
        "computer_use_preview",
        "mcp",
        "local_shell",
        "namespace",
    ] {
        accepted(tools(
            json!({"type": kind, "name": "g", "filters": {"a": 1}}),
        ));
    }
}

#[test]
fn the_forms_of_chat_completions_are_understood() {
    let request = accepted(json!({
        "tools": [{"type": "function", "function": {"name": "f", "strict": true, "a": 1}, "b": 2}],
        "tool_choice": {"type": "function", "function": {"name": "f", "c": 3}, "d": 4},
    }));
    let Some([Tool::Function(tool)]) = request.tools.as_deref() else {
        panic!("{:?}", request.tools)
    };
    assert_eq!(
        (
            tool.name.as_str(),
            tool.strict,
            &tool.extra["a"],
            &tool.extra["b"]
        ),
        ("f", Some(true), &json!(1), &json!(2))
    );
    let Some(ToolChoice::Object(ToolChoiceObject::Function(choice))) = request.tool_choice else {
        panic!("a choice")
    };
    assert_eq!(
        (choice.name.as_str(), &choice.extra["c"], &choice.extra["d"]),
        ("f", &json!(3), &json!(4))
    );
}

#[test]
fn a_choice_is_one_of_the_tools() {
    let chosen = |choice: Value| json!({"tools": [{"type": "function", "name": "f"}], "tool_choice": choice});
    let unknown = "Invalid value for 'tool_choice': no function named 'g' was specified in the 'tools' parameter.";
    assert_violation(
        chosen(json!({"type": "function", "name": "g"})),
        "invalid_value",
        "tool_choice",
        unknown,
    );
    assert_violation(
        chosen(json!({"type": "function", "function": {"name": "g"}})),
        "invalid_value",
        "tool_choice",
        unknown,
    );
    let allowed = |mode: Value, name: &str| {
        chosen(
            json!({"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": name}]}),
        )
    };
    assert_violation(
        allowed(json!("auto"), "g"),
        "invalid_value",
        "tool_choice",
        unknown,
    );
    refused(
        allowed(json!("none"), "f"),
        "invalid_value",
        "tool_choice.mode",
    );
    refused(
        chosen(json!({"type": "allowed_tools"})),
        "missing_required_parameter",
        "tool_choice.tools",
    );
    refused(
        chosen(json!({"type": "telepathy"})),
        "invalid_value",
        "tool_choice.type",
    );
    refused(chosen(json!(7)), "invalid_type", "tool_choice");
    assert_violation(
        chosen(json!("perhaps")),
        "invalid_value",
        "tool_choice",
        "Invalid value: 'perhaps'. Supported values are: 'none', 'auto', and 'required'.",
    );
    let none = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.";
    assert_violation(
        json!({"tool_choice": "required"}),
        "invalid_value",
        "tool_choice",
        none,
    );
    for choice in [
        json!("none"),
        json!("auto"),
        json!("required"),
        json!({"type": "function", "name": "f"}),
    ] {
        accepted(chosen(choice));
    }
    accepted(allowed(json!(null), "f"));
    accepted(allowed(json!("required"), "f"));
    accepted(json!({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}));
}

#[test]
fn the_form_of_the_text_is_held_to_its_shape() {
    let format = |format: Value| json!({"text": {"format": format}});
    refused(
        format(json!({"type": "xml"})),
        "invalid_value",
        "text.format.type",
    );
    refused(
        format(json!({"type": "json_schema", "name": "n"})),
        "missing_required_parameter",
        "text.format.schema",
    );
    refused(
        format(json!({"type": "json_schema", "schema": {}})),
        "missing_required_parameter",
        "text.format.name",
    );
    let schema = |name: &str, schema: Value| {
        format(json!({"type": "json_schema", "name": name, "schema": schema}))
    };
    refused(schema("", json!({})), "invalid_value", "text.format.name");
    refused(
        schema("n", json!([])),
        "invalid_value",
        "text.format.schema",
    );
    refused(
        json!({"text": {"verbosity": "endless"}}),
        "invalid_value",
        "text.verbosity",
    );
    accepted(schema("n", json!({"type": "object"})));
    accepted(format(json!({"type": "json_object"})));
    accepted(json!({"text": {"verbosity": "low"}}));
}

#[test]
fn notes_are_few_and_short() {
    let notes =
        |count: usize| -> Value { (0..count).map(|i| (i.to_string(), json!("v"))).collect() };
    refused(
        json!({"metadata": notes(17)}),
        "array_above_max_length",
        "metadata",
    );
    accepted(json!({"metadata": notes(16)}));
    refused(json!({"metadata": {"a": 1}}), "invalid_type", "metadata.a");
    refused(
        json!({"metadata": {"a": "v".repeat(513)}}),
        "string_above_max_length",
        "metadata.a",
    );
    let key = "k".repeat(65);
    refused(
        json!({"metadata": {key.as_str(): "v"}}),
        "string_above_max_length",
        &format!("metadata.{key}"),
    );
    accepted(json!({"metadata": {"k".repeat(64): "v".repeat(512)}}));
}

#[test]
fn every_violation_is_reported_at_once() {
    let error = read(
        json!({"temperature": 3, "max_output_tokens": 0, "truncation": "x", "background": true}),
    )
    .unwrap_err();
    assert_eq!(
        (error.code, error.param.as_deref()),
        ("integer_below_min_value", Some("max_output_tokens"))
    );
    for name in [
        "max_output_tokens",
        "temperature",
        "truncation",
        "background",
    ] {
        assert!(
            error.message.contains(&format!("'{name}'")),
            "{}",
            error.message
        );
    }
}

/// A duplicate field is rejected with 400, so that no other parser can read another value than
/// ours.
#[test]
fn j04_a_field_given_twice_is_refused() {
    let found = Request::read(br#"{"model":"a","model":"b","input":[]}"#).unwrap_err();
    assert!(
        ApiError::from(found)
            .message
            .contains("duplicate field `model`")
    );
    assert!(Request::read(br#"{"model":"a","input":[],"x":1,"x":2}"#).is_ok());
}
