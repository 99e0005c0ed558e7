//! Tests that the document is consistent and describes the behavior of the gateway.

use gateway::exchange::refusal::Refusal;
use http::Method;

use super::*;

#[test]
fn every_reference_leads_somewhere() {
    let document = document();
    let mut references = Vec::new();
    collect(&document, &mut references);
    assert!(references.len() > 100, "{}", references.len());
    for reference in references {
        let pointer = reference
            .strip_prefix('#')
            .expect("references stay within the document");
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

fn collect<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            into.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|member| collect(member, into));
        }
        Value::Array(entries) => entries.iter().for_each(|entry| collect(entry, into)),
        _ => {}
    }
}

#[test]
fn every_text_protocol_is_described() {
    let document = document();
    for (path, name) in [
        ("/v1/responses", "ResponsesRequest"),
        ("/v1/chat/completions", "ChatRequest"),
        ("/v1/messages", "MessagesRequest"),
    ] {
        let body = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"];
        assert_eq!(body["$ref"], format!("#/components/schemas/{name}"));
        assert!(document["components"]["schemas"][name]["properties"]["model"].is_object());
    }
}

#[test]
fn the_handshake_of_a_websocket_is_described() {
    let paths = &document()["paths"];
    let text = paths["/v1/responses"]["post"]["description"].as_str();
    let text = text.unwrap();
    assert!(text.contains("RFC 6455 gets 101 and opens"), "{text}");
    assert!(paths["/v1/messages"]["post"]["description"].is_null());
}

#[test]
fn every_path_is_the_one_of_its_endpoint() {
    let operations = operations(&mut Schemas::default());
    for operation in &operations {
        let method = operation.method().parse().unwrap();
        assert_eq!(
            Endpoint::of(&method, operation.path, || true).ok().as_ref(),
            Some(&operation.endpoint)
        );
    }
    assert_eq!(operations.len(), 13);
}

#[test]
fn every_operation_has_each_status_that_it_can_answer() {
    const OF_ENGINES: &str = "200 400 401 403 404 405 408 413 414 415 429 431 500 502 503 504";
    const OF_MESSAGES: &str = "200 400 401 403 404 405 408 413 414 415 429 431 500 502 503 504 529";
    const OF_RESPONSES: &str =
        "200 400 401 403 404 405 408 413 414 415 426 429 431 500 502 503 504";
    const OF_RESPONSE: &str = "200 400 401 403 404 405 414 429 431 500 502 503 504";
    let document = document();
    for (path, method, statuses) in [
        ("/v1/responses", "post", OF_RESPONSES),
        ("/v1/responses/{id}", "get", OF_RESPONSE),
        ("/v1/responses/{id}", "delete", OF_RESPONSE),
        ("/v1/responses/{id}/cancel", "post", OF_RESPONSE),
        ("/v1/responses/{id}/input_items", "get", OF_RESPONSE),
        ("/v1/responses/input_tokens", "post", OF_ENGINES),
        ("/v1/chat/completions", "post", OF_ENGINES),
        ("/v1/messages", "post", OF_MESSAGES),
        ("/v1/messages/count_tokens", "post", OF_MESSAGES),
        ("/v1/images/generations", "post", OF_ENGINES),
        ("/v1/images/edits", "post", OF_ENGINES),
        ("/v1/models", "get", "200 400 401 405 414 431 500"),
        ("/v1/models/{id}", "get", "200 400 401 404 405 414 431 500"),
    ] {
        let responses = document["paths"][path][method]["responses"]
            .as_object()
            .unwrap();
        assert_eq!(
            responses
                .keys()
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join(" "),
            statuses,
            "{path}"
        );
    }
}

#[test]
fn a_refusal_has_the_headers_that_are_described() {
    let document = document();
    for (refusal, name) in [
        (Refusal::missing_key(), "Text401"),
        (
            Refusal::method(&Method::PUT, "/v1/responses", "POST"),
            "Text405",
        ),
        (Refusal::too_large(), "Text413"),
        (
            Refusal::content_encoding("zstd, gzip, deflate, identity"),
            "Text415",
        ),
        (Refusal::websocket(), "Text426"),
        (wire::ApiError::concurrency_limit().into(), "Text429"),
        (Refusal::overloaded("a limit"), "Text503"),
        (Refusal::no_engine(), "Text503"),
    ] {
        let response = refusal.into_response(gateway::exchange::refusal::Style::OpenAi, "req_1");
        let (status, headers) = (response.status(), response.headers());
        assert!(name.ends_with(status.as_str()));
        let described = document["components"]["responses"][name]["headers"]
            .as_object()
            .unwrap();
        let special = described
            .keys()
            .filter(|name| !name.ends_with("request-id"));
        assert!(
            special.clone().count() > 0 && special.clone().all(|name| headers.contains_key(name)),
            "{name}"
        );
    }
}

#[test]
fn errors_are_in_the_shape_of_their_path() {
    let document = document();
    let error = |name: &str| {
        document["components"]["responses"][name]["content"]["application/json"]["schema"]
            .to_string()
    };
    assert_eq!(
        error("Text400"),
        r##"{"$ref":"#/components/schemas/ErrorBody"}"##
    );
    assert_eq!(
        error("Messages400"),
        r##"{"$ref":"#/components/schemas/MessagesErrorBody"}"##
    );
    assert!(
        error("Models401").contains("MessagesErrorBody")
            && error("Models401").contains("/ErrorBody")
    );
}

#[test]
fn a_type_that_is_read_and_written_has_two_schemas() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let required = |name: &str| schemas[name]["required"].as_array().map_or(0, Vec::len);
    assert_eq!(required("ErrorDetail"), 4);
    let both: Vec<_> = schemas
        .keys()
        .filter_map(|name| name.strip_suffix("Written"))
        .collect();
    assert!(
        both.iter().all(|name| schemas.contains_key(*name)),
        "{both:?}"
    );
    assert!(
        both.iter()
            .any(|name| required(&format!("{name}Written")) > required(name)),
        "{both:?}"
    );
}

#[test]
fn the_form_of_an_edit_has_the_fields_of_a_generation_and_files() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    let form = &schemas["ImagesEditForm"]["properties"];
    for name in schemas["ImagesGeneration"]["properties"]
        .as_object()
        .unwrap()
        .keys()
    {
        assert!(form[name].is_object(), "{name}");
    }
    assert_eq!(form["n"]["type"], "integer");
    assert!(!form.to_string().contains("null"), "{form}");
    for file in [&form["mask"], &form["image[]"]["items"], &form["image"]] {
        assert_eq!(file["contentMediaType"], "application/octet-stream");
    }
}

#[test]
fn every_example_keeps_the_rules() {
    let document = document();
    let examples = |path: &str| {
        let body = &document["paths"][path]["post"]["requestBody"]["content"]["application/json"];
        let examples = body["examples"]
            .as_object()
            .expect("a request has examples");
        examples
            .values()
            .map(|example| example["value"].to_string())
            .collect::<Vec<_>>()
    };
    let catalog = catalog::Catalog::builtin();
    let (flash, sonnet) = (
        catalog.find("alt-flash").unwrap(),
        catalog.find("msg-sonnet-5").unwrap(),
    );
    let of_responses = ["/v1/responses", "/v1/responses/input_tokens"];
    for body in of_responses.into_iter().flat_map(examples) {
        let request = responses::Request::read(body.as_bytes()).unwrap();
        assert_eq!(
            request.validate(&flash.responses_rules()).err(),
            None,
            "{body}"
        );
    }
    for body in examples("/v1/chat/completions") {
        let request = chat::Request::read(body.as_bytes()).unwrap();
        assert_eq!(request.validate(&flash.chat_rules()).err(), None, "{body}");
    }
    for body in examples("/v1/messages") {
        let request = messages::Request::read(body.as_bytes()).unwrap();
        assert_eq!(
            request.validate(&sonnet.messages_rules()).err(),
            None,
            "{body}"
        );
    }
    for body in examples("/v1/messages/count_tokens") {
        let request = messages::Request::read(body.as_bytes()).unwrap();
        assert_eq!(
            request.validate_for_count(&sonnet.messages_rules()).err(),
            None,
            "{body}"
        );
    }
    for body in examples("/v1/images/generations") {
        assert_eq!(
            images::Generation::read(body.as_bytes())
                .unwrap()
                .validate(&images::Rules::default())
                .err(),
            None,
            "{body}"
        );
    }
    for body in examples("/v1/images/edits") {
        assert_eq!(
            images::Edit::read(body.as_bytes())
                .unwrap()
                .validate(&images::Rules::default())
                .err(),
            None,
            "{body}"
        );
    }
}
