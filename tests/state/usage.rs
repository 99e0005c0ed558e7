//! Rows of usage: one for each request that a permit was taken for, with the usage of the request.

use serde_json::{Value, json};
use simulator::{Cut, Play, Protocol, Request as Asked, Simulator, honest};
use testkit::reading::Reading;
use testkit::requests::{PROTOCOLS, RED, TEXT_PROTOCOLS, ask, protocol_name, request};
use testkit::usage::{count, edited};
use testkit::{CLIENT_KEY, Config, Connection, Gateway, Request};

use crate::GATEWAY;
use crate::store::{Row, Store, Tokens};

/// A gateway with a store, in front of an upstream of each protocol.
fn gateway(behave: impl Fn(&Asked) -> Play + Send + Sync + 'static) -> (Gateway, Simulator, Store) {
    let simulator = Simulator::start(behave).unwrap();
    let store = Store::new();
    let config = Config::before(&simulator, "", "").section(&store.settings());
    (config.start(GATEWAY), simulator, store)
}

/// The clients that can use an upstream of this protocol.
fn clients(upstream: Protocol) -> Vec<Protocol> {
    match upstream {
        Protocol::Images => vec![Protocol::Images],
        _ => TEXT_PROTOCOLS.to_vec(),
    }
}

/// The tokens that an upstream of each protocol reports, as a row has them.
pub(crate) fn reported(upstream: Protocol) -> Tokens {
    match upstream {
        // 1,101 of the prompt with 600 from the cache.
        Protocol::Responses => Tokens {
            input: 501,
            cache_read: 600,
            cache_write: 0,
            cache_write_1h: 0,
            output: 211,
            reasoning: 100,
        },
        // 1,303 of the prompt with 1,024 from the cache.
        Protocol::Chat => Tokens {
            input: 279,
            cache_read: 1024,
            cache_write: 0,
            cache_write_1h: 0,
            output: 317,
            reasoning: 64,
        },
        // The protocol counts them apart.
        Protocol::Messages => Tokens {
            input: 1000,
            cache_read: 207,
            cache_write: 30,
            cache_write_1h: 0,
            output: 419,
            reasoning: 0,
        },
        Protocol::Images => Tokens {
            input: 523,
            output: 6272,
            ..Tokens::default()
        },
    }
}

/// The name of the endpoint in the log and in rows.
fn route(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Responses => "responses",
        Protocol::Chat => "chat_completions",
        Protocol::Messages => "messages",
        Protocol::Images => "image_generations",
    }
}

#[test]
fn every_request_has_a_row_with_the_reported_tokens() {
    for upstream in PROTOCOLS {
        let (gateway, _simulator, store) = gateway(|asked| edited(asked, count));
        let mut sent = 0;
        for client in clients(upstream) {
            for stream in [false, true] {
                let model = protocol_name(upstream);
                let response = gateway.ask(client, &ask(client, model, "Hello.", stream));
                assert_eq!(response.status, 200, "{}", response.text());
                sent += 1;
                let row = store.row(&gateway, &response);
                let expected = Row {
                    id: row.id.clone(),
                    state: "closed".to_owned(),
                    replica: "gate-1".to_owned(),
                    key: "tests".to_owned(),
                    route: route(client).to_owned(),
                    model: model.to_owned(),
                    outcome: "completed".to_owned(),
                    status: 200,
                    target: Some(model.to_owned()),
                    tokens: reported(upstream),
                    pictures: i64::from(upstream == Protocol::Images),
                    cost: None,
                    service_tier: None,
                    missing_prices: None,
                };
                assert_eq!(row, expected, "{client:?} stream: {stream}");
                assert_eq!(store.rows().len(), sent);
            }
        }
    }
}

/// A gateway whose upstreams have this usage at the end of their replies and streams.
fn reporting(usage: Value) -> (Gateway, Simulator, Store) {
    gateway(move |asked| {
        edited(asked, |_, document| {
            let is_last = document["type"] != "message_start" && document["usage"].is_object();
            if is_last {
                document["usage"] = usage.clone();
            }
            count_start(document);
            true
        })
    })
}

/// Puts the counts of a prompt at the start of a stream of Messages.
fn count_start(document: &mut Value) {
    if let Some(usage) = document.pointer_mut("/message/usage") {
        *usage = json!({"input_tokens": 1500, "cache_read_input_tokens": 8000, "output_tokens": 1});
    }
}

/// Servers spell their counts in their own ways: the row has the same for each client.
#[test]
fn rows_have_settled_counts_of_each_spelling() {
    let sums = |prompt: u64, completion: u64, total: u64, more: Value| {
        let mut usage = json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total});
        usage
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        usage
    };
    let tokens = |input, cache_read, cache_write, output, reasoning| Tokens {
        input,
        cache_read,
        cache_write,
        cache_write_1h: 0,
        output,
        reasoning,
    };
    for (usage, expected) in [
        // <https://github.com/vercel/ai/issues/12425>
        (
            sums(
                100,
                10,
                410,
                json!({"completion_tokens_details": {"reasoning_tokens": 300}}),
            ),
            tokens(100, 0, 0, 310, 300),
        ),
        // <https://api-docs.deepseek.com/guides/kv_cache>
        (
            sums(
                1000,
                10,
                1010,
                json!({"prompt_cache_hit_tokens": 960, "prompt_cache_miss_tokens": 40}),
            ),
            tokens(40, 960, 0, 10, 0),
        ),
        // <https://openrouter.ai/docs/use-cases/usage-accounting>
        (
            sums(
                1000,
                10,
                1010,
                json!({"prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 800}}),
            ),
            tokens(100, 100, 800, 10, 0),
        ),
        // <https://platform.moonshot.ai/docs/api/chat>
        (
            sums(1700, 12, 1712, json!({"cached_tokens": 1664})),
            tokens(36, 1664, 0, 12, 0),
        ),
    ] {
        let (gateway, _simulator, store) = reporting(usage);
        for client in TEXT_PROTOCOLS {
            for stream in [false, true] {
                let response = gateway.ask(client, &ask(client, "chat", "Hello.", stream));
                let row = store.row(&gateway, &response);
                assert_eq!(row.tokens, expected, "{client:?} stream: {stream}");
                let seen = Reading::of_response(client, &response).usage.unwrap();
                let input = expected.input + expected.cache_read + expected.cache_write;
                let sums = [input, expected.output].map(i64::unsigned_abs);
                assert_eq!(seen.totals(), sums, "{client:?} stream: {stream}");
            }
        }
    }
}

/// <https://github.com/envoyproxy/ai-gateway/issues/1631>
#[test]
fn zeros_at_the_end_of_a_stream_leave_its_counts() {
    let zeros = json!({"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 20});
    let (gateway, _simulator, store) = reporting(zeros);
    for client in TEXT_PROTOCOLS {
        let response = gateway.ask(client, &ask(client, "messages", "Hello.", true));
        let tokens = store.row(&gateway, &response).tokens;
        assert_eq!(
            (tokens.input, tokens.cache_read, tokens.output),
            (1500, 8000, 20)
        );
        let seen = Reading::of_response(client, &response).usage.unwrap();
        assert_eq!(seen.totals(), [9500, 20], "{client:?}");
    }
}

/// Without a permit there is no row: requests that are refused before, or by a limit.
#[test]
fn a_request_that_takes_no_permit_has_no_row() {
    let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
    let store = Store::new();
    let gateway = Config::before(&simulator, "", "")
        .section(&store.settings())
        .quota("models = [\"messages\"]\nrequests_per_minute = 1")
        .start(GATEWAY);
    let hello = |protocol| ask(protocol, protocol_name(protocol), "Hello.", false);
    let stranger = Request::post("/v1/chat/completions", &hello(Protocol::Chat)).bearer("sg_no");
    assert_eq!(stranger.send(gateway.address()).status, 401);
    let empty = json!({"model": "chat", "messages": []});
    assert_eq!(gateway.ask(Protocol::Chat, &empty).status, 400);
    let unknown = ask(Protocol::Chat, "nobody", "Hello.", false);
    assert_eq!(gateway.ask(Protocol::Chat, &unknown).status, 404);
    let models = Request::get("/v1/models").bearer(CLIENT_KEY);
    assert_eq!(models.send(gateway.address()).status, 200);
    let first = gateway.ask(Protocol::Messages, &hello(Protocol::Messages));
    assert_eq!(first.status, 200, "{}", first.text());
    let second = gateway.ask(Protocol::Messages, &hello(Protocol::Messages));
    assert_eq!(second.status, 429);
    // Rows are stored in the order of the admissions.
    let last = gateway.ask(Protocol::Chat, &hello(Protocol::Chat));
    store.row(&gateway, &last);
    let models: Vec<_> = store.rows().into_iter().map(|row| row.model).collect();
    assert_eq!(models, ["messages", "chat"]);
}

/// An upstream that fails has used nothing, and neither has a count of tokens.
#[test]
fn unanswered_requests_have_no_tokens() {
    let (gateway, _simulator, store) = gateway(|asked| {
        if asked.path.ends_with("/count_tokens") {
            return honest::answer(asked);
        }
        Play::json(
            500,
            &json!({"error": {"message": "No.", "type": "server_error"}}),
        )
    });
    for stream in [false, true] {
        let body = ask(Protocol::Chat, "chat", "Hello.", stream);
        let response = gateway.ask(Protocol::Chat, &body);
        assert_eq!(response.status, 502, "{}", response.text());
        let row = store.row(&gateway, &response);
        assert_eq!(row.outcome, "upstream_error");
        assert_eq!((row.status, row.tokens), (502, Tokens::default()));
    }
    let mut body = ask(Protocol::Messages, "messages", "Hello.", false);
    body.as_object_mut().unwrap().remove("max_tokens");
    let counted = Request::post("/v1/messages/count_tokens", &body).bearer(CLIENT_KEY);
    let response = counted.send(gateway.address());
    assert_eq!(response.status, 200, "{}", response.text());
    let row = store.row(&gateway, &response);
    assert_eq!(row.outcome, "completed");
    assert_eq!((row.status, row.tokens), (200, Tokens::default()));
}

/// A client that leaves a stream is charged for its prompt, as estimated, and for the sent output.
#[test]
fn client_leaving_a_stream_is_charged_for_sent_tokens() {
    let (gateway, _simulator, store) =
        gateway(|asked| honest::answer(asked).cut_after(6, Cut::Hold));
    let body = ask(Protocol::Chat, "chat", "Please count to 60.", true);
    let mut connection = Connection::open(gateway.address());
    connection.send(request(Protocol::Chat, &body).bytes());
    connection.head().unwrap();
    let mut events = 0;
    while events < 6 {
        let chunk = connection.chunk().unwrap();
        events += String::from_utf8(chunk).unwrap().matches("data: ").count();
    }
    drop(connection);
    let row = store.ended(1).remove(0);
    assert_eq!((row.outcome.as_str(), row.status), ("client_gone", 499));
    let expected = Tokens {
        input: PROMPT,
        output: 6,
        ..Tokens::default()
    };
    assert_eq!(row.tokens, expected, "{body}");
}

/// Nobody knows how far the model was: the client is charged for all that was reserved, so that
/// leaving early saves nothing.
#[test]
fn client_leaving_a_plain_request_is_charged_its_reservation() {
    let (gateway, simulator, store) = gateway(|_| Play::new().hold());
    let mut body = ask(Protocol::Chat, "chat", "Please count to 60.", false);
    body["max_completion_tokens"] = json!(700);
    let mut connection = Connection::open(gateway.address());
    connection.send(request(Protocol::Chat, &body).bytes());
    assert!(simulator.wait_for_requests(1, testkit::GUARD));
    drop(connection);
    let row = store.ended(1).remove(0);
    assert_eq!((row.outcome.as_str(), row.status), ("client_gone", 499));
    assert_eq!(row.tokens.output, 700);
    assert_eq!(row.target, None);
}

/// A process that ends in order has no open row and no journal left.
#[test]
fn a_shutdown_leaves_nothing_in_the_journal() {
    let (mut gateway, _simulator, store) = gateway(|asked| edited(asked, count));
    for _ in 0..20 {
        let body = ask(Protocol::Chat, "chat", "Hello.", false);
        assert_eq!(gateway.ask(Protocol::Chat, &body).status, 200);
    }
    gateway.signal("TERM");
    assert!(gateway.wait().success());
    let states: Vec<String> = store.column("SELECT DISTINCT state FROM usage");
    assert_eq!(states, ["closed"]);
    assert_eq!(store.rows().len(), 20);
    assert_eq!(store.number("SELECT count(*) FROM shipped"), 0);
    let journal = store.folder().join("accounting.db.journal");
    let left = std::fs::read_dir(journal).unwrap();
    let left: Vec<_> = left.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"]);
}

/// The pictures of a request are those that it asked for, as JSON or as an edit.
#[test]
fn pictures_are_counted() {
    let (gateway, _simulator, store) = gateway(|asked| edited(asked, count));
    let red = format!("data:image/png;base64,{RED}");
    let two = json!({"model": "images", "prompt": "Two boats.", "n": 2});
    let edit = json!({"model": "images", "prompt": "A sail.", "images": [{"image_url": red}]});
    let send = |path: &str, body: &Value| {
        let request = Request::post(path, body).bearer(CLIENT_KEY);
        let response = request.send(gateway.address());
        assert_eq!(response.status, 200, "{}", response.text());
        let row = store.row(&gateway, &response);
        (row.route, row.pictures)
    };
    let generated = send("/v1/images/generations", &two);
    assert_eq!(generated, ("image_generations".to_owned(), 2));
    let edited = send("/v1/images/edits", &edit);
    assert_eq!(edited, ("image_edits".to_owned(), 1));
}

/// The tokens of the prompt as the gateway estimates them: the body without its quotation marks has
/// 111 bytes, and each 3.5 of them count as one.
const PROMPT: i64 = 32;
