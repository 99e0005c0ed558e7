//! Requests that a protocol can represent survive encoding and decoding.

use engine::{
    AssistantPart, Effort, Format, ImageSource, Reasoning, Sampling, TextRequest, Tool, ToolCall,
    ToolChoice, ToolResult, Turn, UserPart, Verbosity,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use sluicegate_translate::outbound::encode;
use vendor::Protocol::{self, Chat, Messages, Responses};

use crate::clients::{SETTINGS, neutral};

/// Text that every protocol keeps.
fn words() -> impl Strategy<Value = String> {
    "[a-z\u{e9}\"\\\\]([a-z\u{1f600}\u{2028}\"\\\\\r\n{}: ]{0,6}[a-z])?"
}

fn user_part() -> impl Strategy<Value = UserPart> {
    let sources = vec![
        ImageSource::Inline {
            media_type: "image/png".to_owned(),
            data: "iVBORw0KGgo=".to_owned(),
        },
        ImageSource::Url("https://pictures.example/a.png".to_owned()),
    ];
    prop_oneof![
        words().prop_map(UserPart::Text),
        prop::sample::select(sources).prop_map(|source| UserPart::Image {
            source,
            detail: None
        }),
    ]
}

/// An assistant turn, possibly with calls, and their results.
fn answer() -> impl Strategy<Value = Vec<Turn>> {
    (option::of(words()), vec((words(), words()), 0..3)).prop_map(|(text, calls)| {
        let text = text.or_else(|| calls.is_empty().then(|| "Yes.".to_owned()));
        let mut parts: Vec<_> = text.into_iter().map(AssistantPart::Text).collect();
        let mut results = Vec::new();
        for (i, (argument, result)) in calls.into_iter().enumerate() {
            let (id, arguments) = (
                format!("call_{i}"),
                json!({ "b": argument, "a": 1.5 }).to_string(),
            );
            parts.push(AssistantPart::Call(ToolCall {
                id: id.clone(),
                name: "f".to_owned(),
                arguments,
                seal: None,
            }));
            let content = vec![UserPart::Text(result)];
            results.push(Turn::Tool(ToolResult {
                call_id: id,
                content,
                is_error: false,
            }));
        }
        [vec![Turn::Assistant(parts)], results].concat()
    })
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let exchange = (vec(user_part(), 1..3), answer())
        .prop_map(|(parts, answer)| [vec![Turn::User(parts)], answer].concat());
    (option::of(words()), vec(exchange, 0..3), words()).prop_map(|(system, exchanges, last)| {
        let system = system.map(Turn::System).into_iter();
        let exchanges = exchanges.into_iter().enumerate();
        system
            .chain(exchanges.flat_map(|(i, exchange)| with_own_ids(exchange, i)))
            .chain([Turn::User(vec![UserPart::Text(last)])])
            .collect()
    })
}

/// Returns an exchange with ids of calls that no other one has.
fn with_own_ids(mut exchange: Vec<Turn>, number: usize) -> Vec<Turn> {
    for turn in &mut exchange {
        match turn {
            Turn::Assistant(parts) => {
                for part in parts {
                    if let AssistantPart::Call(call) = part {
                        call.id += &format!("_{number}");
                    }
                }
            }
            Turn::Tool(result) => result.call_id += &format!("_{number}"),
            Turn::System(_) | Turn::User(_) => {}
        }
    }
    exchange
}

fn tool(description: Option<String>) -> Tool {
    let schema = json!({ "type": "object", "properties": { "b": {}, "a": {} } });
    Tool {
        name: "f".to_owned(),
        description,
        parameters: Some((&schema).into()),
        strict: Some(false),
    }
}

fn tools() -> impl Strategy<Value = (Vec<Tool>, ToolChoice, Option<bool>)> {
    let tool = option::of(words()).prop_map(tool);
    let choice = prop::sample::select(vec![
        (ToolChoice::Auto, None),
        (ToolChoice::Auto, Some(false)),
        (ToolChoice::None, None),
        (ToolChoice::Required, Some(false)),
        (ToolChoice::Named("f".to_owned()), None),
        (ToolChoice::Named("f".to_owned()), Some(false)),
    ]);
    prop_oneof![
        Just((Vec::new(), ToolChoice::Auto, None)),
        (tool, choice).prop_map(|(tool, (choice, parallel))| (vec![tool], choice, parallel)),
    ]
}

/// A request that all three protocols can represent.
fn request() -> impl Strategy<Value = TextRequest> {
    let efforts = [
        Effort::None,
        Effort::Low,
        Effort::Medium,
        Effort::High,
        Effort::XHigh,
        Effort::Max,
    ];
    let sampling = (option::of(0.0..=1.0), option::of(0.0..=1.0));
    let options = (
        16..=1_000_000_u64,
        sampling,
        option::of(prop::sample::select(efforts.to_vec())),
        option::of(words()),
    );
    (turns(), tools(), options).prop_map(
        |(turns, (mut tools, tool_choice, parallel_calls), options)| {
            // In Messages, calls need tools.
            if tools.is_empty() && turns.iter().any(|turn| matches!(turn, Turn::Tool(_))) {
                tools.push(tool(None));
            }
            let (cap, (temperature, top_p), effort, user) = options;
            // A Messages model does not think with other sampling or a forced call.
            let is_free = (temperature, top_p) == (None, None)
                && matches!(tool_choice, ToolChoice::Auto | ToolChoice::None);
            let effort = effort.filter(|effort| is_free || *effort == Effort::None);
            TextRequest {
                model: "m".to_owned(),
                turns,
                tools,
                tool_choice,
                parallel_calls,
                max_output_tokens: Some(cap),
                sampling: Sampling {
                    temperature,
                    top_p,
                    ..Sampling::default()
                },
                reasoning: Reasoning {
                    effort,
                    ..Reasoning::default()
                },
                user,
                ..TextRequest::default()
            }
        },
    )
}

/// Values for fields that only some protocols have.
#[derive(Clone, Debug)]
struct More {
    number: f64,
    count: u64,
    words: Vec<String>,
    flag: bool,
}

fn more() -> impl Strategy<Value = More> {
    (-2.0..=2.0, 1..99_u64, vec(words(), 4), any::<bool>()).prop_map(
        |(number, count, words, flag)| More {
            number,
            count,
            words,
            flag,
        },
    )
}

/// Adds the fields that not all protocols have.
fn enriched(protocol: Protocol, mut request: TextRequest, more: &More) -> TextRequest {
    let named = |name: &str| Format::JsonSchema {
        name: Some(name.to_owned()),
        description: Some(more.words[0].clone()),
        schema: json!({ "type": "object", "additionalProperties": false }).into(),
        strict: Some(more.flag),
    };
    request.format = match protocol {
        Messages => Format::JsonSchema {
            name: None,
            description: None,
            schema: json!({}).into(),
            strict: Some(true),
        },
        _ if more.flag => Format::JsonObject,
        _ => named("n"),
    };
    match protocol {
        Messages => {
            request.sampling.top_k = Some(more.count);
            request.reasoning = Reasoning::default();
            request.stop = more.words.clone();
        }
        Chat | Responses => {
            request.sampling.temperature = Some(more.number.abs());
            request.sampling.presence_penalty = Some(more.number);
            request.sampling.frequency_penalty = Some(-more.number);
            request.reasoning.effort = Some(Effort::Minimal);
            request.verbosity = Some(Verbosity::High);
            request
                .tools
                .iter_mut()
                .for_each(|tool| (tool.strict, tool.parameters) = (Some(more.flag), None));
        }
    }
    if protocol == Chat {
        request.sampling.seed = Some(more.count.cast_signed());
        request.stop = more.words.clone();
    } else if protocol == Responses {
        request.reasoning.summary = Some(true);
    }
    if protocol != Messages {
        request.labels.safety_identifier = Some(more.words[3].clone());
        request.labels.prompt_cache_key = Some(more.words[0].clone());
    }
    request
        .turns
        .iter_mut()
        .for_each(|turn| enrich(protocol, turn, more));
    request
}

fn enrich(protocol: Protocol, turn: &mut Turn, more: &More) {
    let word = more.words[1].clone();
    match turn {
        Turn::System(_) => {}
        Turn::User(parts) => {
            let (name, data) = (Some(word), "JVBERg==".to_owned());
            parts.push(UserPart::File {
                name,
                media_type: "application/pdf".to_owned(),
                data,
            });
        }
        Turn::Tool(result) => match protocol {
            Messages => result.is_error = more.flag,
            Responses => result.content.push(UserPart::Text(word)),
            Chat => {}
        },
        Turn::Assistant(parts) => {
            let has_calls = parts
                .iter()
                .any(|part| matches!(part, AssistantPart::Call(_)));
            let signature = (protocol == Messages).then(|| more.words[2].clone());
            // Responses takes reasoning only in its encrypted form.
            if protocol == Messages || protocol == Chat && has_calls {
                parts.insert(
                    0,
                    AssistantPart::Reasoning {
                        text: word.clone(),
                        signature,
                    },
                );
            }
            match protocol {
                Responses => parts.push(AssistantPart::Refusal(word)),
                Messages => {
                    let more = [
                        AssistantPart::RedactedReasoning(word.clone()),
                        AssistantPart::Text(word),
                    ];
                    parts.splice(1..1, more);
                }
                Chat => {}
            }
        }
    }
}

/// Adds the detail of images that Responses requires.
fn with_details(mut request: TextRequest) -> TextRequest {
    for turn in &mut request.turns {
        let Turn::User(parts) = turn else { continue };
        for part in parts {
            if let UserPart::Image { detail, .. } = part {
                *detail = Some("auto".to_owned());
            }
        }
    }
    request
}

fn assert_round_trip(protocol: Protocol, request: &TextRequest) {
    let encoded = encode::request(protocol, request, &SETTINGS).unwrap();
    assert_eq!(encoded.dropped, []);
    let inbound = neutral(protocol, &encoded.body).unwrap().unwrap();
    let expected = match protocol {
        Responses => with_details(request.clone()),
        Chat | Messages => request.clone(),
    };
    assert_eq!(
        (inbound.request, inbound.dropped),
        (expected, Vec::new()),
        "{protocol:?}"
    );
}

proptest! {
    #[test]
    fn there_and_back_is_the_same(request in request()) {
        Protocol::ALL.into_iter().for_each(|protocol| assert_round_trip(protocol, &request));
    }

    #[test]
    fn expressible_requests_survive_a_round_trip(request in request(), more in more()) {
        for protocol in Protocol::ALL {
            assert_round_trip(protocol, &enriched(protocol, request.clone(), &more));
        }
    }
}
