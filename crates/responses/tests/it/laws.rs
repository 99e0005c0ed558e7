//! Laws that hold for any input.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use sluicegate_responses::{
    Echo, Encoder, Event, Finish, Grammar, Head, IncompleteReason, Offence, OutputItem, Phase, Request, Response,
    Status, StreamError, Usage,
};
use wire::{ApiError, Shape};

use crate::{decode, events, fold, text};

/// Something that a model does.
#[derive(Clone, Debug)]
enum Act {
    Open,
    Text(String),
    Refusal(String),
    Reasoning(String),
    EndPart,
    Seal(String),
    Call(String),
    Arguments(String),
}

fn act() -> impl Strategy<Value = Act> {
    let words = "[a-z\u{e9}\u{2028}\"\\\\\r\n{}: ]{0,8}";
    prop_oneof![
        Just(Act::Open),
        words.prop_map(Act::Text),
        words.prop_map(Act::Refusal),
        words.prop_map(Act::Reasoning),
        Just(Act::EndPart),
        "[a-z=]{0,4}".prop_map(Act::Seal),
        "[a-z_]{1,8}".prop_map(Act::Call),
        words.prop_map(Act::Arguments),
    ]
}

/// A request, in the ways that bear on the stream.
#[derive(Clone, Copy, Debug)]
struct Asked {
    tools: bool,
    padding: bool,
    seals: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    any::<(bool, bool, bool)>().prop_map(|(tools, padding, seals)| Asked { tools, padding, seals })
}

fn encoder(asked: Asked) -> Encoder {
    let request = json!({
        "model": "m",
        "input": [],
        "tools": if asked.tools { json!([{"type": "function", "name": "f"}]) } else { json!([]) },
        "stream_options": {"include_obfuscation": asked.padding},
        "include": if asked.seals { json!([Request::ENCRYPTED_REASONING]) } else { json!(null) },
    });
    let echo = Echo::of(&Request::read(request.to_string().as_bytes()).unwrap());
    Encoder::new(Head { id: "resp_1".into(), created_at: 1_789_000_000, model: "m".into() }, echo)
}

fn perform(acts: &[Act], encoder: &mut Encoder, out: &mut Vec<Event>) {
    for (i, act) in acts.iter().enumerate() {
        match act {
            Act::Open => encoder.open(out),
            Act::Text(text) => encoder.text(text, out),
            Act::Refusal(text) => encoder.refusal(text, out),
            Act::Reasoning(text) => encoder.reasoning(text, out),
            Act::EndPart => encoder.end_part(out),
            Act::Seal(text) => encoder.seal(text, out),
            Act::Call(name) => encoder.call(&format!("call_{i}"), name, out),
            Act::Arguments(text) => encoder.arguments(text, out),
        }
    }
}

/// What the acts say in sum, item by item: what belongs together is what comes together.
fn sum(acts: &[Act], asked: Asked) -> Vec<Told> {
    let mut sum = Sum::default();
    for (i, act) in acts.iter().enumerate() {
        match act {
            Act::Text(text) | Act::Refusal(text) | Act::Reasoning(text) | Act::Seal(text) if text.is_empty() => {}
            Act::Open => {}
            Act::Text(text) => sum.say(false, text),
            Act::Refusal(text) => sum.say(true, text),
            Act::Reasoning(text) => sum.think(text),
            Act::EndPart => sum.in_part = false,
            Act::Seal(seal) => sum.seal(Some(seal).filter(|_| asked.seals)),
            Act::Call(name) => sum.begin(Told::Call(format!("call_{i}"), name.clone(), String::new())),
            Act::Arguments(text) => {
                if let Some(Told::Call(.., all)) = sum.open() {
                    all.push_str(text);
                }
            }
        }
    }
    sum.told
}

#[derive(Default)]
struct Sum {
    told: Vec<Told>,
    /// Whether the last item takes more, and whether its last part does.
    in_item: bool,
    in_part: bool,
}

impl Sum {
    fn open(&mut self) -> Option<&mut Told> {
        self.told.last_mut().filter(|_| self.in_item)
    }

    fn begin(&mut self, item: Told) {
        self.told.push(item);
        (self.in_item, self.in_part) = (true, false);
    }

    fn say(&mut self, refuses: bool, text: &str) {
        if !matches!(self.open(), Some(Told::Message(_))) {
            self.begin(Told::Message(Vec::new()));
        }
        let goes_on = self.in_part;
        let Some(Told::Message(parts)) = self.told.last_mut() else { unreachable!("a message is open") };
        match parts.last_mut().filter(|(is_refusal, _)| goes_on && *is_refusal == refuses) {
            Some((_, all)) => all.push_str(text),
            None => parts.push((refuses, text.to_owned())),
        }
        self.in_part = true;
    }

    fn think(&mut self, text: &str) {
        if !matches!(self.open(), Some(Told::Thoughts(..))) {
            self.begin(Told::Thoughts(Vec::new(), None));
        }
        let goes_on = self.in_part;
        let Some(Told::Thoughts(parts, _)) = self.told.last_mut() else { unreachable!("thoughts are open") };
        match parts.last_mut().filter(|_| goes_on) {
            Some(all) => all.push_str(text),
            None => parts.push(text.to_owned()),
        }
        self.in_part = true;
    }

    /// A seal ends the thoughts, or the place where they would stand when it is told.
    fn seal(&mut self, told: Option<&String>) {
        if !matches!(self.open(), Some(Told::Thoughts(..))) {
            if told.is_none() {
                return;
            }
            self.begin(Told::Thoughts(Vec::new(), None));
        }
        if let Some(Told::Thoughts(_, seal)) = self.told.last_mut() {
            *seal = told.cloned();
        }
        self.in_item = false;
    }
}

/// An item as the acts make it, by other means than the encoder's.
#[derive(Clone, Debug, PartialEq)]
enum Told {
    /// Parts: whether it is a refusal, and the text.
    Message(Vec<(bool, String)>),
    /// Parts, and the seal.
    Thoughts(Vec<String>, Option<String>),
    /// Id, name and arguments.
    Call(String, String, String),
}

/// The output of a response that says what was told, without ids, statuses and phases.
fn output(told: &[Told]) -> Value {
    let part = |(refuses, text): &(bool, String)| match refuses {
        true => json!({"type": "refusal", "refusal": text}),
        false => json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []}),
    };
    let item = |told: &Told| match told {
        Told::Message(parts) => {
            json!({"type": "message", "role": "assistant", "content": parts.iter().map(part).collect::<Value>()})
        }
        Told::Thoughts(parts, seal) => {
            let parts = parts.iter().map(|text| json!({"type": "summary_text", "text": text}));
            let mut item = json!({"type": "reasoning", "summary": parts.collect::<Value>()});
            if let Some(seal) = seal {
                item["encrypted_content"] = seal.as_str().into();
            }
            item
        }
        Told::Call(id, name, arguments) => {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments})
        }
    };
    told.iter().map(item).collect()
}

/// The same with the arguments of calls that had none as an object.
fn with_arguments(mut told: Vec<Told>) -> Vec<Told> {
    for item in &mut told {
        if let Told::Call(.., arguments) = item
            && arguments.is_empty()
        {
            arguments.push_str("{}");
        }
    }
    told
}

/// The same when it was cut: no arguments are made up for the last call.
fn cut(mut told: Vec<Told>) -> Vec<Told> {
    let last = told.pop();
    with_arguments(told).into_iter().chain(last).collect()
}

/// The output of a response without what the acts do not say.
fn said(response: &Response) -> Value {
    let mut output = serde_json::to_value(&response.output).unwrap();
    for item in output.as_array_mut().unwrap() {
        let item = item.as_object_mut().unwrap();
        item.retain(|name, _| !["id", "status", "phase"].contains(&name.as_str()));
    }
    output
}

/// Holds a stream to what no grammar of single events tells: numbers without a gap, one end, ids that stay.
fn check_identities(stream: &[Event]) {
    let numbers: Vec<_> = stream.iter().map(|event| event.sequence_number().unwrap()).collect();
    assert_eq!(numbers, (0..stream.len() as u64).collect::<Vec<_>>());
    assert_eq!(stream.iter().filter(|event| event.is_terminal()).count(), 1);
    assert!(stream.last().unwrap().is_terminal());

    let stream: Vec<Value> = stream.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let of = |kind: &str| stream.iter().filter(|event| event["type"] == kind).collect::<Vec<_>>();
    let added = of("response.output_item.added");
    for (i, event) in added.iter().enumerate() {
        assert_eq!(event["output_index"], i);
        let id = &event["item"]["id"];
        assert_eq!(added.iter().filter(|other| other["item"]["id"] == *id).count(), 1, "{id} is the id of one item");
    }
    for event in stream.iter().filter(|event| event.get("item_id").is_some()) {
        let index = event["output_index"].as_u64().unwrap() as usize;
        assert_eq!(event["item_id"], added[index]["item"]["id"], "{event}");
    }
    let output = &stream.last().unwrap()["response"]["output"];
    assert_eq!(output.as_array().unwrap().len(), added.len(), "each item that was begun is in the response");
    for (item, event) in output.as_array().unwrap().iter().zip(&added) {
        for name in ["id", "type", "call_id"] {
            assert_eq!(item.get(name), event["item"].get(name));
        }
    }
}

fn statuses(response: &Response) -> Vec<Option<Status>> {
    response.output.iter().map(|item| item.status().cloned()).collect()
}

/// The response that a stream ends with, whatever its status.
fn last_response(stream: &[Event]) -> Response {
    match stream.last() {
        Some(Event::Completed(event) | Event::Incomplete(event) | Event::Failed(event)) => (*event.response).clone(),
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn whatever_a_model_does_is_a_grammatical_stream_that_folds_to_it(acts in vec(act(), 0..14), asked in asked()) {
        let (mut encoder, mut out) = (encoder(asked), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        encoder.finish(Finish::Completed, Some(Usage::new(3, 4)), 1_789_000_002, &mut out);
        perform(&[Act::Call("late".into()), Act::Text("late".into()), Act::EndPart, Act::Open], &mut encoder, &mut out);
        encoder.finish(Finish::Completed, None, 0, &mut out);
        encoder.fail(&ApiError::server_error(), &mut out);

        check_identities(&out);
        let response = fold(&out).unwrap();
        prop_assert_eq!(said(&response), output(&with_arguments(sum(&acts, asked))));
        prop_assert!(statuses(&response).into_iter().flatten().all(|status| status == Status::Completed));
        prop_assert_eq!((response.usage, response.completed_at), (Some(Usage::new(3, 4)), Some(1_789_000_002)));
    }

    #[test]
    fn a_response_that_was_cut_has_all_that_was_said(acts in vec(act(), 0..10), asked in asked()) {
        let (mut encoder, mut out) = (encoder(asked), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        encoder.finish(Finish::Incomplete(IncompleteReason::MaxOutputTokens), None, 1_789_000_002, &mut out);

        check_identities(&out);
        let response = fold(&out).unwrap();
        prop_assert_eq!(said(&response), output(&cut(sum(&acts, asked))));
        prop_assert_eq!((&response.status, response.completed_at), (&Status::Incomplete, None));
        prop_assert_eq!(response.incomplete_details.clone().unwrap().reason, IncompleteReason::MaxOutputTokens);
        if let Some((last, before)) = statuses(&response).split_last() {
            prop_assert!(before.iter().flatten().all(|status| *status == Status::Completed));
            prop_assert!(matches!(last, None | Some(Status::Incomplete)));
        }
    }

    #[test]
    fn a_failure_ends_the_stream_and_is_never_a_response(acts in vec(act(), 0..10), asked in asked()) {
        let (mut encoder, mut out) = (encoder(asked), Vec::new());
        perform(&acts, &mut encoder, &mut out);
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
        prop_assert_eq!(said(&response), output(&cut(sum(&acts, asked))));
    }

    #[test]
    fn a_stream_cut_anywhere_is_never_a_response(
        acts in vec(act(), 0..8),
        asked in asked(),
        at in any::<prop::sample::Index>(),
    ) {
        let (mut encoder, mut out) = (encoder(asked), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        encoder.finish(Finish::Completed, None, 1_789_000_002, &mut out);
        let cut = at.index(out.len());
        prop_assert_eq!(fold(&out[..cut]).unwrap_err(), StreamError::Offence(Offence::Truncated));
        let mut grammar = Grammar::new();
        prop_assert!(out[..cut].iter().all(|event| grammar.push(event).is_ok()));
        prop_assert_eq!((grammar.is_ended(), grammar.finish()), (false, Err(Offence::Truncated)));
    }

    #[test]
    fn any_split_of_the_bytes_gives_the_same_events(
        acts in vec(act(), 0..8),
        asked in asked(),
        cuts in vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let (mut encoder, mut out) = (encoder(asked), Vec::new());
        perform(&acts, &mut encoder, &mut out);
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
    fn padding_hides_how_long_a_delta_is(acts in vec(act(), 0..8), tools in any::<bool>(), padding in any::<bool>()) {
        let (mut encoder, mut out) = (encoder(Asked { tools, padding, seals: false }), Vec::new());
        perform(&acts, &mut encoder, &mut out);
        for event in out.iter().map(|event| serde_json::to_value(event).unwrap()) {
            let length = |name: &str| event.get(name).map(|text| text.as_str().unwrap().len());
            match (length("delta"), length("obfuscation")) {
                (Some(delta), Some(filling)) => prop_assert!(padding && (delta + filling) % 16 == 0 && filling > 0),
                (delta, filling) => prop_assert!(filling.is_none() && !(padding && delta.is_some())),
            }
        }
    }

    #[test]
    fn a_seal_is_told_to_who_asked_for_it(seals in any::<bool>()) {
        let (mut encoder, mut out) = (encoder(Asked { tools: false, padding: false, seals }), Vec::new());
        perform(&[Act::Reasoning("Hm.".into()), Act::Seal("c2Vj".into())], &mut encoder, &mut out);
        encoder.finish(Finish::Completed, None, 0, &mut out);
        let OutputItem::Reasoning(thoughts) = fold(&out).unwrap().output.remove(0) else { panic!("thoughts") };
        prop_assert_eq!(thoughts.encrypted_content.is_some(), seals);
        prop_assert_eq!(text(&out).contains("c2Vj"), seals);
    }

    #[test]
    fn the_diagnosis_agrees_with_the_parser(document in strategies::changed(fixtures("-request-"))) {
        let parses = serde_json::from_str::<Request>(&document.to_string());
        let diagnosis = Shape::of::<Request>().diagnose(&document);
        prop_assert_eq!(parses.is_ok(), diagnosis.is_empty(), "{:?} {} {}", parses.err(), diagnosis, document);
    }

    #[test]
    fn what_is_read_is_written_and_read_again_the_same(document in strategies::changed(fixtures("-request-"))) {
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

/// The phases of the messages as they are added, and as they are in the response.
fn phases(acts: &[Act], tools: bool) -> (Vec<Option<Phase>>, Vec<Option<Phase>>) {
    let (mut encoder, mut out) = (encoder(Asked { tools, padding: false, seals: false }), Vec::new());
    perform(acts, &mut encoder, &mut out);
    encoder.finish(Finish::Completed, None, 0, &mut out);
    let added = out.iter().filter_map(|event| match event {
        Event::OutputItemAdded(event) => phase(&event.item),
        _ => None,
    });
    (added.collect(), fold(&out).unwrap().output.iter().filter_map(phase).collect())
}

fn phase(item: &OutputItem) -> Option<Option<Phase>> {
    match item {
        OutputItem::Message(message) => Some(message.phase.clone()),
        _ => None,
    }
}

#[test]
fn a_message_before_a_call_is_commentary_and_the_last_one_the_answer() {
    let (commentary, answer) = (Some(Phase::Commentary), Some(Phase::FinalAnswer));
    let said = [Act::Text("Hm.".into()), Act::Call("f".into()), Act::Text("Ha.".into())];
    assert_eq!(phases(&said, true), (vec![None, None], vec![commentary, answer.clone()]));
    let thought_between = [Act::Text("Hm.".into()), Act::Reasoning("So.".into()), Act::Call("f".into())];
    assert_eq!(phases(&thought_between, true), (vec![None], vec![Some(Phase::Commentary)]));
    let told = [Act::Text("Ha.".into())];
    assert_eq!(phases(&told, true), (vec![None], vec![answer.clone()]));
    assert_eq!(phases(&told, false), (vec![answer.clone()], vec![answer]));
}

fn fixtures(kind: &str) -> Vec<Value> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let wanted = files.filter(|path| path.to_string_lossy().contains(kind));
    let documents = wanted.map(|path| serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap());
    // Some fixtures are a request with what is expected of it.
    documents.map(|document: Value| document.get("request").cloned().unwrap_or(document)).collect()
}
