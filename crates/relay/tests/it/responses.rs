//! Relayed streams of Responses.

use engine::EngineError;
use serde_json::{Value, json};
use sluicegate_relay::{End, Responses};

use crate::laws::relayed;
use crate::laws::{data, fixture};

fn end_of(stream: &[u8]) -> End {
    relayed(Responses::default(), "m", &[stream]).1.unwrap()
}

/// The data of the events that a client gets for events with this data.
fn relayed_data(events: &[&str]) -> Vec<String> {
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    let stream: String = events.collect();
    data(&relayed(Responses::default(), "m", &[stream.as_bytes()]).0)
}

#[test]
fn a_failure_lists_the_items_that_are_done() {
    let stream =
        String::from_utf8(fixture("responses-stream-parallel-function-calls.sse")).unwrap();
    let done: Vec<_> = stream
        .match_indices("event: response.output_item.done")
        .map(|(at, _)| at)
        .collect();
    let (out, ended) = relayed(Responses::default(), "m", &[&stream.as_bytes()[..done[2]]]);
    ended.unwrap_err();
    let events: Vec<Value> = data(&out)
        .iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let complete: Vec<Value> = data(stream.as_bytes())
        .iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let mut output = complete.last().unwrap()["response"]["output"].clone();
    output.as_array_mut().unwrap().truncate(2);
    assert_eq!(events.last().unwrap()["response"]["output"], output);
}

#[test]
fn events_before_the_response_are_held_back() {
    let early = "data: {\"type\":\"keepalive\"}\n\n".as_bytes();
    let stream = fixture("responses-stream-text.sse");
    let (out, ended) = relayed(Responses::default(), "m", &[early, &stream]);
    assert_eq!(
        (&out, ended.ok()),
        (
            &relayed(Responses::default(), "m", &[&stream]).0,
            Some(end_of(&stream))
        )
    );
    let (out, ended) = relayed(Responses::default(), "m", &[early, b"data: {\n\n"]);
    ended.unwrap_err();
    assert_eq!(out, b"", "the failure can still be reported by the status");
}

/// The numbers of a relayed stream begin with 0: a dropped event that has a number leaves none to
/// the next one.
#[test]
fn a_numbered_event_before_a_response_is_a_failure() {
    let early = "data: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n";
    let created = r#"{"type":"response.created","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":1786000000,"status":"in_progress","error":null,"model":"theirs","output":[]}}"#;
    let stream = format!("{early}event: response.created\ndata: {created}\n\n");
    let (out, ended) = relayed(Responses::default(), "m", &[stream.as_bytes()]);
    assert_eq!(out, b"");
    let EngineError::Upstream(why) = ended.unwrap_err() else {
        panic!("the upstream is at fault")
    };
    assert_eq!(why, "malformed event: a numbered event before the response");
}

/// The Responses of llama.cpp lack the places of their events, by which the SDKs find the item and
/// the part of an event:
/// <https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md>.
#[test]
fn events_get_the_places_that_they_lack() {
    let events = [
        (
            r#"{"type":"response.created","response":{"id":"r","status":"in_progress"}}"#,
            r#"{"type":"response.created","response":{"output":[],"id":"r","status":"in_progress"}}"#,
        ),
        (
            r#"{"type":"response.output_item.added","item":{"id":"a","type":"reasoning","summary":[]}}"#,
            r#"{"output_index":0,"type":"response.output_item.added","item":{"id":"a","type":"reasoning","summary":[]}}"#,
        ),
        (
            r#"{"type":"response.output_item.added","item":{"id":"b","type":"message","content":[]}}"#,
            r#"{"output_index":1,"type":"response.output_item.added","item":{"id":"b","type":"message","content":[]}}"#,
        ),
        (
            r#"{"type":"response.content_part.added","item_id":"b","part":{"type":"output_text","text":""}}"#,
            r#"{"output_index":1,"content_index":0,"type":"response.content_part.added","item_id":"b","part":{"type":"output_text","text":""}}"#,
        ),
        (
            r#"{"type":"response.output_text.delta","item_id":"b","delta":"Hi"}"#,
            r#"{"output_index":1,"content_index":0,"type":"response.output_text.delta","item_id":"b","delta":"Hi"}"#,
        ),
        (
            r#"{"type":"response.output_text.delta","item_id":"b","output_index":1,"content_index":0,"delta":"!"}"#,
            r#"{"type":"response.output_text.delta","item_id":"b","output_index":1,"content_index":0,"delta":"!"}"#,
        ),
    ];
    let (own, mended): (Vec<_>, Vec<_>) = events.into_iter().unzip();
    // The stream breaks off, which the last event says.
    assert_eq!(relayed_data(&own)[..mended.len()], mended);
}

/// GitHub Copilot gives the response and its items other ids in every event, and clients find an
/// item by its first id:
/// <https://github.com/vercel/ai/tree/main/packages/openai/src/responses/__fixtures__>.
#[test]
fn ids_that_change_are_replaced_by_the_first_ones() {
    let events = [
        (
            r#"{"type":"response.created","response":{"id":"r1"}}"#,
            r#"{"type":"response.created","response":{"output":[],"id":"r1"}}"#,
        ),
        (
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"a1"}}"#,
            r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"a1"}}"#,
        ),
        (
            r#"{"type":"response.content_part.added","output_index":0,"content_index":0,"item_id":"a2","part":{"type":"output_text","text":""}}"#,
            r#"{"type":"response.content_part.added","output_index":0,"content_index":0,"item_id":"a1","part":{"type":"output_text","text":""}}"#,
        ),
        (
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"a3","delta":"Hi"}"#,
            r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"a1","delta":"Hi"}"#,
        ),
        (
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"a4","type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#,
            r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"a1","type":"message","content":[{"type":"output_text","text":"Hi"}]}}"#,
        ),
        (
            r#"{"type":"response.completed","response":{"id":"r2","status":"completed","output":[{"type":"message","id":"a5","content":[{"type":"output_text","text":"Hi"}]}]}}"#,
            r#"{"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"type":"message","id":"a1","content":[{"type":"output_text","text":"Hi"}]}]}}"#,
        ),
    ];
    let (own, mended): (Vec<_>, Vec<_>) = events.into_iter().unzip();
    assert_eq!(relayed_data(&own), mended);
    // The item that is done is in the failure of a stream that breaks off, with its first id.
    let failure = relayed_data(&own[..5]).pop().unwrap();
    let failure: Value = serde_json::from_str(&failure).unwrap();
    assert_eq!(failure["response"]["output"][0]["id"], "a1");
    assert_eq!(failure["response"]["id"], "r1");
}

/// vLLM writes another `call_id` into the final output than into the events of a call, and once wrote
/// null as the id of a call that is done. A client sends the result of a call with the first one:
/// <https://github.com/vllm-project/vllm/pull/47916>,
/// <https://github.com/vllm-project/vllm/pull/44608>.
#[test]
fn a_call_keeps_its_first_ids() {
    let item = |ids: &str| {
        format!(
            r#"{{{ids},"type":"function_call","name":"f","arguments":"{{}}","status":"completed"}}"#
        )
    };
    let stream = |begun: &str, done: &str, last: &str| {
        let (begun, done, last) = (item(begun), item(done), item(last));
        [
            r#"{"type":"response.created","response":{"id":"r","output":[]}}"#.to_owned(),
            format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{begun}}}"#),
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{done}}}"#),
            format!(
                r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{last}]}}}}"#
            ),
        ]
    };
    let first = r#""id":"fc_1","call_id":"call_a""#;
    let unnamed = r#""id":"","call_id":"call_a""#;
    for (begun, done, last, mended) in [
        (
            first,
            first,
            r#""id":"fc_9","call_id":"call_f""#,
            stream(first, first, first),
        ),
        (
            unnamed,
            r#""id":null,"call_id":"fc_b""#,
            r#""id":"fc_9","call_id":"call_f""#,
            stream(unnamed, unnamed, unnamed),
        ),
        (
            first,
            r#""call_id":null"#,
            r#""id":"fc_9""#,
            stream(
                first,
                r#""id":"fc_1","call_id":"call_a""#,
                r#""call_id":"call_a","id":"fc_1""#,
            ),
        ),
    ] {
        let own = stream(begun, done, last);
        assert_eq!(relayed_data(&own.each_ref().map(String::as_str)), mended);
        // The call that is done is in the failure of a stream that breaks off, with its first ids.
        let failure = relayed_data(&own[..3].iter().map(String::as_str).collect::<Vec<_>>());
        let failure: Value = serde_json::from_str(failure.last().unwrap()).unwrap();
        let done: Value = serde_json::from_str(&mended[2]).unwrap();
        assert_eq!(failure["response"]["output"][0], done["item"]);
    }
}

/// The calls of the final output are found by their `call_id` if their ids have changed.
#[test]
fn calls_in_another_order_keep_their_call_ids() {
    let call = |id: &str, call_id: &str| {
        format!(
            r#"{{"id":"{id}","type":"function_call","call_id":"{call_id}","name":"f","arguments":"{{}}"}}"#
        )
    };
    let done = |index: usize, item: &str| {
        format!(r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#)
    };
    let end = |first: &str, second: &str| {
        format!(
            r#"{{"type":"response.completed","response":{{"status":"completed","output":[{first},{second}]}}}}"#
        )
    };
    let (a, b) = (call("fc_1", "call_a"), call("fc_2", "call_b"));
    let events = [
        r#"{"type":"response.created","response":{"output":[]}}"#.to_owned(),
        done(0, &a),
        done(1, &b),
        end(&call("fc_3", "call_b"), &call("fc_4", "call_a")),
    ];
    let out = relayed_data(&events.each_ref().map(String::as_str));
    assert_eq!(out.last(), Some(&end(&b, &a)));
}

/// SGLang numbers the next item before the done events of the last one, gives all items one id in
/// their events, and reasoning another id once it is done:
/// <https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/serving_responses.py>.
#[test]
fn done_events_with_the_next_index_get_that_of_their_item() {
    let thought = |id: &str| {
        format!(
            r#"{{"id":"{id}","type":"reasoning","content":[{{"type":"reasoning_text","text":"Hm."}}]}}"#
        )
    };
    let message = |id: &str| {
        format!(
            r#"{{"id":"{id}","type":"message","content":[{{"type":"output_text","text":"Hi!"}}]}}"#
        )
    };
    let stream = |late: [u64; 2], ids: [&str; 3]| {
        let [first, second] = late;
        let events = [
            r#"{"type":"response.created","response":{"id":"r","output":[]}}"#.to_owned(),
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"item_1","type":"reasoning"}}"#.to_owned(),
            r#"{"type":"response.reasoning_text.delta","output_index":0,"item_id":"item_1","content_index":0,"delta":"Hm."}"#.to_owned(),
            format!(r#"{{"type":"response.reasoning_text.done","output_index":{first},"item_id":"item_1","content_index":0,"text":"Hm."}}"#),
            format!(r#"{{"type":"response.output_item.done","output_index":{first},"item":{}}}"#, thought(ids[0])),
            r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"item_1","type":"message"}}"#.to_owned(),
            r#"{"type":"response.content_part.added","output_index":1,"item_id":"item_1","content_index":0,"part":{"type":"output_text","text":""}}"#.to_owned(),
            r#"{"type":"response.output_text.delta","output_index":1,"item_id":"item_1","content_index":0,"delta":"Hi"}"#.to_owned(),
            r#"{"type":"response.output_text.delta","output_index":1,"item_id":"item_1","content_index":0,"delta":"!"}"#.to_owned(),
            format!(r#"{{"type":"response.output_text.done","output_index":{second},"item_id":"item_1","content_index":0,"text":"Hi!"}}"#),
            format!(r#"{{"type":"response.content_part.done","output_index":{second},"item_id":"item_1","content_index":0,"part":{{"type":"output_text","text":"Hi!"}}}}"#),
            format!(r#"{{"type":"response.output_item.done","output_index":{second},"item":{}}}"#, message("item_1")),
            format!(r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{},{}]}}}}"#, thought(ids[1]), message(ids[2])),
        ];
        events.to_vec()
    };
    let own = stream([1, 2], ["rs_9", "rs_f", "msg_f"]);
    let own: Vec<_> = own.iter().map(String::as_str).collect();
    assert_eq!(relayed_data(&own), stream([0, 1], ["item_1"; 3]));
}

/// vLLM raises the index with each event of a text:
/// <https://github.com/vllm-project/vllm/pull/35184>. It announces thoughts as an `output_text`.
#[test]
fn a_part_has_one_index() {
    for (item, part, delta) in [
        ("message", "output_text", "output_text"),
        ("reasoning", "reasoning_text", "reasoning_text"),
    ] {
        let stream = |indexes: [u64; 4]| {
            let whole = format!(
                r#"{{"id":"a","type":"{item}","content":[{{"type":"{part}","text":"Old oak"}}]}}"#
            );
            let [first, second, third, fourth] = indexes;
            [
                r#"{"type":"response.created","response":{"id":"r","output":[]}}"#.to_owned(),
                format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{{"id":"a","type":"{item}","content":[]}}}}"#),
                r#"{"type":"response.content_part.added","output_index":0,"content_index":0,"item_id":"a","part":{"type":"output_text","text":""}}"#.to_owned(),
                format!(r#"{{"type":"response.{delta}.delta","output_index":0,"content_index":{first},"item_id":"a","delta":"Old"}}"#),
                format!(r#"{{"type":"response.{delta}.delta","output_index":0,"content_index":{second},"item_id":"a","delta":" oak"}}"#),
                format!(r#"{{"type":"response.{delta}.done","output_index":0,"content_index":{third},"item_id":"a","text":"Old oak"}}"#),
                format!(r#"{{"type":"response.content_part.done","output_index":0,"content_index":{fourth},"item_id":"a","part":{{"type":"output_text","text":"Old oak"}}}}"#),
                format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{whole}}}"#),
                format!(r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{whole}]}}}}"#),
            ]
        };
        let own = stream([1, 2, 3, 4]);
        assert_eq!(
            relayed_data(&own.each_ref().map(String::as_str)),
            stream([0; 4])
        );
    }
}

/// For models with the Harmony format vLLM does not count the parts of each item from 0, as clients
/// do: <https://github.com/vllm-project/vllm/issues/45742>.
#[test]
fn parts_of_an_item_are_counted_from_0() {
    let stream = |first: u64| {
        let event = |kind: &str, index: u64, rest: &str| {
            format!(
                r#"{{"type":"response.{kind}","output_index":0,"content_index":{index},"item_id":"a",{rest}}}"#
            )
        };
        let second = first + 1;
        let whole = r#"{"id":"a","type":"message","content":[{"type":"output_text","text":"Old"},{"type":"refusal","refusal":"No."}]}"#;
        vec![
            r#"{"type":"response.created","response":{"id":"r","output":[]}}"#.to_owned(),
            r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"a","type":"message","content":[]}}"#.to_owned(),
            event("content_part.added", first, r#""part":{"type":"output_text","text":""}"#),
            event("output_text.delta", first, r#""delta":"O""#),
            event("output_text.delta", first, r#""delta":"l""#),
            event("output_text.delta", first, r#""delta":"d""#),
            event("output_text.done", first, r#""text":"Old""#),
            event("content_part.done", first, r#""part":{"type":"output_text","text":"Old"}"#),
            event("content_part.added", second, r#""part":{"type":"refusal","refusal":""}"#),
            event("refusal.delta", second, r#""delta":"No.""#),
            event("refusal.done", second, r#""refusal":"No.""#),
            event("content_part.done", second, r#""part":{"type":"refusal","refusal":"No."}"#),
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{whole}}}"#),
            format!(r#"{{"type":"response.completed","response":{{"id":"r","status":"completed","output":[{whole}]}}}}"#),
        ]
    };
    let own = stream(1);
    let own: Vec<_> = own.iter().map(String::as_str).collect();
    assert_eq!(relayed_data(&own), stream(0));
}

/// Items of one number that take turns keep their ids, and get numbers of their own.
#[test]
fn ids_of_other_items_are_no_changes() {
    let events = [
        r#"{"type":"response.created","response":{"output":[],"id":"r"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"a"}}"#,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"b"}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"a","delta":"Hi"}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"b","delta":"Ho"}"#,
    ];
    let numbered = events.map(|event| match event.contains(r#""b""#) {
        true => event.replace(r#""output_index":0"#, r#""output_index":1"#),
        false => event.to_owned(),
    });
    assert_eq!(relayed_data(&events)[..events.len()], numbered);
}

/// The SDKs read the answer from the response at the end, which is empty in some servers.
#[test]
fn an_empty_output_at_the_end_gets_the_items_of_the_stream() {
    let item = r#"{"id":"b","type":"message","content":[{"type":"output_text","text":"Hi"}]}"#;
    let start = r#"{"type":"response.created","response":{"id":"r","output":[]}}"#;
    let done = format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item}}}"#);
    let end = |output: &str| {
        format!(
            r#"{{"type":"response.completed","response":{{{output}"id":"r","status":"completed"}}}}"#
        )
    };
    for own in ["", r#""output":[],"#] {
        let stream = [start, &done, &end(own)].map(|event| format!("data: {event}\n\n"));
        let (out, ended) = relayed(Responses::default(), "m", &[stream.concat().as_bytes()]);
        let out = String::from_utf8(out).unwrap();
        let data = out.lines().filter_map(|line| line.strip_prefix("data: "));
        let mended = end(&format!(r#""output":[{item}],"#));
        assert_eq!(data.collect::<Vec<_>>(), [start, &done, &mended]);
        assert!(!ended.unwrap().incomplete);
    }
}

/// Pictures of hosted image generation are repaired wherever a client reads them.
#[test]
fn pictures_are_in_standard_base64() {
    let picture = strategies::PNG;
    let written = format!("data:image/png;base64,{}", picture.trim_end_matches('='));
    let item = |base64: &str| json!({"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": base64});
    let response = |output: Value| json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m", "output": output});
    let events = |base64: &str| {
        [
            json!({"type": "response.created", "sequence_number": 0, "response": response(json!([]))}),
            json!({"type": "response.output_item.added", "sequence_number": 1, "output_index": 0,
                "item": {"id": "ig_1", "type": "image_generation_call", "status": "in_progress", "result": null}}),
            json!({"type": "response.image_generation_call.partial_image", "sequence_number": 2, "output_index": 0,
                "item_id": "ig_1", "partial_image_index": 0, "partial_image_b64": base64}),
            json!({"type": "response.output_item.done", "sequence_number": 3, "output_index": 0, "item": item(base64)}),
            json!({"type": "response.completed", "sequence_number": 4, "response": response(json!([item(base64)]))}),
        ]
    };
    let sent = events(&written).map(|event| event.to_string());
    let got = relayed_data(&sent.each_ref().map(String::as_str));
    let got: Vec<Value> = got
        .iter()
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    assert_eq!(got, events(picture));

    let reply = |base64: &str| response(json!([item(base64)]));
    let (body, _) =
        sluicegate_relay::reply::<Responses>(reply(&written).to_string().as_bytes(), "m").unwrap();
    assert_eq!(
        serde_json::from_slice::<Value>(&body).unwrap(),
        reply(picture)
    );
    let other = reply("no picture");
    let (body, _) =
        sluicegate_relay::reply::<Responses>(other.to_string().as_bytes(), "m").unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap(), other);
}
