//! Violations that the validator reports, and their paths.

use serde_json::{Value, json};
use sluicegate_messages::{Request, Rules, refusal};

/// Returns a valid request with `change` merged into it.
fn request(change: Value) -> Value {
    let mut body = json!({"model": "msg-sonnet-5", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi."}]});
    for (name, value) in change.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

#[track_caller]
fn refused(change: Value, code: &str, param: &str) {
    let body = request(change).to_string();
    let found =
        Request::read(body.as_bytes()).and_then(|request| request.validate(&Rules::default()));
    let error = refusal(found.unwrap_err());
    assert_eq!(
        (error.code, error.param.as_deref().unwrap_or_default()),
        (code, param),
        "{}",
        error.message
    );
    let place = param.replace('[', ".").replace(']', "");
    let problem = error.message.strip_prefix(&format!("{place}: ")).unwrap();
    assert!(
        !problem.contains(&format!("{place}:")) && !problem.ends_with('.'),
        "{}",
        error.message
    );
}

#[track_caller]
fn accepted(change: Value) {
    let body = request(change).to_string();
    let request =
        Request::read(body.as_bytes()).and_then(|request| request.validate(&Rules::default()));
    assert!(request.is_ok(), "{:?}", request.err());
}

#[test]
fn fields_out_of_range_are_refused_by_name() {
    refused(json!({"model": ""}), "empty_string", "model");
    refused(json!({"model": null}), "invalid_type", "model");
    refused(json!({"messages": []}), "empty_array", "messages");
    refused(
        json!({"max_tokens": null}),
        "missing_required_parameter",
        "max_tokens",
    );
    refused(
        json!({"max_tokens": 0}),
        "integer_below_min_value",
        "max_tokens",
    );
    refused(json!({"max_tokens": true}), "invalid_type", "max_tokens");
    refused(
        json!({"temperature": 1.1}),
        "decimal_above_max_value",
        "temperature",
    );
    refused(json!({"top_p": -0.1}), "decimal_below_min_value", "top_p");
    refused(json!({"top_k": -1}), "integer_below_min_value", "top_k");
    refused(
        json!({"stop_sequences": "END"}),
        "invalid_type",
        "stop_sequences",
    );
    refused(json!({"stream": "true"}), "invalid_type", "stream");
    refused(
        json!({"thinking": {"type": "enabled"}}),
        "missing_required_parameter",
        "thinking.budget_tokens",
    );
    refused(
        json!({"thinking": {"type": "enabled", "budget_tokens": 1023}}),
        "integer_below_min_value",
        "thinking.budget_tokens",
    );
    refused(
        json!({"thinking": {"type": "hard"}}),
        "invalid_value",
        "thinking.type",
    );
    // https://github.com/anthropics/anthropic-sdk-python/releases/tag/v1.1.0
    accepted(json!({"thinking": {"type": "adaptive", "display": "updates"}}));
    refused(
        json!({"thinking": {"type": "adaptive", "display": "all"}}),
        "invalid_value",
        "thinking.display",
    );
    refused(
        json!({"output_config": {"effort": "huge"}}),
        "invalid_value",
        "output_config.effort",
    );
    refused(
        json!({"output_config": {"format": {"type": "xml"}}}),
        "invalid_value",
        "output_config.format.type",
    );
    refused(
        json!({"output_config": {"format": {"type": "json_schema", "schema": []}}}),
        "invalid_value",
        "output_config.format.schema",
    );
    accepted(
        json!({"max_tokens": 64.0, "thinking": {"type": "enabled", "budget_tokens": 2048.0}, "stream": null}),
    );
    accepted(
        json!({"output_config": {"effort": "xhigh"}, "service_tier": "auto", "metadata": {"user_id": null}}),
    );
}

#[test]
fn a_model_may_bend_the_least_cap() {
    let mut rules = Rules::default();
    rules.cache_warming = true;
    let read = |cap: i64| {
        Request::read(request(json!({ "max_tokens": cap })).to_string().as_bytes()).unwrap()
    };
    assert!(read(0).validate(&rules).is_ok());
    assert!(read(-1).validate(&rules).is_err());
}

#[test]
fn somebody_else_may_interpret_unknown_types() {
    let read = |content: Value, role: &str, set: fn(&mut Rules)| {
        let mut rules = Rules::default();
        set(&mut rules);
        let messages = json!([{"role": role, "content": content}]);
        Request::read(
            request(json!({ "messages": messages }))
                .to_string()
                .as_bytes(),
        )
        .unwrap()
        .validate(&rules)
        .is_ok()
    };
    let unknown: fn(&mut Rules) = |rules| rules.unknown_types = true;
    let files: fn(&mut Rules) = |rules| rules.file_ids = true;
    for (content, role, set) in [
        (json!("Hi."), "critic", unknown),
        (json!([{"type": "smell"}]), "user", unknown),
        (
            json!([{"type": "image", "source": {"type": "memory"}}]),
            "user",
            unknown,
        ),
        (
            json!([{"type": "image", "source": {"type": "file", "file_id": "file_1"}}]),
            "user",
            files,
        ),
        (
            json!([{"type": "document", "source": {"type": "file", "file_id": "file_1"}}]),
            "user",
            files,
        ),
    ] {
        assert!(!read(content.clone(), role, |_| {}), "{content}");
        assert!(read(content.clone(), role, set), "{content}");
    }
    for change in [
        json!({"thinking": {"type": "daydream"}}),
        json!({"thinking": {"type": "adaptive", "display": "sketch"}}),
        json!({"output_config": {"effort": "extreme"}}),
        json!({"output_config": {"format": {"type": "regex"}}}),
    ] {
        let read = |rules: &Rules| {
            let read = Request::read(request(change.clone()).to_string().as_bytes());
            read.unwrap().validate(rules).is_ok()
        };
        let mut rules = Rules::default();
        assert!(!read(&rules), "{change}");
        rules.unknown_types = true;
        assert!(read(&rules), "{change}");
    }
    let file = json!([{"type": "image", "source": {"type": "file", "file_id": "file_1"}}]);
    assert!(!read(file, "user", unknown));
}

#[test]
fn messages_are_held_to_their_roles() {
    let messages = |message: Value| json!({ "messages": [message] });
    refused(
        messages(json!({"role": "tool", "content": ""})),
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
    accepted(messages(json!({"role": "system", "content": "Be brief."})));

    let block = |role: &str, block: Value| messages(json!({"role": role, "content": [block]}));
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1"});
    let image =
        json!({"type": "image", "source": {"type": "url", "url": "https://a.example/x.png"}});
    refused(
        block("user", json!({"type": "smell"})),
        "invalid_value",
        "messages[0].content[0].type",
    );
    refused(
        block("user", call.clone()),
        "invalid_value",
        "messages[0].content[0].type",
    );
    refused(
        block("assistant", result.clone()),
        "invalid_value",
        "messages[0].content[0].type",
    );
    refused(
        block("assistant", image.clone()),
        "invalid_value",
        "messages[0].content[0].type",
    );
    refused(
        block("system", image.clone()),
        "invalid_value",
        "messages[0].content[0].type",
    );
    refused(
        block("user", json!({"type": "text"})),
        "missing_required_parameter",
        "messages[0].content[0].text",
    );
    let broken = json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": "{}"});
    refused(
        block("assistant", broken),
        "invalid_value",
        "messages[0].content[0].input",
    );
    accepted(block("assistant", call));
    accepted(block("user", result.clone()));
    accepted(block(
        "user",
        json!({"type": "web_search_tool_result", "tool_use_id": "t", "content": []}),
    ));
    accepted(block(
        "assistant",
        json!({"type": "server_tool_use", "id": "t", "name": "f", "input": {}}),
    ));

    let late = json!({"role": "user", "content": [{"type": "text", "text": "And?"}, result]});
    refused(messages(late), "invalid_value", "messages[0].content[1]");
    let nested = json!({"type": "tool_result", "tool_use_id": "t", "content": [image, {"type": "thinking"}]});
    refused(
        block("user", nested),
        "missing_required_parameter",
        "messages[0].content[0].content[1].thinking",
    );
    refused(
        json!({"system": [{"type": "smell"}]}),
        "invalid_value",
        "system[0].type",
    );
}

#[test]
fn pictures_and_documents_are_held_to_their_sources() {
    let block = |kind: &str, source: Value| json!({"messages": [{"role": "user", "content": [{"type": kind, "source": source}]}]});
    let place = |member: &str| format!("messages[0].content[0].source.{member}");
    let data = |media_type: &str, data: &str| json!({"type": "base64", "media_type": media_type, "data": data});
    for text in ["", "aGk", "a?=="] {
        refused(
            block("image", data("image/png", text)),
            "invalid_value",
            &place("data"),
        );
    }
    refused(
        block("image", data("image/bmp", "aGk=")),
        "invalid_value",
        &place("media_type"),
    );
    for media_type in ["image/jpeg", "image/jpg", "IMAGE/PNG"] {
        accepted(block("image", data(media_type, "aGk=")));
    }
    refused(
        block("document", data("image/png", "aGk=")),
        "invalid_value",
        &place("media_type"),
    );
    for url in [
        "http://a.example/x.png",
        "https://",
        "data:image/png;base64,aGk=",
        "",
    ] {
        refused(
            block("image", json!({"type": "url", "url": url})),
            "invalid_value",
            &place("url"),
        );
    }
    for kind in ["image", "document"] {
        let file = json!({"type": "file", "file_id": "f"});
        refused(block(kind, file), "unsupported_parameter", &place("type"));
        refused(
            block(kind, json!({"type": "ftp"})),
            "invalid_value",
            &place("type"),
        );
    }
    refused(
        block("image", json!({"type": "content", "content": "x"})),
        "invalid_value",
        &place("type"),
    );
    accepted(block("image", data("image/webp", "aGk=")));
    accepted(block("document", data("application/pdf", "aGk=")));
    accepted(block(
        "document",
        json!({"type": "text", "media_type": "text/plain", "data": "x"}),
    ));
    accepted(block(
        "document",
        json!({"type": "content", "content": [{"type": "text", "text": "x"}]}),
    ));
}

#[test]
fn tools_and_choices_are_held_to_their_shapes() {
    let named = |name: &str| json!({"name": name, "input_schema": {"type": "object"}});
    let chosen = |choice: Value| json!({"tools": [named("f")], "tool_choice": choice});
    refused(
        json!({"tools": [named("a b")]}),
        "invalid_value",
        "tools[0].name",
    );
    refused(
        json!({"tools": [named(&"a".repeat(129))]}),
        "invalid_value",
        "tools[0].name",
    );
    refused(
        json!({"tools": [{"name": "f"}]}),
        "missing_required_parameter",
        "tools[0].input_schema",
    );
    refused(
        json!({"tools": [{"name": "f", "input_schema": true}]}),
        "invalid_value",
        "tools[0].input_schema",
    );
    refused(
        chosen(json!({"type": "tool", "name": "g"})),
        "invalid_value",
        "tool_choice.name",
    );
    refused(
        chosen(json!({"type": "required"})),
        "invalid_value",
        "tool_choice.type",
    );
    refused(chosen(json!("auto")), "invalid_type", "tool_choice");
    refused(
        json!({"tool_choice": {"type": "any"}}),
        "invalid_value",
        "tool_choice",
    );
    accepted(json!({"tools": [{"type": "custom", "name": "f", "input_schema": {}}]}));
    accepted(json!({"tools": [{"type": null, "name": "f", "input_schema": {}}]}));
    let server = json!({"type": "web_search_20250305", "name": "web_search"});
    accepted(json!({"tools": [server], "tool_choice": {"type": "tool", "name": "web_search"}}));
    accepted(chosen(
        json!({"type": "none", "disable_parallel_tool_use": null}),
    ));
}

#[test]
fn a_count_is_held_to_the_rules_of_its_prompt_alone() {
    let read = |change: Value| {
        Request::read(request(change).to_string().as_bytes())
            .unwrap()
            .validate_for_count(&Rules::default())
    };
    assert!(read(json!({"max_tokens": 0, "temperature": 7})).is_ok());
    assert_eq!(
        read(json!({"model": "", "messages": []}))
            .unwrap_err()
            .len(),
        2
    );
}

/// Parts of an earlier message come with each later request.
#[test]
fn blocks_of_earlier_messages_are_no_reason_to_refuse() {
    let is_read = |messages: Value| {
        let body = request(json!({ "messages": messages })).to_string();
        let read = Request::read(body.as_bytes()).unwrap();
        read.validate(&Rules::default()).is_ok()
    };
    let next = json!({"role": "user", "content": "So?"});
    for (role, block) in [
        ("user", json!({"type": "smell"})),
        (
            "assistant",
            json!({"type": "compaction", "content": "Sum."}),
        ),
        (
            "user",
            json!({"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
        ),
    ] {
        let message = json!({"role": role, "content": [block]});
        assert!(!is_read(json!([message])), "{block}");
        assert!(is_read(json!([message, next])), "{block}");
    }
}
