//! Costs of requests, against sums done by hand.

use serde_json::{Value, json};
use simulator::{Protocol, Simulator};
use testkit::errors::ERRORS;
use testkit::requests::{PROTOCOLS, TEXT_PROTOCOLS, ask, protocol_name};
use testkit::usage::{PLACES, count, edited};
use testkit::{Config, Gateway, Request, Response, TEXT};

use crate::GATEWAY;
use crate::store::{Row, Store};

/// A gateway with these tables, in front of an upstream of each protocol whose replies have
/// different kinds of tokens.
struct Till {
    gateway: Gateway,
    simulator: Simulator,
    store: Store,
}

impl Till {
    fn new(tables: &str, state: &str) -> Self {
        let simulator = Simulator::start(|asked| edited(asked, count)).unwrap();
        Self::before(simulator, tables, state)
    }

    fn before(simulator: Simulator, tables: &str, state: &str) -> Self {
        let store = Store::new();
        let settings = [&store.settings(), state, "\n", tables].concat();
        let config = Config::before(&simulator, "", "").section(&settings);
        let gateway = config.key(OTHER_KEY).start(GATEWAY);
        Self {
            gateway,
            simulator,
            store,
        }
    }

    /// The cost of a request to a model of the client's protocol, in billionths.
    #[track_caller]
    fn cost(&self, client: Protocol, stream: bool) -> Option<i64> {
        self.cost_of(
            client,
            &ask(client, protocol_name(client), "Hello.", stream),
        )
    }

    #[track_caller]
    fn cost_of(&self, client: Protocol, body: &Value) -> Option<i64> {
        self.row(client, body).cost
    }

    #[track_caller]
    fn row(&self, client: Protocol, body: &Value) -> Row {
        let response = self.gateway.ask(client, body);
        assert_eq!(response.status, 200, "{}", response.text());
        self.store.row(&self.gateway, &response)
    }

    /// Sends a request with the other key.
    fn other(&self) -> Response {
        let body = ask(Protocol::Chat, "chat", "Hello.", false);
        let request = Request::post("/v1/chat/completions", &body).bearer(TEXT);
        request.send(self.gateway.address())
    }
}

/// Tokens at 2, from the cache at 0.50, to the cache at 2.50, of answers at 8 and of reasoning at 10
/// units a million: 2,000, 500, 2,500, 8,000 and 10,000 billionths each.
fn costs_by_kind(protocol: Protocol) -> i64 {
    match protocol {
        // 501 × 2,000 + 600 × 500 + (211 − 100) × 8,000 + 100 × 10,000
        // = 1,002,000 + 300,000 + 888,000 + 1,000,000
        Protocol::Responses => 3_190_000,
        // 279 × 2,000 + 1,024 × 500 + (317 − 64) × 8,000 + 64 × 10,000
        // = 558,000 + 512,000 + 2,024,000 + 640,000
        Protocol::Chat => 3_734_000,
        // 1,000 × 2,000 + 207 × 500 + 30 × 2,500 + 419 × 8,000
        // = 2,000,000 + 103,500 + 75,000 + 3,352,000
        Protocol::Messages => 5_530_500,
        // 523 × 2,000 + 6,272 × 8,000 = 1,046,000 + 50,176,000
        Protocol::Images => 51_222_000,
    }
}

#[test]
fn every_kind_of_token_has_its_price() {
    let till = Till::new(BY_KIND, "");
    for protocol in PROTOCOLS {
        for stream in [false, true] {
            let cost = till.cost(protocol, stream);
            assert_eq!(cost, Some(costs_by_kind(protocol)), "{protocol:?}");
        }
    }
    // The price of the model applies, whatever the protocol of its client.
    for upstream in TEXT_PROTOCOLS {
        let body = ask(Protocol::Responses, protocol_name(upstream), "Hello.", true);
        let cost = till.cost_of(Protocol::Responses, &body);
        assert_eq!(cost, Some(costs_by_kind(upstream)));
    }
}

/// Anthropic's prices of writes for five minutes and for an hour are 1.25 and 2 times the input:
/// <https://docs.anthropic.com/en/docs/build-with-claude/prompt-caching#pricing>.
#[test]
fn writes_for_an_hour_have_their_own_price() {
    let usage = json!({"input_tokens": 0, "cache_creation_input_tokens": 1_000_000, "output_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 400_000, "ephemeral_1h_input_tokens": 600_000}});
    for (price, cost) in [
        // 400,000 × 2,500 + 600,000 × 4,000
        ("", 3_400_000_000),
        // 400,000 × 2,500 + 600,000 × 3,000
        ("cache_write_1h = \"3\"", 2_800_000_000),
    ] {
        let usage = usage.clone();
        let behave = move |asked: &_| {
            edited(asked, |_, document| {
                for place in PLACES {
                    if let Some(found) = document.pointer_mut(place) {
                        *found = usage.clone();
                    }
                }
                true
            })
        };
        let till = Till::before(
            Simulator::start(behave).unwrap(),
            &format!("{BY_KIND}\n{price}"),
            "",
        );
        for client in TEXT_PROTOCOLS {
            for stream in [false, true] {
                let body = ask(client, "messages", "Hello.", stream);
                assert_eq!(
                    till.cost_of(client, &body),
                    Some(cost),
                    "{client:?} stream: {stream}"
                );
            }
        }
        assert_eq!(
            till.store.number("SELECT sum(cache_write_1h) FROM usage"),
            6 * 600_000
        );
    }
}

/// The service tier that the answer states determines the price, whatever the request asked for:
/// <https://platform.openai.com/docs/guides/flex-processing>,
/// <https://docs.anthropic.com/en/api/service-tiers>.
#[test]
fn a_service_tier_of_the_answer_has_its_own_price() {
    let tiers = r#"tiers = [{ service_tier = "flex", input = "1", output = "4" }]"#;
    let till = Till::before(processed_at("flex"), &format!("{BY_KIND}\n{tiers}"), "");
    for (upstream, cost) in [
        // 501 × 1,000 + 600 × 500 + 111 × 4,000 + 100 × 10,000
        (Protocol::Responses, 2_245_000),
        // 279 × 1,000 + 1,024 × 500 + 253 × 4,000 + 64 × 10,000
        (Protocol::Chat, 2_443_000),
        // 1,000 × 1,000 + 207 × 500 + 30 × 2,500 + 419 × 4,000
        (Protocol::Messages, 2_854_500),
    ] {
        for client in TEXT_PROTOCOLS {
            for stream in [false, true] {
                let body = ask(client, protocol_name(upstream), "Hello.", stream);
                let row = till.row(client, &body);
                let place = format!("{client:?} before {upstream:?}, stream: {stream}");
                assert_eq!(row.cost, Some(cost), "{place}");
                assert_eq!(row.service_tier.as_deref(), Some("flex"), "{place}");
                assert_eq!(row.missing_prices, None, "{place}");
            }
        }
    }
}

/// Tokens without a price of their own cost as much as the tokens that they are part of, and the
/// row says so.
#[test]
fn missing_prices_are_marked_in_the_row() {
    let till = Till::before(processed_at("priority"), BY_KIND, "");
    for client in TEXT_PROTOCOLS {
        let row = till.row(client, &ask(client, protocol_name(client), "Hello.", true));
        assert_eq!(row.cost, Some(costs_by_kind(client)));
        assert_eq!(row.service_tier.as_deref(), Some("priority"));
        assert_eq!(row.missing_prices.as_deref(), Some("service_tier"));
    }
    let sums = till
        .store
        .number("SELECT count(*) FROM usage WHERE missing_prices IS NOT NULL");
    assert_eq!(sums, 3);

    let till = Till::new(PICTURES, "");
    let marks = |fields: Value| {
        let mut body = json!({"model": "images", "prompt": "A boat."});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        till.row(Protocol::Images, &body).missing_prices.unwrap()
    };
    // The simulator reports tokens of reference images.
    let listed = json!({"size": "1024x1024", "quality": "high"});
    assert_eq!(marks(listed), "image_input");
    let other = json!({"size": "512x512", "quality": "low"});
    assert_eq!(marks(other), "image_input pictures");
}

/// Audio and images have prices of their own at OpenAI (<https://platform.openai.com/docs/pricing>)
/// and at Google (<https://ai.google.dev/gemini-api/docs/pricing>).
#[test]
fn audio_and_images_have_their_own_prices() {
    let usage = json!({
        "prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500,
        "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 600, "image_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 200, "image_tokens": 50},
    });
    let behave = move |asked: &_| {
        edited(asked, |_, document| {
            if document["usage"].is_object() {
                document["usage"] = usage.clone();
            }
            true
        })
    };
    let media = r#"audio_input = "40"
image_input = "10"
audio_output = "80"
image_output = "30""#;
    let till = Till::before(
        Simulator::start(behave).unwrap(),
        &format!("{BY_KIND}\n{media}"),
        "",
    );
    for client in TEXT_PROTOCOLS {
        for stream in [false, true] {
            let row = till.row(client, &ask(client, "chat", "Hello.", stream));
            // 300 × 2,000 + 600 × 40,000 + 100 × 10,000 + 250 × 8,000 + 200 × 80,000 + 50 × 30,000
            assert_eq!(row.cost, Some(45_100_000), "{client:?} stream: {stream}");
            assert_eq!(row.missing_prices, None);
        }
    }
    let sums = |column: &str| {
        till.store
            .number(&format!("SELECT sum({column}) FROM usage"))
    };
    let columns = ["audio_input", "image_input", "audio_output", "image_output"];
    assert_eq!(columns.map(sums), [3_600, 600, 1_200, 300]);
}

/// A tier that no answer can state would never apply.
#[test]
fn an_unknown_service_tier_is_refused_at_the_start() {
    let tiers = r#"tiers = [{ service_tier = "fast", input = "1" }]"#;
    let config = GATEWAY.file("tiers.toml", &format!("{BY_KIND}\n{tiers}"));
    let checked = GATEWAY
        .command()
        .args(["check", "--config"])
        .arg(&config.0)
        .output();
    let printed = String::from_utf8(checked.unwrap().stderr).unwrap();
    assert!(
        printed.contains(
            "prices: the price of '*' has a tier for the service tier 'fast': expected one of 'flex', \
             'priority', 'batch', 'scale', 'performance'"
        ),
        "{printed}"
    );
}

/// An upstream of each protocol that processes requests at this service tier.
fn processed_at(tier: &'static str) -> Simulator {
    let behave = move |asked: &_| {
        edited(asked, |protocol, document| {
            count(protocol, document);
            let place = match protocol {
                Protocol::Chat if document.is_object() => document,
                Protocol::Responses => match document.get("response") {
                    Some(_) => &mut document["response"],
                    None => document,
                },
                Protocol::Messages if document["message"].is_object() => {
                    &mut document["message"]["usage"]
                }
                Protocol::Messages if document["type"] == "message" => &mut document["usage"],
                _ => return true,
            };
            place["service_tier"] = tier.into();
            true
        })
    };
    Simulator::start(behave).unwrap()
}

/// Kinds without a price of their own cost as much as those that they are part of, and the sum is
/// rounded once.
#[test]
fn kinds_without_a_price_cost_as_much_as_their_total() {
    let till = Till::new(
        "[[prices]]\nmodel = \"*\"\ninput = \"0.0005\"\noutput = \"0\"",
        "",
    );
    // Half a billionth each: 1,101, 1,303 and 1,237 tokens are 550.5, 651.5 and 618.5 billionths,
    // and a half is rounded to an even number.
    assert_eq!(till.cost(Protocol::Responses, false), Some(550));
    assert_eq!(till.cost(Protocol::Chat, false), Some(652));
    assert_eq!(till.cost(Protocol::Messages, false), Some(618));
}

/// A tier applies to all tokens of a request whose prompt is longer.
#[test]
fn long_prompts_have_their_own_prices() {
    let tier = "tiers = [{ above = 1236, input = \"4\", output = \"16\" }]";
    let till = Till::new(&format!("{BY_KIND}\n{tier}"), "");
    // 1,101 tokens are not above it.
    let cost = till.cost(Protocol::Responses, false);
    assert_eq!(cost, Some(costs_by_kind(Protocol::Responses)));
    // 1,303 are: 279 × 4,000 + 1,024 × 500 + 253 × 16,000 + 64 × 10,000
    // = 1,116,000 + 512,000 + 4,048,000 + 640,000
    assert_eq!(till.cost(Protocol::Chat, true), Some(6_316_000));
    // So are 1,237, with cache tokens: 1,000 × 4,000 + 207 × 500 + 30 × 2,500 + 419 × 16,000
    // = 4,000,000 + 103,500 + 75,000 + 6,704,000
    assert_eq!(till.cost(Protocol::Messages, false), Some(10_882_500));
}

#[test]
fn pictures_cost_by_size_and_quality() {
    let till = Till::new(PICTURES, "");
    let cost = |fields: Value| {
        let mut body = json!({"model": "images", "prompt": "A boat."});
        for (name, value) in fields.as_object().unwrap() {
            body[name] = value.clone();
        }
        till.cost_of(Protocol::Images, &body)
    };
    // The tokens are 523 × 1 + 6,272 × 2 = 13,067 billionths, and the first price that fits is added
    // for each picture.
    let high = json!({"size": "1024x1024", "quality": "high"});
    assert_eq!(cost(high), Some(250_013_067));
    let low = json!({"size": "1024x1024", "quality": "low", "n": 3});
    assert_eq!(cost(low), Some(30_013_067));
    let wide = json!({"size": "1536x1024", "quality": "high"});
    assert_eq!(cost(wide), Some(300_013_067));
    // Nothing fits: as much as the dearest.
    let other = json!({"size": "512x512", "quality": "low"});
    assert_eq!(cost(other), Some(300_013_067));
    assert_eq!(cost(json!({})), Some(300_013_067));
}

/// Of the prices of a name, the latest that is valid applies, and a name before a pattern.
#[test]
fn prices_change_at_their_time() {
    let entry = |model: &str, from: &str, input: &str| {
        let from = match from {
            "" => String::new(),
            from => format!("valid_from = \"{from}\"\n"),
        };
        format!("[[prices]]\nmodel = \"{model}\"\n{from}input = \"{input}\"\noutput = \"0\"\n")
    };
    let prices = [
        entry("*", "", "9"),
        entry("chat", "2999-01-01T00:00:00Z", "4"),
        entry("chat", "2020-01-01T00:00:00Z", "2"),
        entry("chat", "", "1"),
    ];
    let till = Till::new(&prices.concat(), "");
    // 1,303 × 2,000
    assert_eq!(till.cost(Protocol::Chat, false), Some(2_606_000));
    // 1,101 × 9,000
    assert_eq!(till.cost(Protocol::Responses, false), Some(9_909_000));
}

/// The price of the upstream that has answered applies, whatever the client calls the model.
#[test]
fn price_of_an_upstream_comes_before_that_of_the_name() {
    let prices = r#"
[[prices]]
model = "*"
input = "9"
output = "0"
[[prices]]
model = "*"
upstream = "chat"
input = "2"
output = "0"
[[prices]]
model = "images"
upstream = "embedded"
input = "0"
output = "0"
"#;
    let till = Till::new(prices, "");
    // 1,303 × 2,000
    assert_eq!(till.cost(Protocol::Chat, false), Some(2_606_000));
    assert_eq!(till.cost(Protocol::Chat, true), Some(2_606_000));
    // 1,101 × 9,000
    assert_eq!(till.cost(Protocol::Responses, false), Some(9_909_000));
}

/// By default a model without a price is refused to keys with a budget before it is asked. Other
/// keys may use it, and the row has no cost.
#[test]
fn a_model_without_a_price_is_refused_to_keys_with_a_budget() {
    let till = Till::new(BUDGET, "");
    for protocol in PROTOCOLS {
        for stream in [false, true] {
            let body = ask(protocol, protocol_name(protocol), "Hello.", stream);
            let refused = till.gateway.ask(protocol, &body);
            assert_eq!(refused.status, 403, "{}", refused.text());
            let owed = ERRORS["model_without_price"].response(protocol).unwrap();
            assert_eq!(refused.json()["error"]["type"], *owed.kind);
            let message = refused.json()["error"]["message"].clone();
            let message = message.as_str().unwrap();
            assert!(message.contains("has no price"), "{message}");
        }
    }
    assert_eq!(till.simulator.requests().len(), 0);
    let other = till.other();
    assert_eq!(other.status, 200, "{}", other.text());
    let row = till.store.row(&till.gateway, &other);
    assert_eq!((row.key.as_str(), row.cost), ("other", None));
    assert_eq!(till.store.rows().len(), 1);
}

#[test]
fn a_model_without_a_price_can_be_free_or_have_the_default() {
    let free = Till::new(BUDGET, "unknown_price = \"free\"");
    assert_eq!(free.cost(Protocol::Chat, false), Some(0));
    let default = Till::new(
        BUDGET,
        "unknown_price = { default = { input = \"1\", output = \"2\" } }",
    );
    // 1,303 × 1,000 + 317 × 2,000
    assert_eq!(default.cost(Protocol::Chat, false), Some(1_937_000));
}

/// The public price list can be imported: the output of the command is a part of a configuration.
#[test]
fn a_price_list_can_be_imported() {
    let list = GATEWAY.file(
        "prices.json",
        &json!({
            "sample_spec": {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
            "chat": {
                "input_cost_per_token": 2e-6, "cache_read_input_token_cost": 5e-7,
                "output_cost_per_token": 8e-6, "output_cost_per_reasoning_token": 1e-5,
                "input_cost_per_token_above_1k_tokens": 4e-6,
            },
            "painter": {"output_cost_per_image": 0.04},
        })
        .to_string(),
    );
    let mut command = GATEWAY.command();
    let output = command.args(["prices", "import"]).arg(&list.0).output();
    let output = output.unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{printed}");
    assert_eq!(
        printed,
        "imported the prices of 1 models\nskipped painter: it has no field `input_cost_per_token`\n"
    );
    let till = Till::new(&String::from_utf8(output.stdout).unwrap(), "");
    // Above 1,000 tokens: 279 × 4,000 + 1,024 × 500 + 253 × 8,000 + 64 × 10,000
    // = 1,116,000 + 512,000 + 2,024,000 + 640,000
    assert_eq!(till.cost(Protocol::Chat, false), Some(4_292_000));

    let missing = GATEWAY
        .command()
        .args(["prices", "import", "no.json"])
        .output();
    let missing = missing.unwrap();
    let printed = String::from_utf8(missing.stderr).unwrap();
    assert!(
        !missing.status.success() && printed.starts_with("sluicegate: no.json: "),
        "{printed}"
    );
}

const BY_KIND: &str = r#"
[[prices]]
model = "*"
input = "2"
cached_input = "0.50"
cache_write = "2.50"
output = "8"
reasoning = "10"
"#;
const PICTURES: &str = r#"
[[prices]]
model = "images"
input = "0.001"
output = "0.002"
pictures = [
  { size = "1024x1024", quality = "high", price = "0.25" },
  { size = "1024x1024", price = "0.01" },
  { size = "1536x1024", quality = "*", price = "0.30" },
]
"#;
const BUDGET: &str = r#"
[[quotas]]
key = "tests"
budget = { amount = "5.00", currency = "USD", window = "month" }
"#;
/// The key of [`testkit::TEXT`].
const OTHER_KEY: &str = r#"
name = "other"
hash = "sha256:d854f0a0e101ca04bdee2eca43f30f871768404361821c7e54edc83f960b93b3"
scopes = ["text"]
"#;
