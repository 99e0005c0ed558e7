//! The token counts of servers, by their spelling and place.

use serde_json::{Value, json};
use sluicegate_chat::lenient::{FrequentReply, Reader, Tokens, collect, reported_tokens};
use wire::ServiceTier;
use wire::lenient::{Meaning, OPENAI, Spelling};

/// A usage of each server, and its counts.
fn rows() -> Vec<(&'static str, Value, Tokens)> {
    let mut rows: Vec<_> = rows_of_text()
        .into_iter()
        .map(|(server, usage, counts)| (server, usage, tokens(counts)))
        .collect();
    rows.push((
        "OpenAI with audio, OpenRouter with images: https://platform.openai.com/docs/guides/audio",
        json!({"prompt_tokens": 100, "completion_tokens": 60, "total_tokens": 160,
            "prompt_tokens_details": {"audio_tokens": 40, "image_tokens": 30, "text_tokens": 30},
            "completion_tokens_details": {"audio_tokens": 20, "image_tokens": 10}}),
        Tokens {
            audio_input: 40,
            image_input: 30,
            audio_output: 20,
            image_output: 10,
            ..tokens([100, 0, 0, 0, 60, 0])
        },
    ));
    rows
}

/// A usage of each server without audio and images, and its input, reads, writes, writes for an hour,
/// output and reasoning.
fn rows_of_text() -> Vec<(&'static str, Value, [u64; 6])> {
    vec![
        (
            "OpenAI: https://platform.openai.com/docs/guides/prompt-caching",
            json!({"prompt_tokens": 2600, "completion_tokens": 300, "total_tokens": 2900,
                "prompt_tokens_details": {"cached_tokens": 2000, "cache_write_tokens": 400, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 120, "rejected_prediction_tokens": 0}}),
            [2600, 2000, 400, 0, 300, 120],
        ),
        (
            "xAI: https://github.com/UKGovernmentBEIS/inspect_ai/issues/5528",
            json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 410,
                "prompt_tokens_details": {"text_tokens": 100, "cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 300}, "num_sources_used": 0}),
            [100, 64, 0, 0, 310, 300],
        ),
        (
            "DeepSeek: https://api-docs.deepseek.com/guides/kv_cache",
            json!({"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010,
                "prompt_cache_hit_tokens": 960, "prompt_cache_miss_tokens": 40}),
            [1000, 960, 0, 0, 10, 0],
        ),
        (
            "Moonshot: https://platform.moonshot.ai/docs/api/chat",
            json!({"prompt_tokens": 1700, "completion_tokens": 12, "total_tokens": 1712, "cached_tokens": 1664}),
            [1700, 1664, 0, 0, 12, 0],
        ),
        (
            "OpenRouter: https://openrouter.ai/docs/use-cases/usage-accounting",
            json!({"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010, "cost": 0.0012,
                "prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 800},
                "cost_details": {"upstream_inference_cost": null}}),
            [1000, 100, 800, 0, 10, 0],
        ),
        (
            "LiteLLM: https://docs.litellm.ai/docs/completion/prompt_caching",
            json!({"prompt_tokens": 200, "completion_tokens": 50, "total_tokens": 250,
                "prompt_tokens_details": {"cached_tokens": 80, "cache_creation_tokens": 30,
                    "cache_creation_token_details": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20}},
                "cache_creation_input_tokens": 30, "cache_read_input_tokens": 80}),
            [200, 80, 30, 20, 50, 0],
        ),
        (
            "LiteLLM, which left writes out of the prompt: https://github.com/BerriAI/litellm/issues/15056",
            json!({"prompt_tokens": 31, "completion_tokens": 467, "total_tokens": 498,
                "prompt_tokens_details": {"cached_tokens": 0},
                "cache_creation_input_tokens": 1253, "cache_read_input_tokens": 0}),
            [1284, 0, 1253, 0, 467, 0],
        ),
        (
            "new-api: https://github.com/QuantumNous/new-api",
            json!({"prompt_tokens": 90, "completion_tokens": 5, "total_tokens": 95,
                "prompt_tokens_details": {"cached_tokens": 20, "cached_creation_tokens": 30},
                "claude_cache_creation_5_m_tokens": 10, "claude_cache_creation_1_h_tokens": 20,
                "input_tokens": 0, "output_tokens": 0, "input_tokens_details": null}),
            [90, 20, 30, 20, 5, 0],
        ),
        (
            "Alibaba Cloud: https://www.alibabacloud.com/help/en/model-studio/context-cache",
            json!({"prompt_tokens": 3019, "completion_tokens": 104, "total_tokens": 3123,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_creation_input_tokens": 2048,
                    "cache_creation": {"ephemeral_5m_input_tokens": 2048}, "cache_type": "ephemeral"}}),
            [3019, 0, 2048, 0, 104, 0],
        ),
        (
            "Mistral: https://github.com/vercel/ai/issues/14382",
            json!({"prompt_tokens": 801, "completion_tokens": 2, "total_tokens": 803, "num_cached_tokens": 768,
                "prompt_token_details": {"cached_tokens": 768}}),
            [801, 768, 0, 0, 2, 0],
        ),
        (
            "SGLang and GitHub Copilot: https://docs.sglang.ai/",
            json!({"prompt_tokens": 19, "completion_tokens": 70, "total_tokens": 89, "reasoning_tokens": 60,
                "prompt_tokens_details": null}),
            [19, 0, 0, 0, 70, 60],
        ),
        (
            "Vertex AI: https://github.com/openai/openai-python/issues/2544",
            json!({"prompt_tokens": 2181, "completion_tokens": 57, "total_tokens": 2518, "reasoning_tokens": 280,
                "completion_tokens_details": null, "prompt_tokens_details": null}),
            [2181, 0, 0, 0, 337, 280],
        ),
        (
            "Gemini without an answer: https://github.com/router-for-me/CLIProxyAPI/issues/5733",
            json!({"prompt_tokens": 21, "completion_tokens": 0, "total_tokens": 81,
                "completion_tokens_details": {"reasoning_tokens": 60}}),
            [21, 0, 0, 0, 60, 60],
        ),
        (
            "Bifrost: https://docs.getbifrost.ai/",
            json!({"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55,
                "prompt_tokens_details": {"cached_read_tokens": 10, "cached_write_tokens": 20}}),
            [50, 10, 20, 0, 5, 0],
        ),
        (
            "servers with the names of Responses",
            json!({"input_tokens": 50, "output_tokens": 5, "total_tokens": 55,
                "input_tokens_details": {"cached_tokens": 10, "cache_read_input_tokens": 12},
                "output_tokens_details": {"reasoning_tokens": 4}}),
            [50, 12, 0, 0, 5, 4],
        ),
        (
            "servers with names in the singular",
            json!({"prompt_tokens": 50, "completion_tokens": 5,
                "input_token_details": {"cached_tokens": 10}, "output_token_details": {"reasoning_tokens": 3},
                "completion_token_details": {"reasoning_tokens": 4}}),
            [50, 10, 0, 0, 5, 4],
        ),
        (
            "servers with the breakdown of Messages",
            json!({"prompt_tokens": 50, "completion_tokens": 5, "cache_creation": {"ephemeral_1h_input_tokens": 9}}),
            [50, 0, 9, 9, 5, 0],
        ),
        (
            "Together, Fireworks, Groq, Cerebras, vLLM, Z.ai, Cohere: nothing but the sums",
            json!({"prompt_tokens": 8, "completion_tokens": 3, "total_tokens": 11}),
            [8, 0, 0, 0, 3, 0],
        ),
    ]
}

fn tokens(counts: [u64; 6]) -> Tokens {
    let [
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
    ] = counts;
    Tokens {
        input,
        cache_read,
        cache_write,
        cache_write_1h,
        output,
        reasoning,
        ..Tokens::default()
    }
}

/// A plain reply with these members beside its content.
fn reply(members: &Value) -> String {
    let mut reply = json!({"id": "c", "object": "chat.completion", "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}]});
    let members = members.as_object().unwrap().clone();
    reply.as_object_mut().unwrap().extend(members);
    reply.to_string()
}

/// The counts of a stream of a text and of these events.
fn streamed(events: &[Value]) -> Option<Tokens> {
    let mut reader = Reader::new();
    let text = json!({"choices": [{"index": 0, "delta": {"content": "Hi."}}]});
    for event in [text].iter().chain(events) {
        reader.event(&event.to_string(), &mut Vec::new()).unwrap();
    }
    reader.tokens()
}

fn finish() -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
}

#[test]
fn every_spelling_is_read_in_replies_and_streams() {
    for (server, usage, counts) in rows() {
        let expected = Some(counts);
        let body = reply(&json!({"usage": usage}));
        assert_eq!(
            collect(&body).unwrap().tokens,
            expected,
            "{server}: a reply"
        );
        assert_eq!(
            reported_tokens(&body),
            expected,
            "{server}: a reply that is rejected"
        );
        if let Some(frequent) = FrequentReply::read(body.as_bytes()) {
            assert_eq!(frequent.tokens, expected, "{server}: a frequent reply");
        }
        let alone = json!({"choices": [], "usage": usage});
        assert_eq!(
            streamed(&[finish(), alone]),
            expected,
            "{server}: the last chunk"
        );
        let mut last = finish();
        last["usage"] = usage.clone();
        assert_eq!(streamed(&[last]), expected, "{server}: the finish chunk");
        let mut last = finish();
        last["choices"][0]["usage"] = usage.clone();
        assert_eq!(streamed(&[last]), expected, "{server}: the choice");
        let mut last = finish();
        last["x_groq"] = json!({"id": "req_1", "usage": usage});
        assert_eq!(streamed(&[last]), expected, "{server}: x_groq");
    }
}

#[test]
fn every_row_of_the_table_has_a_test() {
    fn names(spellings: &[Spelling]) -> Vec<&'static str> {
        let inner = |spelling: &Spelling| match spelling.meaning {
            Meaning::Object(inner) | Meaning::Sum(inner) => names(inner),
            _ => Vec::new(),
        };
        let all = spellings
            .iter()
            .flat_map(|spelling| [vec![spelling.name], inner(spelling)]);
        all.flatten().collect()
    }
    let usages: String = rows()
        .iter()
        .map(|(_, usage, _)| usage.to_string())
        .collect();
    for name in names(OPENAI) {
        assert!(usages.contains(&format!("\"{name}\":")), "{name}");
    }
}

/// See <https://platform.openai.com/docs/guides/flex-processing>.
#[test]
fn the_service_tier_is_read_in_replies_and_streams() {
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13});
    for (name, tier) in [
        (json!("flex"), ServiceTier::Flex),
        (json!("default"), ServiceTier::Standard),
        (json!("on_demand"), ServiceTier::Standard),
        (json!(null), ServiceTier::Standard),
        (json!("turbo"), ServiceTier::Other),
    ] {
        let expected = Some(Tokens {
            service_tier: tier,
            ..tokens([9, 0, 0, 0, 4, 0])
        });
        let body = reply(&json!({"service_tier": name, "usage": usage}));
        assert_eq!(collect(&body).unwrap().tokens, expected, "{name}");
        assert_eq!(reported_tokens(&body), expected, "{name}");
        let frequent = FrequentReply::read(body.as_bytes());
        assert_eq!(frequent.unwrap().tokens, expected, "{name}");
        let mut last = finish();
        last["service_tier"] = name.clone();
        let alone = json!({"choices": [], "usage": usage});
        assert_eq!(streamed(&[last, alone]), expected, "{name}");
    }
}

/// Moonshot reports the usage in the choices.
/// See <https://platform.moonshot.ai/docs/api/chat>.
#[test]
fn the_service_tier_counts_for_all_choices() {
    let expected = Some(Tokens {
        service_tier: ServiceTier::Priority,
        ..tokens([9, 0, 0, 0, 10, 0])
    });
    let usage = |output: u64| json!({"prompt_tokens": 9, "completion_tokens": output, "total_tokens": 9 + output});
    let choice = |index: u64, output: u64| {
        json!({"index": index, "message": {"role": "assistant", "content": "Hi."},
            "finish_reason": "stop", "usage": usage(output)})
    };
    let choices = [choice(0, 4), choice(1, 6)];
    let body = reply(&json!({"service_tier": "priority", "choices": choices}));
    assert_eq!(collect(&body).unwrap().tokens, expected);
    assert_eq!(reported_tokens(&body), expected);
    let finish = |index: u64, output: u64| json!({"service_tier": "priority", "choices": [{"index": index, "delta": {}, "finish_reason": "stop", "usage": usage(output)}]});
    assert_eq!(streamed(&[finish(0, 4), finish(1, 6)]), expected);
}

/// See <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>.
#[test]
fn timings_of_llama_cpp_count_without_a_usage() {
    let timings = json!({"cache_n": 236, "prompt_n": 1, "prompt_ms": 30.958, "predicted_n": 35, "predicted_ms": 661.064});
    let expected = Some(tokens([237, 236, 0, 0, 35, 0]));
    let mut last = finish();
    last["timings"] = timings.clone();
    assert_eq!(streamed(&[last]), expected);
    let frequent = FrequentReply::read(reply(&json!({"timings": timings})).as_bytes());
    assert_eq!(frequent.unwrap().tokens, expected);
    let usage = json!({"prompt_tokens": 237, "completion_tokens": 35, "total_tokens": 272});
    let both = reply(&json!({"usage": usage, "timings": timings}));
    assert_eq!(
        FrequentReply::read(both.as_bytes()).unwrap().tokens,
        expected
    );
    assert_eq!(collect(&both).unwrap().tokens, expected);
}

/// Servers that report counts with each chunk may end with zeros.
#[test]
fn counts_never_fall_within_a_stream() {
    let usage = |prompt: u64, completion: u64| json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion});
    let with = |usage: Value| json!({"choices": [{"index": 0, "delta": {"content": "."}}], "usage": usage});
    let alone = |usage: Value| json!({"choices": [], "usage": usage});
    let events = [
        with(usage(9, 1)),
        with(usage(9, 4)),
        finish(),
        alone(usage(0, 0)),
    ];
    assert_eq!(streamed(&events), Some(tokens([9, 0, 0, 0, 4, 0])));
    // Of a prompt that is reported first, and an answer that is reported later.
    let events = [
        with(usage(9, 0)),
        finish(),
        alone(json!({"completion_tokens": 4})),
    ];
    assert_eq!(streamed(&events), Some(tokens([9, 0, 0, 0, 4, 0])));
}

#[test]
fn answers_of_choices_with_their_own_usage_add_up() {
    let choice = |index: u64, completion: u64| {
        let usage = json!({"prompt_tokens": 19, "completion_tokens": completion, "total_tokens": 19 + completion});
        json!({"choices": [{"index": index, "delta": {"content": "a"}, "finish_reason": "stop", "usage": usage}]})
    };
    let mut reader = Reader::new();
    for event in [choice(0, 13), choice(1, 21)] {
        reader.event(&event.to_string(), &mut Vec::new()).unwrap();
    }
    assert_eq!(reader.tokens(), Some(tokens([19, 0, 0, 0, 34, 0])));
}

#[test]
fn counts_of_rejected_answers_are_known() {
    let usage = json!({"prompt_tokens": 6000, "completion_tokens": 900, "total_tokens": 6900});
    let expected = Some(tokens([6000, 0, 0, 0, 900, 0]));
    let mut cut = json!({"choices": [{"message": {"content": null}, "finish_reason": "error"}], "usage": usage});
    assert!(collect(&cut.to_string()).is_err());
    assert_eq!(reported_tokens(&cut.to_string()), expected);
    let error = json!({"error": {"message": "Overloaded."}, "usage": usage}).to_string();
    assert_eq!(reported_tokens(&error), expected);
    let mut reader = Reader::new();
    assert!(reader.event(&error, &mut Vec::new()).is_err());
    assert_eq!(reader.tokens(), expected);
    cut["usage"] = Value::Null;
    assert_eq!(reported_tokens(&cut.to_string()), None);
    assert_eq!(reported_tokens("<html>"), None);
}

/// The fast reader returns `None` for a usage that does not add up: it is rewritten for the client.
#[test]
fn a_usage_that_does_not_add_up_is_not_frequent() {
    let usage = |total: u64| json!({"usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": total}});
    assert!(FrequentReply::read(reply(&usage(110)).as_bytes()).is_some());
    assert!(FrequentReply::read(reply(&usage(410)).as_bytes()).is_none());
    let mut reader = Reader::new();
    reader.reply(&reply(&usage(410)), &mut Vec::new()).unwrap();
    assert_eq!(reader.unsettled_usage(), Some([100, 310, 410]));
    let mut reader = Reader::new();
    reader.reply(&reply(&usage(0)), &mut Vec::new()).unwrap();
    assert_eq!(reader.unsettled_usage(), None);
}
