//! The charge of requests that do not end in order.

use serde_json::{Value, json};
use simulator::{Play, Protocol, Request as Asked, Simulator};
use testkit::requests::{RED, TEXT_PROTOCOLS, ask, protocol_name, request};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request, Response};

use crate::GATEWAY;
use crate::store::{Row, Store, Tokens};

/// A gateway with a store and these limits and sections, in front of an upstream of each protocol.
struct House {
    gateway: Gateway,
    _simulator: Simulator,
    store: Store,
}

impl House {
    fn new(
        limits: &str,
        sections: &str,
        behave: impl Fn(&Asked) -> Play + Send + Sync + 'static,
    ) -> Self {
        let simulator = Simulator::start(behave).unwrap();
        let store = Store::new();
        let settings = [&store.settings(), sections].concat();
        let gateway = Config::before(&simulator, limits, "")
            .section(&settings)
            .start(GATEWAY);
        Self {
            gateway,
            _simulator: simulator,
            store,
        }
    }

    fn ask(&self, protocol: Protocol, body: &Value) -> (Response, Row) {
        let response = self.gateway.ask(protocol, body);
        let row = self.store.row(&self.gateway, &response);
        (response, row)
    }

    /// Sends a request for a stream, leaves when this text has come, and returns its row.
    fn leave(&self, client: Protocol, body: &Value, until: &str) -> Row {
        let mut connection = Connection::open(self.gateway.address());
        connection.send(request(client, body).bytes());
        connection.head().unwrap();
        let mut text = String::new();
        while !text.contains(until) {
            text += &String::from_utf8(connection.chunk().unwrap()).unwrap();
        }
        drop(connection);
        self.store.ended(1).remove(0)
    }
}

fn event(name: &str, data: &Value) -> String {
    match name {
        "" => format!("data: {data}\n\n"),
        name => format!("event: {name}\ndata: {data}\n\n"),
    }
}

/// The beginning of a stream of Messages that has reported its prompt, with a thought, a text and a call.
fn begun_message() -> Play {
    let delta = |index, delta: Value| {
        let data = json!({"type": "content_block_delta", "index": index, "delta": delta});
        event("content_block_delta", &data)
    };
    let block = |index, block: Value| {
        let data = json!({"type": "content_block_start", "index": index, "content_block": block});
        event("content_block_start", &data)
    };
    let usage = json!({"input_tokens": 200, "cache_read_input_tokens": 50_000,
        "cache_creation_input_tokens": 1_000, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "up", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage});
    let stop = |index| {
        let data = json!({"type": "content_block_stop", "index": index});
        event("content_block_stop", &data)
    };
    let call = json!({"type": "tool_use", "id": "t", "name": "find", "input": {}});
    [
        event(
            "message_start",
            &json!({"type": "message_start", "message": message}),
        ),
        block(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        delta(
            0,
            json!({"type": "thinking_delta", "thinking": "t".repeat(3_500)}),
        ),
        stop(0),
        block(1, json!({"type": "text", "text": ""})),
        delta(1, json!({"type": "text_delta", "text": "x".repeat(3_500)})),
        stop(1),
        block(2, call),
        delta(
            2,
            json!({"type": "input_json_delta", "partial_json": "{\"a\":\""}),
        ),
        delta(
            2,
            json!({"type": "input_json_delta", "partial_json": format!("{}!", "y".repeat(3_500))}),
        ),
    ]
    .into_iter()
    .fold(Play::stream(), Play::body)
}

/// Usage that was reported before the end is charged, and the rest by the length of all content:
/// about 1,000 tokens each of thoughts, text and arguments.
#[test]
fn reported_prompt_is_charged_at_any_end() {
    let ends: [fn(Play) -> Play; 2] = [Play::hold, Play::close];
    for (n, end) in ends.into_iter().enumerate() {
        for client in TEXT_PROTOCOLS {
            let house = House::new("", "", move |_| end(begun_message()));
            let body = ask(client, "messages", "Hello.", true);
            let row = match n {
                0 => house.leave(client, &body, "y!"),
                _ => house.ask(client, &body).1,
            };
            let Tokens {
                input,
                cache_read,
                cache_write,
                output,
                ..
            } = row.tokens;
            assert_eq!(
                (input, cache_read, cache_write),
                (200, 50_000, 1_000),
                "{client:?} {n}"
            );
            assert!((3_000..3_050).contains(&output), "{client:?} {n}: {output}");
        }
    }
}

/// A few long events hold as many tokens as many short ones.
#[test]
fn long_events_are_charged_by_their_length() {
    for client in TEXT_PROTOCOLS {
        let house = House::new("", "", |_| {
            let chunk = |text: &str| {
                let data = json!({"id": "c", "object": "chat.completion.chunk", "created": 1,
                    "model": "up", "choices": [{"index": 0, "delta": {"content": text},
                    "finish_reason": null}]});
                event("", &data)
            };
            let texts = ["a", "b", "c", "d"].map(|text| chunk(&text.repeat(7_000)));
            let events = texts.into_iter().chain([chunk("last")]);
            events.fold(Play::stream(), Play::body).hold()
        });
        let row = house.leave(client, &ask(client, "chat", "Hello.", true), "last");
        assert_eq!(row.tokens.output, 8_002, "{client:?}");
    }
}

/// A reply that the gateway rejects was billed all the same.
#[test]
fn rejected_reply_is_charged_with_its_usage() {
    let reply = |asked: &Asked| {
        let body = match asked.protocol() {
            Some(Protocol::Chat) => json!({"id": "c", "object": "chat.completion", "created": 1,
                "model": "up", "choices": [{"index": 0, "finish_reason": "error",
                "message": {"role": "assistant", "content": "Hel"}}],
                "usage": {"prompt_tokens": 6_000, "completion_tokens": 900, "total_tokens": 6_900}}),
            Some(Protocol::Messages) => json!({"id": "m", "type": "message", "role": "assistant",
                "model": "up", "content": [{"type": "text", "text": "Hel"}], "stop_reason": "error",
                "usage": {"input_tokens": 6_000, "output_tokens": 900}}),
            _ => json!({"id": "r", "object": "response", "created_at": 1, "model": "up",
                "status": "failed", "output": [], "error": {"code": "server_error", "message": "No."},
                "usage": {"input_tokens": 6_000, "output_tokens": 900, "total_tokens": 6_900}}),
        };
        Play::json(200, &body)
    };
    for client in TEXT_PROTOCOLS {
        for upstream in TEXT_PROTOCOLS {
            let house = House::new("", "", reply);
            let body = ask(client, protocol_name(upstream), "Hello.", false);
            let (response, row) = house.ask(client, &body);
            assert_eq!(response.status, 502, "{client:?} {upstream:?}");
            let expected = Tokens {
                input: 6_000,
                output: 900,
                ..Tokens::default()
            };
            assert_eq!(row.tokens, expected, "{client:?} {upstream:?}");
        }
    }
}

/// The same for a reply that has no pictures.
#[test]
fn rejected_reply_without_pictures_is_charged_with_its_usage() {
    for stream in [false, true] {
        let usage = json!({"input_tokens": 50, "output_tokens": 1_000, "total_tokens": 1_050});
        let reply = json!({"created": 1, "data": [], "usage": usage});
        let house = House::new("", PICTURES, move |_| Play::json(200, &reply));
        let body = json!({"model": "images", "prompt": "A boat.", "stream": stream});
        let (response, row) = house.ask(Protocol::Images, &body);
        assert_eq!(response.status, 502, "{}", response.text());
        assert_eq!((row.tokens.input, row.tokens.output), (50, 1_000));
        assert_eq!(row.pictures, 0);
    }
}

/// A rejected reply and the answer of the next target were both billed, each at its price.
#[test]
fn request_that_failed_over_is_charged_for_both() {
    let rejected = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "a",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ""},
        "finish_reason": "error"}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 10, "total_tokens": 1_010}});
    let answered = json!({"id": "c", "object": "chat.completion", "created": 1, "model": "b",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."},
        "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 20, "total_tokens": 1_020}});
    let simulator = Simulator::start(move |asked| match asked.model().as_str() {
        "a" => Play::json(200, &rejected),
        _ => Play::json(200, &answered),
    })
    .unwrap();
    let store = Store::new();
    let prices = r#"
[[prices]]
model = "m"
input = "1"
output = "1"
[[prices]]
model = "b"
input = "1000"
output = "1000"
"#;
    let targets = r#"[{ upstream = "u", model = "a" }, { upstream = "u", model = "b" }]"#;
    let gateway = Config::new("")
        .keyless("u", Protocol::Chat, &simulator.base_url())
        .model("m", Protocol::Chat, targets)
        .section(&store.settings())
        .section(prices)
        .start(GATEWAY);
    let response = gateway.ask(Protocol::Chat, &ask(Protocol::Chat, "m", "Hello.", false));
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["usage"]["completion_tokens"], 20);
    let row = store.row(&gateway, &response);
    assert_eq!((row.tokens.input, row.tokens.output), (2_000, 30));
    // 1,010 × 1,000 + 1,020 × 1,000,000
    assert_eq!(row.cost, Some(1_021_010_000));
}

/// The model may still work on it, as for a client that leaves.
#[test]
fn request_without_an_answer_in_time_costs_its_reservation() {
    for client in TEXT_PROTOCOLS {
        let house = House::new("request_timeout = \"300ms\"", "", |_| Play::new().hold());
        let mut body = ask(client, protocol_name(client), "Hello.", false);
        let limit = match client {
            Protocol::Responses => "max_output_tokens",
            _ => "max_tokens",
        };
        body[limit] = json!(700);
        let (response, row) = house.ask(client, &body);
        assert_eq!(response.status, 504, "{}", response.text());
        assert_eq!(row.tokens.output, 700, "{client:?}");
        assert!(row.tokens.input > 0, "{client:?}");
    }
}

const PICTURES: &str = r#"
[[prices]]
model = "images"
input = "0"
output = "0"
pictures = [
  { size = "1024x1024", quality = "low", price = "0.01" },
  { size = "1024x1024", price = "0.10" },
  { price = "0.25" },
]
"#;

fn picture() -> String {
    RED.to_owned()
}

/// The properties of the reply decide on the price, as far as it states them, and the number of its
/// pictures.
#[test]
fn pictures_cost_what_the_reply_states() {
    let cost = |stated: Value, asked: Value| {
        let house = House::new("", PICTURES, move |_| {
            let mut reply = json!({"created": 1, "data": [{"b64_json": picture()}]});
            let fields = stated.as_object().unwrap().clone();
            reply.as_object_mut().unwrap().extend(fields);
            Play::json(200, &reply)
        });
        let mut body = json!({"model": "images", "prompt": "A boat."});
        let fields = asked.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(fields);
        let (response, row) = house.ask(Protocol::Images, &body);
        assert_eq!(response.status, 200, "{}", response.text());
        assert_eq!(row.pictures, 1);
        row.cost
    };
    let low = json!({"size": "1024x1024", "quality": "low"});
    let auto = json!({"size": "auto", "quality": "auto"});
    assert_eq!(cost(low.clone(), auto.clone()), Some(10_000_000));
    assert_eq!(
        cost(low.clone(), json!({"quality": "high"})),
        Some(10_000_000)
    );
    // Members that the reply leaves out are taken from the request.
    assert_eq!(cost(json!({}), low), Some(10_000_000));
    assert_eq!(
        cost(json!({"size": "1024x1024"}), auto.clone()),
        Some(100_000_000)
    );
    // Nobody knows: as much as the dearest.
    assert_eq!(cost(json!({}), auto), Some(250_000_000));
}

fn partial() -> String {
    let data = json!({"type": "image_generation.partial_image", "partial_image_index": 0,
        "b64_json": picture(), "created_at": 1, "size": "1024x1024", "quality": "low",
        "background": "opaque", "output_format": "png"});
    event("image_generation.partial_image", &data)
}

fn stream_body() -> Value {
    json!({"model": "images", "prompt": "A boat.", "n": 2, "stream": true, "partial_images": 1,
        "size": "1024x1024", "quality": "low"})
}

/// Pictures that never came cost nothing, unless the client has left them.
#[test]
fn failed_stream_of_pictures_costs_the_delivered_ones() {
    let completed = json!({"type": "image_generation.completed", "b64_json": picture(), "created_at": 1,
        "size": "1024x1024", "quality": "low", "background": "opaque", "output_format": "png",
        "usage": {"input_tokens": 50, "output_tokens": 272, "total_tokens": 322}});
    let completed = event("image_generation.completed", &completed);
    let failure = json!({"type": "error", "error": {"type": "image_generation_user_error",
        "code": "moderation_blocked", "message": "No."}});
    for (complete, pictures, cost) in [(false, 0, 0), (true, 1, 10_000_000)] {
        let (completed, failure) = (completed.clone(), event("error", &failure));
        let house = House::new("", PICTURES, move |_| {
            let play = Play::stream().body(partial());
            let play = match complete {
                true => play.body(completed.clone()),
                false => play,
            };
            play.body(failure.clone()).close()
        });
        let (_, row) = house.ask(Protocol::Images, &stream_body());
        assert_eq!((row.pictures, row.cost), (pictures, Some(cost)));
        assert_eq!(row.tokens.output, if complete { 272 } else { 0 });
    }
    let house = House::new("", PICTURES, |_| Play::stream().body(partial()).hold());
    let row = house.leave(Protocol::Images, &stream_body(), "partial_image_index");
    assert_eq!((row.pictures, row.cost), (2, Some(20_000_000)));
}

/// Pictures that are billed by their tokens reserve those, with their previews.
#[test]
fn tokens_of_pictures_are_charged_if_the_client_leaves() {
    let by_tokens = "[[prices]]\nmodel = \"images\"\ninput = \"5\"\noutput = \"40\"\n";
    let house = House::new("", by_tokens, |_| Play::stream().body(partial()).hold());
    let row = house.leave(Protocol::Images, &stream_body(), "partial_image_index");
    // Two pictures of 272 tokens with a preview of 100 each, and a prompt of 7 bytes.
    assert_eq!((row.tokens.input, row.tokens.output), (2, 744));
    assert_eq!(row.cost, Some(2 * 5_000 + 744 * 40_000));
}

/// The usage of a response in the background is charged once, when it is first known.
#[test]
fn background_response_is_charged_when_it_is_retrieved() {
    let response = |status: &str, usage: Value| {
        json!({"id": "resp_1", "object": "response", "created_at": 1, "model": "up",
            "status": status, "output": [], "background": true, "usage": usage})
    };
    let usage = json!({"input_tokens": 70_000, "output_tokens": 9_000, "total_tokens": 79_000});
    let polls = std::sync::atomic::AtomicU32::new(0);
    let simulator = Simulator::start(move |asked| {
        let polls = match &*asked.method {
            "GET" => polls.fetch_add(1, std::sync::atomic::Ordering::SeqCst),
            _ => 0,
        };
        match polls {
            0 => Play::json(200, &response("queued", Value::Null)),
            _ => Play::json(200, &response("completed", usage.clone())),
        }
    })
    .unwrap();
    let store = Store::new();
    let model = "[[models]]\nid = \"m\"\nfamily = \"text\"\nprotocols = [\"responses\"]\n\
        allow = [\"background\", \"store\"]\ntargets = [{ upstream = \"u\" }]\n\
        [[prices]]\nmodel = \"m\"\ninput = \"1\"\noutput = \"10\"\n\
        [[quotas]]\nconcurrency = 1\nbudget = { amount = \"1.00\", currency = \"USD\", window = \"month\" }\n";
    let gateway = Config::new("")
        .keyless("u", Protocol::Responses, &simulator.base_url())
        .section(&store.settings())
        .section(model)
        .start(GATEWAY);
    let body = json!({"model": "m", "background": true, "store": true, "max_output_tokens": 90_000,
        "input": [{"role": "user", "content": "Hello."}]});
    let response = gateway.ask(Protocol::Responses, &body);
    assert_eq!(response.status, 200, "{}", response.text());
    // Its permit is free, and its reservation of 0.90 stays.
    let refused = gateway.ask(Protocol::Responses, &body);
    assert_eq!(refused.status, 429, "{}", refused.text());
    let get = || {
        let request = Request::get("/v1/responses/resp_1").bearer(CLIENT_KEY);
        let response = request.send(gateway.address());
        assert_eq!(response.status, 200, "{}", response.text());
        store.row(&gateway, &response)
    };
    for _ in 0..3 {
        assert_eq!(get().tokens, Tokens::default());
    }
    let row = store.row(&gateway, &response);
    assert_eq!((row.tokens.input, row.tokens.output), (70_000, 9_000));
    // 70,000 × 1,000 + 9,000 × 10,000
    assert_eq!(row.cost, Some(160_000_000));
    assert_eq!(store.number("SELECT sum(input) FROM usage"), 70_000);
}
