//! The models of the catalog, and the endpoints that serve them.

use serde_json::{Value, json};
use sluicegate_catalog::{Catalog, DEFAULT_IMAGE_MODEL, Family, Model, Page, Protocol};

#[test]
fn builtin_models_match_the_spec() {
    let catalog = Catalog::builtin();
    let models: Vec<_> = catalog
        .iter()
        .map(|model| {
            let paths: Vec<_> = model.protocols().map(Protocol::path).collect();
            format!("{} {} {}", model.id, model.family.as_str(), paths.join(" "))
        })
        .collect();
    assert_eq!(
        models,
        [
            "model-6-astra text /v1/responses",
            "model-5.6-terra text /v1/responses",
            "model-5.6-sol text /v1/responses",
            "model-5.6-luna text /v1/responses",
            "model-5.5 text /v1/responses",
            "alt-flash text /v1/responses /v1/chat/completions",
            "msg-sonnet-5 messages /v1/messages",
            "model-image-2.5-sunburst images /v1/images/generations /v1/images/edits",
            "model-image-2.5-flare images /v1/images/generations /v1/images/edits",
            "model-image-2 images /v1/images/generations",
        ]
    );
    assert_eq!(
        Catalog::new(catalog.iter().cloned().collect()),
        Ok(catalog),
        "the built-in catalog is valid"
    );
}

#[test]
fn alt_flash_alone_takes_strings_and_thinks() {
    for model in &Catalog::builtin() {
        let expected = model.id == "alt-flash";
        assert_eq!(
            model.responses_rules().string_input,
            expected,
            "{}",
            model.id
        );
        assert_eq!(model.reasoning, expected, "{}", model.id);
        assert_eq!(model.chat_rules(), chat::Rules::default());
        assert_eq!(model.messages_rules(), messages::Rules::default());
    }
}

#[test]
fn allow_list_enables_exactly_the_named_features() {
    let model = |allow: Value| {
        serde_json::from_value::<Model>(
            json!({"id": "m", "family": "text", "protocols": ["chat"], "allow": allow}),
        )
        .map_err(|error| error.to_string())
    };
    let open = model(json!([
        "n",
        "audio",
        "web_search",
        "previous_response_id",
        "item_reference",
        "store",
        "conversation",
        "background",
        "prompt",
        "file_id",
        "cache_warming"
    ]))
    .unwrap();
    let (chat, responses, messages) = (
        open.chat_rules(),
        open.responses_rules(),
        open.messages_rules(),
    );
    assert!(chat.many_choices && chat.audio && chat.web_search && chat.file_ids);
    assert!(responses.previous_response && responses.item_references && responses.conversation);
    assert!(responses.background && responses.prompt && responses.file_ids);
    assert!(messages.cache_warming && messages.file_ids);
    assert!(!(chat.unknown_types || responses.unknown_types || messages.unknown_types));
    for word in [
        "previous_response_id",
        "item_reference",
        "store",
        "conversation",
        "background",
    ] {
        assert!(model(json!([word])).unwrap().keeps_responses(), "{word}");
    }
    for word in ["n", "prompt", "file_id"] {
        assert!(!model(json!([word])).unwrap().keeps_responses(), "{word}");
    }
    let one = model(json!(["n"])).unwrap();
    assert!(one.chat_rules().many_choices && !one.chat_rules().audio);
    let error = model(json!(["telepathy"])).unwrap_err();
    assert!(
        error.contains("unknown variant `telepathy`, expected one of `n`, `audio`"),
        "{error}"
    );
}

#[test]
fn the_default_image_model_is_served() {
    assert!(
        Catalog::builtin()
            .serves(DEFAULT_IMAGE_MODEL, Protocol::ImagesGenerations)
            .is_ok()
    );
}

#[test]
fn unknown_and_unsupported_models_have_different_errors() {
    let catalog = Catalog::builtin();
    let error = |id: &str, protocol| {
        let error = catalog.serves(id, protocol).unwrap_err();
        assert_eq!(error.param.as_deref(), Some("model"));
        (error.kind.status(), error.code, error.message)
    };
    let sentence = "The model `nope` does not exist or you do not have access to it.".to_owned();
    assert_eq!(
        error("nope", Protocol::Responses),
        (404, "model_not_found", sentence)
    );
    assert_eq!(
        error("nope", Protocol::Messages),
        (404, "model_not_found", "model: nope".to_owned())
    );
    assert!(error(&"x".repeat(10_000), Protocol::Chat).2.len() < 200);
    let sentence =
        "The model 'model-image-2' is not served here; send it to POST /v1/images/generations."
            .to_owned();
    assert_eq!(
        error("model-image-2", Protocol::ImagesEdits),
        (400, "model_not_supported", sentence)
    );
    let sentence = "model: alt-flash is not served here; send it to POST /v1/responses or POST /v1/chat/completions";
    assert_eq!(
        error("alt-flash", Protocol::Messages),
        (400, "model_not_supported", sentence.to_owned())
    );
    assert!(catalog.serves("alt-flash", Protocol::Chat).is_ok());
    assert!(catalog.find("Alt-Flash").is_none());
}

#[test]
fn exact_id_wins_over_prefixes_and_the_longest_prefix_wins() {
    let model = |id: &str| Model::new(id, Family::Text, [Protocol::Chat]);
    let ids = ["*", "gpt-5", "gpt-*", "openai/*", "gpt-5-*"];
    let catalog = Catalog::new(ids.map(model).to_vec()).unwrap();
    let found = |name: &str| catalog.find(name).map(|model| model.id.as_str());
    for (name, id) in [
        ("gpt-5", "gpt-5"),
        ("gpt-5-mini", "gpt-5-*"),
        ("gpt-5-", "gpt-5-*"),
        ("gpt-5.1", "gpt-*"),
        ("gpt-*", "gpt-*"),
        ("gpt", "*"),
        ("GPT-5", "*"),
        ("openai/gpt-5", "openai/*"),
        ("qwen3:8b Q4 / schön", "*"),
    ] {
        assert_eq!(found(name), Some(id), "{name}");
    }
    assert_eq!(found(&"x".repeat(256)), Some("*"));
    // Such names are not logged, so they are no models.
    for name in ["", "gpt-5\n", "gpt-5-\u{1b}[31m", &"x".repeat(257)] {
        assert_eq!(found(name), None, "{name:?}");
    }
    let patterns: Vec<_> = catalog.iter().filter_map(Model::prefix).collect();
    assert_eq!(patterns, ["openai/", "gpt-5-", "gpt-", ""]);
}

/// An error about a pattern names the model of the client, and not the pattern.
#[test]
fn a_pattern_is_served_on_its_endpoints_only() {
    let pattern = Model::new("gpt-*", Family::Text, [Protocol::Chat]);
    let catalog = Catalog::new(vec![pattern]).unwrap();
    let error = catalog.serves("gpt-5", Protocol::Responses).unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (
            "model_not_supported",
            "The model 'gpt-5' is not served here; send it to POST /v1/chat/completions."
        )
    );
    assert!(catalog.serves("gpt-5", Protocol::Chat).is_ok());
    assert_eq!(
        catalog.serves("o3", Protocol::Chat).unwrap_err().code,
        "model_not_found"
    );
}

#[test]
fn everything_wrong_with_a_catalog_is_reported_at_once() {
    let mut old = Model::new("a b", Family::Images, [Protocol::Responses]);
    old.created = i64::MAX;
    // Ids must be unique, display names need not be.
    let mut twin = Model::new("a", Family::Messages, []);
    twin.display_name = "Another".to_owned();
    let models = vec![
        Model::new(
            "a",
            Family::Text,
            [Protocol::Messages, Protocol::ImagesEdits],
        ),
        twin,
        old,
        Model::new("", Family::Text, Protocol::ALL),
        Model::new("a/\nb", Family::Text, [Protocol::Chat]),
        Model::new("a*b", Family::Text, [Protocol::Chat]),
        Model::new("**", Family::Text, [Protocol::Chat]),
        Model::new("a b*", Family::Text, [Protocol::Chat]),
    ];
    assert_eq!(
        Catalog::new(models).unwrap_err(),
        [
            "model 'a': a model of the text family cannot be served on /v1/images/edits",
            "model 'a': it needs at least one protocol",
            "model 'a': duplicate id",
            "model 3: its id \"a b\" must be 1 or more characters without spaces and control characters",
            "model 'a b': a model of the images family cannot be served on /v1/responses",
            "model 'a b': created is 9223372036854775807, which is not a valid Unix time in seconds",
            "model 4: its id \"\" must be 1 or more characters without spaces and control characters",
            "model '': a model of the text family cannot be served on /v1/images/generations",
            "model '': a model of the text family cannot be served on /v1/images/edits",
            "model 5: its id \"a/\\nb\" must be 1 or more characters without spaces and control characters",
            "model 'a*b': '*' is only allowed at the end of an id, where it stands for any characters",
            "model '**': '*' is only allowed at the end of an id, where it stands for any characters",
            "model 8: its id \"a b*\" must be 1 or more characters without spaces and control characters",
        ]
    );
}

/// Names of models are opaque: <https://github.com/ollama/ollama/blob/main/docs/api.md#model-names>.
#[test]
fn an_id_may_have_slashes_and_colons() {
    let ids = [
        "qwen/qwen3:8b",
        "hf.co/a/b-GGUF:Q4_K_M",
        "/a//b/",
        "a%2Fb",
        "m\u{f6}del",
    ];
    let model = |id: &&str| Model::new(*id, Family::Text, [Protocol::Chat]);
    let catalog = Catalog::new(ids.iter().map(model).collect()).unwrap();
    for id in ids {
        assert_eq!(catalog.find(id).map(|model| &*model.id), Some(id));
        assert_eq!(
            catalog
                .retrieve(id, Protocol::Responses, |_| true)
                .unwrap()
                .id,
            id
        );
        let page = Page {
            limit: Some(1),
            before_id: Some(id.to_owned()),
            ..Page::default()
        };
        assert!(catalog.list(&page, |_| true).is_ok(), "{id}");
    }
    assert!(catalog.find("qwen/qwen3").is_none());
    assert!(
        catalog
            .retrieve("a/b", Protocol::Responses, |_| true)
            .is_err()
    );
}

#[test]
fn a_configured_model_needs_three_settings() {
    let read = |settings: Value| {
        serde_json::from_value::<Model>(settings).map_err(|error| error.to_string())
    };
    let least = json!({"id": "my-model-7", "family": "text", "protocols": ["chat", "responses"]});
    let model = read(least.clone()).unwrap();
    assert_eq!(
        model,
        Model::new(
            "my-model-7",
            Family::Text,
            [Protocol::Responses, Protocol::Chat]
        )
    );
    assert_eq!(
        (model.display_name.as_str(), model.owned_by.as_str()),
        ("My Model 7", "sluicegate")
    );

    let with = |name: &str, value: Value| {
        let mut settings = least.clone();
        settings[name] = value;
        read(settings)
    };
    assert!(
        with("string_input", json!(true))
            .unwrap()
            .responses_rules()
            .string_input
    );
    assert_eq!(
        with("display_name", json!("Mine")).unwrap().display_name,
        "Mine"
    );
    assert_eq!(with("created", json!(7)).unwrap().created, 7);
    assert!(
        with("family", json!("video"))
            .unwrap_err()
            .contains("expected one of `text`, `messages`, `images`")
    );
    assert!(
        with("protocols", json!(["images_generations", "fax"]))
            .unwrap_err()
            .contains("`fax`")
    );
    assert!(
        with("colour", json!("red"))
            .unwrap_err()
            .contains("unknown field `colour`")
    );
}
