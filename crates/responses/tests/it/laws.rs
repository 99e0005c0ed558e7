//! Property tests: laws that hold for any input.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_responses::{
    Echo, Encoder, Event, Finish, Grammar, Head, IncompleteReason, Offence, OutputItem, Phase,
    Request, Response, Status, StreamError, Usage, lenient,
};
use wire::{ApiError, Shape};

use crate::{FIXTURES, decode, events, fold, text};

/// One step of a model's output.
#[derive(Clone, Debug)]
enum Step {
    Open,
    Text(String),
    Refusal(String),
    Reasoning(String),
    EndPart,
    Seal(String),
    Call(String),
    Arguments(String),
}

fn step() -> impl Strategy<Value = Step> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,8}";
    prop_oneof![
        Just(Step::Open),
        words.prop_map(Step::Text),
        words.prop_map(Step::Refusal),
        words.prop_map(Step::Reasoning),
        Just(Step::EndPart),
        "[a-z=]{0,4}".prop_map(Step::Seal),
        "[a-z_]{1,8}".prop_map(Step::Call),
        words.prop_map(Step::Arguments),
    ]
}

/// The properties of a request that affect the stream.
#[derive(Clone, Copy, Debug)]
struct RequestTraits {
    tools: bool,
    padding: bool,
    include_encrypted: bool,
}

fn traits() -> impl Strategy<Value = RequestTraits> {
    any::<(bool, bool, bool)>().prop_map(|(tools, padding, include_encrypted)| RequestTraits {
        tools,
        padding,
        include_encrypted,
    })
}

fn encoder(traits: RequestTraits) -> Encoder {
    let request = json!({
        "model": "m",
        "input": [],
        "tools": if traits.tools { json!([{"type": "function", "name": "f"}]) } else { json!([]) },
        "stream_options": {"include_obfuscation": traits.padding},
        "include": if traits.include_encrypted { json!([Request::ENCRYPTED_REASONING]) } else { json!(null) },
    });
    let echo = Echo::of(&Request::read(request.to_string().as_bytes()).unwrap());
    Encoder::new(
        Head {
            id: "resp_1".into(),
            created_at: 1_789_000_000,
            model: "m".into(),
        },
        echo,
    )
}

fn encode(steps: &[Step], encoder: &mut Encoder, out: &mut Vec<Event>) {
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::Open => encoder.open(out),
            Step::Text(text) => encoder.text(text, out),
            Step::Refusal(text) => encoder.refusal(text, out),
            Step::Reasoning(text) => encoder.reasoning(text, out),
            Step::EndPart => encoder.end_part(out),
            Step::Seal(text) => encoder.seal(text, out),
            Step::Call(name) => encoder.call(&format!("call_{i}"), name, out),
            Step::Arguments(text) => encoder.arguments(text, out),
        }
    }
}

/// Merges consecutive steps of the same kind into items.
fn sum(steps: &[Step], traits: RequestTraits) -> Vec<ExpectedItem> {
    let mut sum = Sum::default();
    for (i, step) in steps.iter().enumerate() {
        match step {
            Step::Text(text) | Step::Refusal(text) | Step::Reasoning(text) | Step::Seal(text)
                if text.is_empty() => {}
            Step::Open => {}
            Step::Text(text) => sum.text(false, text),
            Step::Refusal(text) => sum.text(true, text),
            Step::Reasoning(text) => sum.reasoning(text),
            Step::EndPart => sum.in_part = false,
            Step::Seal(content) => {
                sum.encrypted(Some(content).filter(|_| traits.include_encrypted));
            }
            Step::Call(name) => sum.push(ExpectedItem::Call(
                format!("call_{i}"),
                name.clone(),
                String::new(),
            )),
            Step::Arguments(text) => {
                if let Some(ExpectedItem::Call(.., all)) = sum.open() {
                    all.push_str(text);
                }
            }
        }
    }
    sum.items
}

#[derive(Default)]
struct Sum {
    items: Vec<ExpectedItem>,
    /// True if the last item accepts more, and true if its last part does.
    in_item: bool,
    in_part: bool,
}

impl Sum {
    fn open(&mut self) -> Option<&mut ExpectedItem> {
        self.items.last_mut().filter(|_| self.in_item)
    }

    fn push(&mut self, item: ExpectedItem) {
        self.items.push(item);
        (self.in_item, self.in_part) = (true, false);
    }

    fn text(&mut self, refuses: bool, text: &str) {
        if !matches!(self.open(), Some(ExpectedItem::Message(_))) {
            self.push(ExpectedItem::Message(Vec::new()));
        }
        let continues = self.in_part;
        let Some(ExpectedItem::Message(parts)) = self.items.last_mut() else {
            unreachable!("a message is open")
        };
        match parts
            .last_mut()
            .filter(|(is_refusal, _)| continues && *is_refusal == refuses)
        {
            Some((_, all)) => all.push_str(text),
            None => parts.push((refuses, text.to_owned())),
        }
        self.in_part = true;
    }

    fn reasoning(&mut self, text: &str) {
        if !matches!(self.open(), Some(ExpectedItem::Reasoning(..))) {
            self.push(ExpectedItem::Reasoning(Vec::new(), None));
        }
        let continues = self.in_part;
        let Some(ExpectedItem::Reasoning(parts, _)) = self.items.last_mut() else {
            unreachable!("reasoning is open")
        };
        match parts.last_mut().filter(|_| continues) {
            Some(all) => all.push_str(text),
            None => parts.push(text.to_owned()),
        }
        self.in_part = true;
    }

    /// Encrypted content ends the reasoning item, opening one if necessary.
    fn encrypted(&mut self, content: Option<&String>) {
        if !matches!(self.open(), Some(ExpectedItem::Reasoning(..))) {
            if content.is_none() {
                return;
            }
            self.push(ExpectedItem::Reasoning(Vec::new(), None));
        }
        if let Some(ExpectedItem::Reasoning(_, encrypted)) = self.items.last_mut() {
            *encrypted = content.cloned();
        }
        self.in_item = false;
    }
}

/// An item, accumulated independently of the encoder.
#[derive(Clone, Debug, PartialEq)]
enum ExpectedItem {
    /// Parts: true for a refusal, and the text.
    Message(Vec<(bool, String)>),
    /// Summary parts, and the encrypted content.
    Reasoning(Vec<String>, Option<String>),
    /// Id, name and arguments.
    Call(String, String, String),
}

/// Returns the output of a response with these items, without ids, statuses and phases.
fn output(items: &[ExpectedItem]) -> Value {
    let part = |(refuses, text): &(bool, String)| match refuses {
        true => json!({"type": "refusal", "refusal": text}),
        false => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
    };
    let item = |item: &ExpectedItem| match item {
        ExpectedItem::Message(parts) => {
            json!({"type": "message", "role": "assistant", "content": parts.iter().map(part).collect::<Value>()})
        }
        ExpectedItem::Reasoning(parts, encrypted) => {
            let parts = parts
                .iter()
                .map(|text| json!({"type": "summary_text", "text": text}));
            let mut item = json!({"type": "reasoning", "summary": parts.collect::<Value>()});
            if let Some(content) = encrypted {
                item["encrypted_content"] = content.as_str().into();
            }
            item
        }
        ExpectedItem::Call(id, name, arguments) => {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
        }
    };
    items.iter().map(item).collect()
}

/// Replaces empty arguments of calls with an empty object.
fn with_arguments(mut items: Vec<ExpectedItem>) -> Vec<ExpectedItem> {
    for item in &mut items {
        if let ExpectedItem::Call(.., arguments) = item
            && arguments.is_empty()
        {
            arguments.push_str("{}");
        }
    }
    items
}

/// As [`with_arguments`], except for the last item: it was truncated and keeps its arguments.
fn truncated(mut items: Vec<ExpectedItem>) -> Vec<ExpectedItem> {
    let last = items.pop();
    with_arguments(items).into_iter().chain(last).collect()
}

/// Returns the output of a response, reduced to the fields that the steps determine.
fn content(response: &Response) -> Value {
    let mut output = serde_json::to_value(&response.output).unwrap();
    for item in output.as_array_mut().unwrap() {
        let item = item.as_object_mut().unwrap();
        item.retain(|name, _| !["id", "status", "phase"].contains(&name.as_str()));
    }
    output
}

/// Checks the invariants across events: sequence numbers without gaps, one terminal event, stable
/// ids.
fn check_identities(stream: &[Event]) {
    let numbers: Vec<_> = stream
        .iter()
        .map(|event| event.sequence_number().unwrap())
        .collect();
    assert_eq!(numbers, (0..stream.len() as u64).collect::<Vec<_>>());
    assert_eq!(stream.iter().filter(|event| event.is_terminal()).count(), 1);
    assert!(stream.last().unwrap().is_terminal());

    let stream: Vec<Value> = stream
        .iter()
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    let of = |kind: &str| {
        stream
            .iter()
            .filter(|event| event["type"] == kind)
            .collect::<Vec<_>>()
    };
    let added = of("response.output_item.added");
    for (i, event) in added.iter().enumerate() {
        assert_eq!(event["output_index"], i);
        let id = &event["item"]["id"];
        assert_eq!(
            added
                .iter()
                .filter(|other| other["item"]["id"] == *id)
                .count(),
            1,
            "{id} is the id of one item"
        );
    }
    for event in stream.iter().filter(|event| event.get("item_id").is_some()) {
        let index = event["output_index"].as_u64().unwrap() as usize;
        assert_eq!(event["item_id"], added[index]["item"]["id"], "{event}");
    }
    let output = &stream.last().unwrap()["response"]["output"];
    assert_eq!(
        output.as_array().unwrap().len(),
        added.len(),
        "every added item is in the response"
    );
    for (item, event) in output.as_array().unwrap().iter().zip(&added) {
        for name in ["id", "type", "call_id"] {
            assert_eq!(item.get(name), event["item"].get(name));
        }
    }
}

fn statuses(response: &Response) -> Vec<Option<Status>> {
    response
        .output
        .iter()
        .map(|item| item.status().cloned())
        .collect()
}

/// Returns the response of the terminal event, whatever its status.
fn last_response(stream: &[Event]) -> Response {
    match stream.last() {
        Some(Event::Completed(event) | Event::Incomplete(event) | Event::Failed(event)) => {
            (*event.response).clone()
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn encoder_output_is_grammatical_and_folds_to_its_input(steps in vec(step(), 0..14), traits in traits()) {
        let (mut encoder, mut out) = (encoder(traits), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(Finish::Completed, Some(Usage::new(3, 4)), 1_789_000_002, &mut out);
        let late = [Step::Call("late".into()), Step::Text("late".into()), Step::EndPart, Step::Open];
        encode(&late, &mut encoder, &mut out);
        encoder.finish(Finish::Completed, None, 0, &mut out);
        encoder.fail(&ApiError::server_error(), &mut out);

        check_identities(&out);
        let response = fold(&out).unwrap();
        prop_assert_eq!(content(&response), output(&with_arguments(sum(&steps, traits))));
        prop_assert!(statuses(&response).into_iter().flatten().all(|status| status == Status::Completed));
        prop_assert_eq!((response.usage, response.completed_at), (Some(Usage::new(3, 4)), Some(1_789_000_002)));
    }

    /// The lenient reader reads answers that the strict types accept to the same content. It refuses calls that cannot be executed.
    #[test]
    fn the_strict_and_the_lenient_reading_agree(steps in vec(step(), 0..14), traits in traits()) {
        let (mut encoder, mut out) = (encoder(traits), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(Finish::Completed, Some(Usage::new(3, 4)), 1_789_000_002, &mut out);
        let mut collector = lenient::Collector::default();
        out.iter().for_each(|event| collector.event(&event.data()).unwrap_or_default());
        let strict = serde_json::to_value(fold(&out).unwrap()).unwrap();
        let (streamed, plain) = (collector.finish(), lenient::collect(&strict.to_string()));

        let items = strict["output"].as_array().unwrap();
        let calls: Vec<_> = items.iter().filter(|item| item["type"] == "function_call").collect();
        let is_json = |text: &str| text.trim().is_empty() || serde_json::from_str::<Value>(text).is_ok();
        let can_be_executed = |call: &&Value| is_json(call["arguments"].as_str().unwrap());
        prop_assert_eq!(streamed.is_ok(), calls.iter().all(can_be_executed));
        prop_assert_eq!(streamed.is_ok(), plain.is_ok());
        if let (Ok(streamed), Ok(plain)) = (streamed, plain) {
            prop_assert_eq!(&streamed, &plain);
            let texts = |list: &str, member: &str| items.iter()
                .flat_map(|item| item[list].as_array().into_iter().flatten())
                .filter_map(|part| part[member].as_str()).collect::<String>();
            prop_assert_eq!(&streamed.text, &texts("content", "text"));
            prop_assert_eq!(&streamed.refusal, &texts("content", "refusal"));
            prop_assert_eq!(&streamed.reasoning, &texts("summary", "text"));
            prop_assert_eq!(streamed.calls.len(), calls.len());
            for (strict, lenient) in calls.iter().zip(&streamed.calls) {
                prop_assert_eq!((&strict["call_id"], &strict["name"]), (&json!(lenient.id), &json!(lenient.name)));
                prop_assert_eq!(&strict["arguments"], &lenient.arguments);
            }
        }
    }

    #[test]
    fn a_truncated_response_has_all_of_the_output(steps in vec(step(), 0..10), traits in traits()) {
        let (mut encoder, mut out) = (encoder(traits), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(Finish::Incomplete(IncompleteReason::MaxOutputTokens), None, 1_789_000_002, &mut out);

        check_identities(&out);
        let response = fold(&out).unwrap();
        prop_assert_eq!(content(&response), output(&truncated(sum(&steps, traits))));
        prop_assert_eq!((&response.status, response.completed_at), (&Status::Incomplete, None));
        prop_assert_eq!(response.incomplete_details.clone().unwrap().reason, IncompleteReason::MaxOutputTokens);
        if let Some((last, before)) = statuses(&response).split_last() {
            prop_assert!(before.iter().flatten().all(|status| *status == Status::Completed));
            prop_assert!(matches!(last, None | Some(Status::Incomplete)));
        }
    }

    #[test]
    fn a_failure_ends_the_stream_and_is_never_a_response(steps in vec(step(), 0..10), traits in traits()) {
        let (mut encoder, mut out) = (encoder(traits), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        let before = out.len();
        encoder.fail(&ApiError::concurrency_limit(), &mut out);
        encoder.finish(Finish::Completed, None, 0, &mut out);

        prop_assert_eq!(out.len() - before, if before == 0 { 2 } else { 1 });
        check_identities(&out);
        match fold(&out) {
            Err(StreamError::Failed(failure)) => prop_assert_eq!(failure.code, "gateway_concurrency_limit"),
            other => prop_assert!(false, "{:?}", other),
        }
        let response = last_response(&out);
        prop_assert_eq!((&response.status, response.usage), (&Status::Failed, None));
        prop_assert_eq!(content(&response), output(&truncated(sum(&steps, traits))));
    }

    #[test]
    fn a_stream_cut_anywhere_is_never_a_response(
        steps in vec(step(), 0..8),
        traits in traits(),
        at in any::<prop::sample::Index>(),
    ) {
        let (mut encoder, mut out) = (encoder(traits), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(Finish::Completed, None, 1_789_000_002, &mut out);
        let end = at.index(out.len());
        prop_assert_eq!(fold(&out[..end]).unwrap_err(), StreamError::Offence(Offence::Truncated));
        let mut grammar = Grammar::default();
        prop_assert!(out[..end].iter().all(|event| grammar.push(event).is_ok()));
        prop_assert_eq!((grammar.is_ended(), grammar.finish()), (false, Err(Offence::Truncated)));
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same_events(
        steps in vec(step(), 0..8),
        traits in traits(),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (mut encoder, mut out) = (encoder(traits), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        encoder.finish(Finish::Completed, Some(Usage::new(3, 4)), 1_789_000_002, &mut out);
        let stream = text(&out);
        prop_assert_eq!(&events(&stream), &out);

        let mut cuts: Vec<_> = cuts.iter().map(|at| at.index(stream.len())).collect();
        cuts.sort_unstable();
        let bounds = cuts.iter().copied().chain([stream.len()]);
        let chunks = bounds.scan(0, |begin, end| Some(&stream.as_bytes()[std::mem::replace(begin, end)..end]));
        prop_assert_eq!(decode(chunks), (out, Ok(())));
    }

    #[test]
    fn padding_hides_how_long_a_delta_is(steps in vec(step(), 0..8), tools in any::<bool>(), padding in any::<bool>()) {
        let (mut encoder, mut out) = (encoder(RequestTraits { tools, padding, include_encrypted: false }), Vec::new());
        encode(&steps, &mut encoder, &mut out);
        for event in out.iter().map(|event| serde_json::to_value(event).unwrap()) {
            let length = |name: &str| event.get(name).map(|text| text.as_str().unwrap().len());
            match (length("delta"), length("obfuscation")) {
                (Some(delta), Some(filling)) => prop_assert!(padding && (delta + filling) % 16 == 0 && filling > 0),
                (delta, filling) => prop_assert!(filling.is_none() && !(padding && delta.is_some())),
            }
        }
    }

    #[test]
    fn encrypted_content_is_sent_where_it_was_requested(include_encrypted in any::<bool>()) {
        let traits = RequestTraits { tools: false, padding: false, include_encrypted };
        let (mut encoder, mut out) = (encoder(traits), Vec::new());
        encode(&[Step::Reasoning("Hm.".into()), Step::Seal("c2Vj".into())], &mut encoder, &mut out);
        encoder.finish(Finish::Completed, None, 0, &mut out);
        let OutputItem::Reasoning(reasoning) = fold(&out).unwrap().output.remove(0) else { panic!("reasoning") };
        prop_assert_eq!(reasoning.encrypted_content.is_some(), include_encrypted);
        prop_assert_eq!(text(&out).contains("c2Vj"), include_encrypted);
    }

    #[test]
    fn the_diagnosis_agrees_with_the_parser(document in strategies::changed(fixtures("-request-"))) {
        let parses = serde_json::from_str::<Request>(&document.to_string());
        let diagnosis = Shape::of::<Request>().diagnose(&document);
        prop_assert_eq!(parses.is_ok(), diagnosis.is_empty(), "{:?} {} {}", parses.err(), diagnosis, document);
    }

    #[test]
    fn parsed_requests_survive_a_round_trip(document in strategies::changed(fixtures("-request-"))) {
        if let Ok(request) = Request::read(document.to_string().as_bytes()) {
            let written = serde_json::to_vec(&request).unwrap();
            prop_assert_eq!(Request::read(&written).unwrap(), request);
        }
    }

    #[test]
    fn a_response_is_written_as_it_was_read(document in strategies::changed(fixtures("responses-response-"))) {
        if let Ok(response) = serde_json::from_str::<Response>(&document.to_string()) {
            let written = serde_json::to_string(&response).unwrap();
            prop_assert_eq!(serde_json::from_str::<Response>(&written).unwrap(), response);
        }
    }

    #[test]
    fn no_request_upsets_the_validator(document in strategies::changed(fixtures("-request-"))) {
        if let Ok(request) = Request::read(document.to_string().as_bytes()) {
            let found = request.clone().validate(&sluicegate_responses::Rules::default());
            match found {
                Ok(valid) => prop_assert_eq!(valid.into_inner(), request),
                Err(found) => prop_assert!(!found.is_empty() && found.iter().all(|one| !one.param.is_empty())),
            }
        }
    }
}

/// Returns the phases of the messages when added, and in the final response.
fn phases(steps: &[Step], tools: bool) -> (Vec<Option<Phase>>, Vec<Option<Phase>>) {
    let (mut encoder, mut out) = (
        encoder(RequestTraits {
            tools,
            padding: false,
            include_encrypted: false,
        }),
        Vec::new(),
    );
    encode(steps, &mut encoder, &mut out);
    encoder.finish(Finish::Completed, None, 0, &mut out);
    let added = out.iter().filter_map(|event| match event {
        Event::OutputItemAdded(event) => phase(&event.item),
        _ => None,
    });
    (
        added.collect(),
        fold(&out)
            .unwrap()
            .output
            .iter()
            .filter_map(phase)
            .collect(),
    )
}

fn phase(item: &OutputItem) -> Option<Option<Phase>> {
    match item {
        OutputItem::Message(message) => Some(message.phase.clone()),
        _ => None,
    }
}

#[test]
fn message_before_a_call_is_commentary_and_last_is_final() {
    let (commentary, answer) = (Some(Phase::Commentary), Some(Phase::FinalAnswer));
    let three = [
        Step::Text("Hm.".into()),
        Step::Call("f".into()),
        Step::Text("Ha.".into()),
    ];
    assert_eq!(
        phases(&three, true),
        (vec![None, None], vec![commentary, answer.clone()])
    );
    let reasoning_between = [
        Step::Text("Hm.".into()),
        Step::Reasoning("So.".into()),
        Step::Call("f".into()),
    ];
    assert_eq!(
        phases(&reasoning_between, true),
        (vec![None], vec![Some(Phase::Commentary)])
    );
    let one = [Step::Text("Ha.".into())];
    assert_eq!(phases(&one, true), (vec![None], vec![answer.clone()]));
    assert_eq!(phases(&one, false), (vec![answer.clone()], vec![answer]));
}

fn fixtures(kind: &str) -> Vec<Value> {
    let documents = strategies::documents(FIXTURES, kind).into_iter();
    // Some fixtures wrap the request together with the expected result.
    documents
        .map(|document| document.get("request").cloned().unwrap_or(document))
        .collect()
}
