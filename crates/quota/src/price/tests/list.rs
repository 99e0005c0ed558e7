//! Tests of price lists, as an operator writes them.

use super::*;

#[derive(Debug, Serialize, Deserialize)]
struct List {
    prices: Vec<PriceEntry>,
}

fn table(toml: &str, unknown: UnknownPrice) -> PriceTable {
    let list: List = toml::from_str(toml).unwrap();
    PriceTable::new(list.prices, unknown).unwrap()
}

fn matches(pattern: &str, model: &str) -> bool {
    let (head, tail) = pattern.split_once('*').unwrap();
    model.starts_with(head) && model.ends_with(tail)
}

/// Returns the price of input, or the error.
fn find(table: &PriceTable, model: &str, at: &str) -> Result<String, String> {
    match table.price(model, at.parse().unwrap(), matches) {
        Ok(price) => Ok(price.input.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

const NOW: &str = "2026-06-01T00:00:00Z";

#[test]
fn an_entry_has_the_fields_of_the_documentation() {
    let text = r#"
        [[prices]]
        model = "model-5.5"
        input = "1.25"          # per million tokens
        cached_input = "0.125"
        output = "10.00"
        tiers = [{ above = 200000, input = "2.50", output = "15.00" }]
        pictures = [{ size = "1024x1024", quality = "high", price = "0.167" }]
        valid_from = "2026-01-01T00:00:00Z"
        "#;
    let list: List = toml::from_str(text).unwrap();
    let [entry] = &list.prices[..] else {
        panic!("{list:?}")
    };
    assert_eq!(entry.model, "model-5.5");
    assert_eq!(entry.valid_from.unwrap().as_second(), 1_767_225_600);
    assert_eq!(entry.price.input.pico(), 1_250_000);
    assert_eq!(entry.price.tiers[0].output.unwrap().pico(), 15_000_000);
    assert_eq!(entry.price.pictures[0].price.nanos(), 167_000_000);
    let written = toml::to_string(&list).unwrap();
    let again: List = toml::from_str(&written).unwrap();
    assert_eq!(again.prices, list.prices, "{written}");
}

#[test]
fn an_invalid_entry_is_reported_with_its_field() {
    let message = |fields: &str| {
        let text = format!("[[prices]]\n{fields}");
        toml::from_str::<List>(&text).unwrap_err().to_string()
    };
    let required = "model = \"m\"\ninput = \"1\"\noutput = \"2\"\n";
    for (fields, expected) in [
        (
            "input = \"1\"\noutput = \"2\"",
            "missing field `model`: expected the name of a model",
        ),
        ("model = \"m\"\ninput = \"1\"", "missing field `output`"),
        (
            "model = \"m m\"\ninput = \"1\"\noutput = \"2\"",
            "field `model`: \"m m\" is no name",
        ),
        (
            &format!("{required}inptu = \"1\""),
            "unknown field `inptu`, expected one of `model`",
        ),
        (&format!("{required}reasoning = 1.5"), "reasoning = 1.5"),
        (
            &format!("{required}reasoning = 1.5"),
            "expected a price per million tokens as a string",
        ),
        (
            &format!("{required}cached_input = \"1e3\""),
            "cached_input = \"1e3\"",
        ),
        (
            &format!("{required}cached_input = \"1e3\""),
            "\"1e3\" is not a decimal number",
        ),
        (
            &format!("{required}valid_from = \"2026\""),
            "valid_from = \"2026\"",
        ),
        (
            &format!("{required}tiers = [{{ above = 5 }}, {{ above = 5 }}]"),
            "the price of \"m\": field `tiers`: `above` is 5 after a tier as high: expected rising numbers",
        ),
        (
            &format!("{required}tiers = [{{ above = 5, pictures = [] }}]"),
            "unknown field `pictures`",
        ),
        (
            &format!("{required}pictures = [{{ price = \"-0.5\" }}]"),
            "the price of \"m\": field `pictures`: `price` is -0.50: expected no negative amount",
        ),
    ] {
        let found = message(fields);
        assert!(found.contains(expected), "{found}");
    }
}

#[test]
fn exact_name_wins_over_patterns_and_the_first_pattern_wins() {
    let table = table(
        r#"
        [[prices]]
        model = "model-5*"
        input = "1"
        output = "0"
        [[prices]]
        model = "model-*"
        input = "2"
        output = "0"
        [[prices]]
        model = "model-5.5"
        input = "3"
        output = "0"
        "#,
        UnknownPrice::Refuse,
    );
    assert_eq!(find(&table, "model-5.5", NOW), Ok("3.00".to_owned()));
    assert_eq!(find(&table, "model-5.4", NOW), Ok("1.00".to_owned()));
    assert_eq!(find(&table, "model-4", NOW), Ok("2.00".to_owned()));
    let none = "the model \"other\" has no price".to_owned();
    assert_eq!(find(&table, "other", NOW), Err(none));
}

/// An entry for the upstream comes first, then one for exactly the name that the model has there.
#[test]
fn target_has_the_price_of_its_upstream_or_of_its_model() {
    let table = table(
        r#"
        [[prices]]
        model = "coder"
        input = "1"
        output = "0"
        [[prices]]
        model = "qwen3"
        input = "2"
        output = "0"
        [[prices]]
        model = "qwen*"
        upstream = "own"
        input = "3"
        output = "0"
        [[prices]]
        model = "coder"
        upstream = "hosted"
        input = "4"
        output = "0"
        [[prices]]
        model = "other-*"
        input = "5"
        output = "0"
        "#,
        UnknownPrice::Refuse,
    );
    let price = |upstream, there| {
        let at = NOW.parse().unwrap();
        let found = table.price_of_target(upstream, ("coder", there), at, matches);
        found.map(|price| price.input.to_string())
    };
    assert_eq!(price("own", Some("qwen3")), Some("3.00".to_owned()));
    assert_eq!(price("vendor", Some("qwen3")), Some("2.00".to_owned()));
    assert_eq!(price("hosted", None), Some("4.00".to_owned()));
    // Patterns without an upstream are for the names that clients send.
    assert_eq!(price("vendor", Some("other-1")), None);
    assert_eq!(price("vendor", None), None);
    assert_eq!(price("vendor", Some("coder")), None);
}

#[test]
fn the_latest_price_that_is_valid_applies() {
    let table = table(
        r#"
        [[prices]]
        model = "a"
        input = "3"
        output = "0"
        valid_from = "2026-07-01T00:00:00+02:00"
        [[prices]]
        model = "c-*"
        input = "7"
        output = "0"
        valid_from = "2026-07-01T00:00:00Z"
        [[prices]]
        model = "*"
        input = "9"
        output = "0"
        [[prices]]
        model = "a"
        input = "2"
        output = "0"
        valid_from = "2026-01-01T00:00:00Z"
        [[prices]]
        model = "c-*"
        input = "6"
        output = "0"
        valid_from = "2026-01-01T00:00:00Z"
        [[prices]]
        model = "b"
        input = "4"
        output = "0"
        [[prices]]
        model = "b"
        input = "5"
        output = "0"
        valid_from = "2026-01-01T00:00:00Z"
        "#,
        UnknownPrice::Refuse,
    );
    let price = |model, at| find(&table, model, at).unwrap();
    // No price of the name is valid yet, so the price of the pattern applies.
    assert_eq!(price("a", "2025-12-31T23:59:59.999999999Z"), "9.00");
    assert_eq!(price("a", "2026-01-01T00:00:00Z"), "2.00");
    assert_eq!(price("a", "2026-06-30T21:59:59Z"), "2.00");
    assert_eq!(price("a", "2026-06-30T22:00:00Z"), "3.00");
    assert_eq!(price("c-1", "2025-12-31T00:00:00Z"), "9.00");
    assert_eq!(price("c-1", "2026-06-30T00:00:00Z"), "6.00");
    assert_eq!(price("c-1", "2026-07-01T00:00:00Z"), "7.00");
    assert_eq!(price("b", "2025-12-31T00:00:00Z"), "4.00");
    assert_eq!(price("b", "2026-12-31T00:00:00Z"), "5.00");
}

#[test]
fn unpriced_model_is_refused_free_or_default_priced() {
    #[derive(Deserialize)]
    struct Settings {
        unknown: UnknownPrice,
    }
    let read = |toml: &str| toml::from_str::<Settings>(toml).map(|settings| settings.unknown);
    let find = |unknown| find(&table("prices = []", unknown), "m", NOW);
    let refused = Err("the model \"m\" has no price".to_owned());
    assert_eq!(find(read("unknown = \"refuse\"").unwrap()), refused);
    assert_eq!(find(UnknownPrice::default()), refused);
    let free = read("unknown = \"free\"").unwrap();
    assert_eq!(find(free), Ok("0.00".to_owned()));
    let default = read("unknown.default = { input = \"5\", output = \"25\" }").unwrap();
    assert_eq!(find(default), Ok("5.00".to_owned()));
    let wrong = read("unknown.default = { model = \"m\", input = \"5\", output = \"25\" }");
    let message = wrong.unwrap_err().to_string();
    let expected = "unknown field `model`: expected it in an entry of `prices` only";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn two_prices_for_the_same_time_are_refused() {
    let repeated = |model: &str, from: &str| {
        let entry =
            format!("[[prices]]\nmodel = \"{model}\"\ninput = \"1\"\noutput = \"1\"\n{from}\n");
        let list: List = toml::from_str(&entry.repeat(2)).unwrap();
        let error = PriceTable::new(list.prices, UnknownPrice::Free).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        repeated("m-*", ""),
        "the model \"m-*\" has two prices with `valid_from` absent: expected different times"
    );
    assert_eq!(
        repeated("m", "valid_from = \"2026-01-01T00:00:00Z\""),
        "the model \"m\" has two prices with `valid_from` 2026-01-01T00:00:00Z: expected different \
         times"
    );
}
