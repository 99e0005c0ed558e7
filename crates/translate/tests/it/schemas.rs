//! JSON Schemas as each vendor accepts them.

use serde_json::{Value, json};
use vendor::Protocol::{self, Chat, Messages, Responses};

use crate::rules::served;
use crate::vendor_rules::{body, tool};

/// The schema of a tool as an upstream gets it.
fn parameters(client: Protocol, upstream: Protocol, schema: &Value) -> (Value, Vec<String>) {
    parameters_at(client, (None, upstream), schema)
}

/// The schema of a tool as an upstream with a preset gets it.
fn parameters_at(
    client: Protocol,
    (preset, upstream): (Option<&str>, Protocol),
    schema: &Value,
) -> (Value, Vec<String>) {
    let request = body(client, json!({ "tools": [tool(client, "f", schema)] }));
    let (sent, dropped) = served(client, (preset, upstream), &request);
    let tool = &sent["tools"][0];
    let schema = match upstream {
        Responses => &tool["parameters"],
        Chat => &tool["function"]["parameters"],
        Messages => &tool["input_schema"],
    };
    (schema.clone(), dropped)
}

/// "object schema missing properties", OpenAI; "input_schema.type: Field required", Claude:
/// <https://platform.openai.com/docs/guides/function-calling>,
/// <https://docs.anthropic.com/en/docs/agents-and-tools/tool-use/implement-tool-use>
#[test]
fn a_tool_takes_an_object_with_a_type_and_properties() {
    for (schema, expected) in [
        (json!({}), json!({ "type": "object", "properties": {} })),
        (
            json!({ "type": "object" }),
            json!({ "properties": {}, "type": "object" }),
        ),
        (
            json!({ "properties": { "x": { "type": "string" } } }),
            json!({ "type": "object", "properties": { "x": { "type": "string" } } }),
        ),
        (
            json!({ "type": ["object", "null"], "properties": {} }),
            json!({ "type": "object", "properties": {} }),
        ),
    ] {
        for (client, upstream) in [
            (Chat, Messages),
            (Responses, Messages),
            (Responses, Chat),
            (Chat, Responses),
        ] {
            assert_eq!(
                parameters(client, upstream, &schema),
                (expected.clone(), vec![])
            );
        }
    }
    let schema = json!({ "type": "object" });
    for upstream in [Chat, Responses] {
        assert_eq!(
            parameters(Messages, upstream, &schema).0["properties"],
            json!({})
        );
    }
}

/// "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
/// level", OpenAI; "input_schema does not support oneOf, allOf, or anyOf at the top level", Claude.
#[test]
fn alternatives_at_the_root_become_one_object() {
    let a = json!({ "type": "object", "properties": { "a": { "type": "string" }, "c": {} }, "required": ["a", "c"] });
    let b = json!({ "type": "object", "properties": { "b": { "type": "number" }, "c": {} }, "required": ["c", "b"] });
    let properties = json!({ "a": { "type": "string" }, "c": {}, "b": { "type": "number" } });
    for (schema, required) in [
        (json!({ "anyOf": [a, b] }), json!(["c"])),
        (
            json!({ "oneOf": [{ "$ref": "#/$defs/a" }, b], "$defs": { "a": a } }),
            json!(["c"]),
        ),
        (
            json!({ "type": "object", "allOf": [a, b] }),
            json!(["a", "c", "b"]),
        ),
    ] {
        for upstream in [Chat, Messages] {
            let (sent, dropped) = parameters(Responses, upstream, &schema);
            assert_eq!(
                (&sent["type"], &sent["properties"]),
                (&json!("object"), &properties)
            );
            assert_eq!(sent["required"], required);
            assert_eq!(
                (&sent["anyOf"], &sent["oneOf"], &sent["allOf"]),
                (&Value::Null, &Value::Null, &Value::Null)
            );
            assert_eq!(dropped, ["json_schema"]);
        }
    }
}

/// "'required' is required to be supplied and to be an array including every key in properties":
/// <https://platform.openai.com/docs/guides/structured-outputs#supported-schemas>
#[test]
fn an_answer_is_strict_only_if_its_schema_permits_it() {
    let schema = |required: Value| {
        json!({ "type": "object", "properties": { "name": { "type": "string" }, "nickname": { "type": "string" } },
            "required": required, "additionalProperties": false })
    };
    for (required, is_strict) in [
        (json!(["name"]), false),
        (json!(["name", "nickname"]), true),
    ] {
        let schema = schema(required);
        let format =
            json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } });
        let request = body(Messages, format);
        let names = if is_strict {
            vec![]
        } else {
            vec!["strict".to_owned()]
        };
        let (chat, dropped) = served(Messages, (None, Chat), &request);
        let format = &chat["response_format"]["json_schema"];
        assert_eq!(
            (format["strict"] == true, &format["schema"]),
            (is_strict, &schema)
        );
        assert_eq!(dropped, names);
        let (responses, dropped) = served(Messages, (None, Responses), &request);
        assert_eq!(responses["text"]["format"]["strict"] == true, is_strict);
        assert_eq!(dropped, names);
    }
    // The same for a tool.
    let open = json!({ "type": "object", "properties": { "a": {} } });
    let mut strict = tool(Responses, "f", &open);
    strict["strict"] = true.into();
    let (chat, dropped) = served(
        Responses,
        (None, Chat),
        &body(Responses, json!({ "tools": [strict] })),
    );
    assert_eq!(
        (&chat["tools"][0]["function"]["strict"], dropped),
        (&Value::Null, vec!["strict".to_owned()])
    );
}

/// Words that strict mode does not know are sent, and not as strict:
/// <https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas>
#[test]
fn strict_is_not_sent_with_a_schema_that_it_does_not_know() {
    let closed = |inner: Value| {
        json!({ "type": "object", "properties": { "x": inner }, "required": ["x"],
            "additionalProperties": false })
    };
    let choice = closed(json!({ "oneOf": [{ "type": "string" }, { "type": "number" }] }));
    let link = closed(json!({ "type": "string", "format": "uri" }));
    let root = json!({ "anyOf": [closed(json!({ "type": "string" }))] });
    let strict = || vec!["strict".to_owned()];
    for schema in [&choice, &link] {
        let mut tool = tool(Messages, "f", schema);
        tool["strict"] = true.into();
        let request = body(Messages, json!({ "tools": [tool] }));
        let (chat, dropped) = served(Messages, (None, Chat), &request);
        let function = &chat["tools"][0]["function"];
        assert_eq!(
            (&function["strict"], &function["parameters"]),
            (&Value::Null, schema)
        );
        assert_eq!(dropped, strict());
        // Absent, it would be true there.
        let (responses, dropped) = served(Messages, (None, Responses), &request);
        assert_eq!(responses["tools"][0]["strict"], false);
        assert_eq!(dropped, strict());
    }
    for schema in [&choice, &root] {
        let format =
            json!({ "output_config": { "format": { "type": "json_schema", "schema": schema } } });
        let request = body(Messages, format);
        let (chat, dropped) = served(Messages, (None, Chat), &request);
        let format = &chat["response_format"]["json_schema"];
        assert_eq!(
            (&format["strict"], &format["schema"], dropped),
            (&Value::Bool(false), schema, strict())
        );
        let (responses, dropped) = served(Messages, (None, Responses), &request);
        let format = &responses["text"]["format"];
        assert_eq!(
            (&format["strict"], dropped),
            (&Value::Bool(false), strict())
        );
    }
}

/// "For 'object' type, 'additionalProperties' must be explicitly set to false", and the limits that
/// are not supported:
/// <https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations>
#[test]
fn answers_of_claude_have_closed_objects_and_no_limits() {
    let schema = json!({
        "type": "object",
        "properties": {
            "minimum": { "type": "integer", "minimum": 1, "maximum": 9 },
            "at": { "type": "object", "properties": { "lat": { "type": "number" } } },
            "all": { "type": "array", "maxItems": 3, "items": { "$ref": "#/$defs/one" } },
        },
        "required": ["minimum"],
        "$defs": { "one": { "type": "object", "additionalProperties": true } },
    });
    let closed = json!({
        "type": "object",
        "properties": {
            "minimum": { "type": "integer" },
            "at": { "type": "object", "properties": { "lat": { "type": "number" } }, "additionalProperties": false },
            "all": { "type": "array", "items": { "$ref": "#/$defs/one" } },
        },
        "required": ["minimum"],
        "$defs": { "one": { "type": "object", "additionalProperties": false } },
        "additionalProperties": false,
    });
    assert_eq!(
        answer_of_claude(&schema),
        (closed.clone(), vec!["json_schema".to_owned()])
    );
    assert_eq!(answer_of_claude(&closed), (closed, vec![]));
}

/// The limits of the schemas of Claude's answers, each with a schema of a property, and what is sent:
/// <https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations>,
/// <https://github.com/ghostlobster/memorize-everything/issues/93>,
/// <https://github.com/BerriAI/litellm/pull/34313>
#[test]
fn answers_of_claude_have_only_known_words() {
    let text = json!({ "type": "string" });
    let object = |schema: &Value| json!({ "type": "object", "properties": { "t": schema }, "additionalProperties": false });
    for (schema, expected) in [
        // "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        (
            json!({ "type": "array", "items": text, "minItems": 3 }),
            json!({ "type": "array", "items": text }),
        ),
        (
            json!({ "oneOf": [text, { "type": "number" }] }),
            json!({ "anyOf": [text, { "type": "number" }] }),
        ),
        (json!({ "type": "string", "format": "int64" }), text.clone()),
        (
            json!({ "type": "object", "minProperties": 1, "propertyNames": { "pattern": "^a" },
                "patternProperties": { "^a": text } }),
            json!({ "type": "object", "additionalProperties": false }),
        ),
        (
            json!({ "type": ["object", "null"] }),
            json!({ "type": ["object", "null"], "additionalProperties": false }),
        ),
        (
            json!({ "type": "string", "not": { "const": "a" } }),
            text.clone(),
        ),
    ] {
        let (sent, dropped) = answer_of_claude(&object(&schema));
        assert_eq!(sent, object(&expected));
        assert_eq!(dropped, ["json_schema"]);
    }
    for schema in [
        json!({ "type": "array", "items": text, "minItems": 1 }),
        json!({ "type": "string", "format": "uri" }),
        json!({ "anyOf": [text, { "$ref": "#/$defs/a" }] }),
    ] {
        assert_eq!(
            answer_of_claude(&object(&schema)),
            (object(&schema), vec![])
        );
    }
    let (sent, _) = answer_of_claude(&json!({ "properties": { "t": text } }));
    assert_eq!(
        sent,
        json!({ "properties": { "t": text }, "additionalProperties": false, "type": "object" })
    );
}

/// The schema of an answer as Claude gets it.
fn answer_of_claude(schema: &Value) -> (Value, Vec<String>) {
    let format = json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } });
    let request = body(Chat, json!({ "response_format": format }));
    let (sent, dropped) = served(Chat, (None, Messages), &request);
    (sent["output_config"]["format"]["schema"].clone(), dropped)
}

/// "array schema missing items", "None is not of type 'array'", "True is not of type 'number'",
/// OpenAI; "must match JSON Schema draft 2020-12", Claude:
/// <https://github.com/meilisearch/meilisearch-mcp/issues/27>,
/// <https://github.com/yomorun/yomo/issues/860>, <https://github.com/hyperdxio/hyperdx/issues/2925>
#[test]
fn a_malformed_schema_of_a_tool_is_repaired() {
    let schema = json!({
        "type": "object",
        "required": null,
        "properties": {
            "array": { "type": "array" },
            "pair": { "type": "array", "items": [{ "type": "string" }, { "type": "number" }] },
            "above": { "type": "number", "minimum": 0, "exclusiveMinimum": true },
            "inner": { "type": "object", "properties": { "list": { "type": ["array", "null"] } } },
            "any": { "type": null, "enum": null },
        },
    });
    let expected = json!({
        "type": "object",
        "properties": {
            "array": { "type": "array", "items": {} },
            "pair": { "type": "array", "prefixItems": [{ "type": "string" }, { "type": "number" }], "items": {} },
            "above": { "type": "number", "exclusiveMinimum": 0 },
            "inner": { "type": "object", "properties": { "list": { "type": ["array", "null"], "items": {} } } },
            "any": {},
        },
    });
    for (client, upstream) in [
        (Chat, Messages),
        (Responses, Messages),
        (Responses, Chat),
        (Chat, Responses),
        (Messages, Chat),
        (Messages, Responses),
    ] {
        let (sent, dropped) = parameters(client, upstream, &schema);
        assert_eq!(
            (sent, dropped),
            (expected.clone(), vec![]),
            "{client} {upstream}"
        );
    }
    let nothing = json!({ "type": "object", "properties": null, "required": null });
    let (sent, dropped) = parameters(Chat, Messages, &nothing);
    assert_eq!(
        (sent, dropped),
        (json!({ "properties": {}, "type": "object" }), vec![])
    );
    // The requirements of draft 3 and an empty list of values are lost.
    let lossy = json!({ "type": "object", "properties": {
        "t": { "type": "string", "required": true }, "u": { "type": "string", "enum": [] },
    } });
    let (sent, dropped) = parameters(Messages, Chat, &lossy);
    let texts = json!({ "t": { "type": "string" }, "u": { "type": "string" } });
    assert_eq!(
        (&sent["properties"], dropped),
        (&texts, vec!["json_schema".to_owned()])
    );
}

/// "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top
/// level", OpenAI. Claude refuses only the first three.
#[test]
fn a_negation_at_the_root_is_left_out_for_openai() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } },
        "not": { "required": ["a"] } });
    for (client, upstream) in [(Messages, Chat), (Messages, Responses), (Responses, Chat)] {
        let (sent, dropped) = parameters(client, upstream, &schema);
        assert_eq!(
            sent,
            json!({ "type": "object", "properties": { "a": { "type": "string" } } })
        );
        assert_eq!(dropped, ["json_schema"]);
    }
    assert_eq!(parameters(Chat, Messages, &schema), (schema, vec![]));
}

/// A property of two alternatives may match either.
#[test]
fn a_property_of_several_alternatives_accepts_what_each_of_them_does() {
    let branch = |kind: &str| json!({ "properties": { "a": { "type": kind } } });
    let schema =
        json!({ "type": "object", "oneOf": [branch("string"), branch("number"), branch("null")] });
    let (sent, dropped) = parameters(Responses, Chat, &schema);
    let either = json!([{ "type": "string" }, { "type": "number" }, { "type": "null" }]);
    assert_eq!(sent["properties"], json!({ "a": { "anyOf": either } }));
    assert_eq!(dropped, ["json_schema"]);
}

/// "when using anyOf, type should be defined in anyOf items instead of the parent schema":
/// <https://github.com/nicobailon/pi-subagents/issues/126>. "conflicting keywords found in anyOf with
/// parent: keywords (properties) are defined on the parent schema and inside anyOf":
/// <https://pkg.go.dev/github.com/moonshotai/walle>
#[test]
fn alternatives_have_their_types_for_moonshot() {
    let kinds = json!({ "type": ["string", "array", "boolean"], "description": "Skills.", "anyOf": [
        { "type": "array", "items": { "type": "string" } }, { "type": "boolean" }, { "type": "string" } ] });
    let kinds_sent = json!({ "description": "Skills.", "anyOf": [
        { "type": "array", "items": { "type": "string" } }, { "type": "boolean" }, { "type": "string" } ] });
    // As of the server of Apollo.io: https://github.com/openclaw/openclaw/issues/113130
    let either = json!({ "type": "object", "properties": { "a": {}, "b": {} },
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] });
    let either_sent = json!({ "properties": { "a": {}, "b": {} }, "anyOf": [
        { "required": ["a"], "type": "object" }, { "required": ["b"], "type": "object" }] });
    let both = json!({ "type": "object", "properties": { "a": {} }, "required": ["a"], "anyOf": [
        { "properties": { "b": {} }, "required": ["b"] }, { "$ref": "#/$defs/c" }] });
    let both_sent = json!({ "anyOf": [
        { "properties": { "b": {}, "a": {} }, "required": ["b", "a"], "type": "object" },
        { "$ref": "#/$defs/c" }] });
    let reference = json!({ "$ref": "#/$defs/c", "description": "A c." });
    let reference_sent = json!({ "description": "A c.", "anyOf": [{ "$ref": "#/$defs/c" }] });
    for (asked, sent, is_wider) in [
        (&kinds, &kinds_sent, false),
        (&either, &either_sent, false),
        (&both, &both_sent, true),
        (&reference, &reference_sent, false),
        (
            &json!({ "type": "string" }),
            &json!({ "type": "string" }),
            false,
        ),
    ] {
        let within = |schema: &Value| {
            json!({ "type": "object", "$defs": { "c": { "type": "object" } },
                "properties": { "x": { "type": "array", "items": schema } } })
        };
        for (client, upstream) in [(Messages, Chat), (Messages, Responses), (Chat, Messages)] {
            let at = (Some("moonshot"), upstream);
            let (found, dropped) = parameters_at(client, at, &within(asked));
            assert_eq!(found, within(sent), "{asked}");
            assert_eq!(dropped.contains(&"json_schema".to_owned()), is_wider);
            let (elsewhere, _) = parameters(client, upstream, &within(asked));
            let elsewhere = &elsewhere["properties"]["x"]["items"];
            assert_eq!(elsewhere.get("type"), asked.get("type"));
        }
    }
}
