//! Tests of settled counts. The usages are from vendors' pages and from reports of their customers.

use proptest::prelude::*;

use super::*;

/// Reads a usage of one of OpenAI's protocols, with both readers.
fn read(usage: &str) -> Option<Tokens> {
    let reported: Reported<OpenAi> = serde_json::from_str(usage).unwrap();
    let mut counts = Counts::default();
    let mut cursor = Cursor::new(usage.as_bytes()).unwrap();
    if counts
        .read(&mut cursor, Some(Meaning::Object(OPENAI)))
        .is_some()
    {
        assert_eq!(counts.settled(), reported.tokens(), "{usage}");
    }
    reported.tokens()
}

fn sums(usage: &str) -> (u64, u64) {
    let tokens = read(usage).unwrap();
    (tokens.input, tokens.output)
}

/// xAI counts reasoning beside `completion_tokens`: <https://github.com/vercel/ai/issues/12425>.
#[test]
fn the_answer_is_at_least_the_total_without_the_prompt() {
    let xai = r#"{"prompt_tokens":12,"completion_tokens":2,"total_tokens":54,
        "completion_tokens_details":{"reasoning_tokens":40}}"#;
    assert_eq!(sums(xai), (12, 42));
    // Gemini counts thoughts in the total only.
    assert_eq!(
        sums(r#"{"prompt_tokens":20,"completion_tokens":151,"total_tokens":553}"#),
        (20, 533)
    );
    assert_eq!(
        sums(r#"{"prompt_tokens":100,"total_tokens":410}"#),
        (100, 310)
    );
}

/// Perplexity's deep research: <https://docs.perplexity.ai/models/models/sonar-deep-research>.
#[test]
fn reasoning_that_exceeds_the_answer_is_beside_it() {
    let perplexity = r#"{"prompt_tokens":33,"completion_tokens":7163,"total_tokens":7196,
        "citation_tokens":19028,"num_search_queries":18,"reasoning_tokens":73950}"#;
    assert_eq!(sums(perplexity), (33, 81_113));
    let inside = r#"{"prompt_tokens":14,"completion_tokens":90,"total_tokens":104,
        "completion_tokens_details":{"reasoning_tokens":90}}"#;
    assert_eq!(sums(inside), (14, 90));
}

/// LiteLLM in front of Claude: <https://github.com/BerriAI/litellm/issues/15056>.
#[test]
fn cached_tokens_that_exceed_the_prompt_are_beside_it() {
    let litellm = r#"{"completion_tokens":467,"prompt_tokens":31,"total_tokens":498,
        "prompt_tokens_details":{"cached_tokens":0},"cache_creation_input_tokens":1253}"#;
    assert_eq!(sums(litellm), (1284, 467));
    let total = r#"{"prompt_tokens":500,"completion_tokens":10,"total_tokens":810,
        "cache_read_input_tokens":300}"#;
    assert_eq!(sums(total), (800, 10));
}

/// GPT-5.6 includes cache reads in the count of cache writes.
#[test]
fn reads_and_writes_fit_into_the_prompt() {
    let overlapping = r#"{"input_tokens":3619,"output_tokens":36,"total_tokens":3655,
        "input_tokens_details":{"cached_tokens":2921,"cache_write_tokens":3616}}"#;
    let tokens = read(overlapping).unwrap();
    assert_eq!(
        (tokens.input, tokens.cache_read, tokens.cache_write),
        (3619, 2921, 698)
    );
}

#[test]
fn later_counts_never_lower_earlier_ones() {
    let mut counts = Counts::default();
    for (kind, count) in [
        (CountKind::Prompt, 9),
        (CountKind::Output, 1),
        (CountKind::Total, 10),
        (CountKind::Output, 4),
        (CountKind::Total, 13),
        (CountKind::Prompt, 0),
        (CountKind::Output, 0),
    ] {
        counts.note(kind, count);
    }
    let tokens = counts.settled().unwrap();
    assert_eq!((tokens.input, tokens.output), (9, 4));
}

/// Merges usages of Messages in order: of each the uncached tokens, cache reads and cache writes.
fn split(usages: &[[u64; 3]]) -> [u64; 4] {
    let mut counts = Counts::default();
    for usage in usages {
        let mut later = Counts::default();
        for (kind, count) in SPLIT.into_iter().zip(*usage) {
            later.note(kind, count);
        }
        counts.merge(&later);
    }
    let tokens = counts.settled().unwrap();
    let cached = tokens.cache_read + tokens.cache_write;
    let uncached = tokens.input - cached;
    [
        tokens.input,
        uncached,
        tokens.cache_read,
        tokens.cache_write,
    ]
}

/// Kimi: <https://github.com/maximhq/bifrost/issues/5354>.
#[test]
fn a_prompt_that_is_split_anew_is_not_counted_twice() {
    assert_eq!(split(&[[2000, 0, 0], [336, 1664, 0]]), [2000, 336, 1664, 0]);
    assert_eq!(split(&[[2000, 0, 0], [0, 2000, 0]]), [2000, 0, 2000, 0]);
    // An estimate at first.
    assert_eq!(
        split(&[[2000, 0, 0], [300, 1600, 50]]),
        [1950, 300, 1600, 50]
    );
}

/// Anthropic repeats the counts in `message_delta`, or has only the output count there. Counts of
/// other servers are zero or absent there:
/// <https://platform.claude.com/docs/en/build-with-claude/streaming>.
#[test]
fn later_events_without_all_parts_of_a_prompt_do_not_split_it() {
    let whole = [1060, 10, 1000, 50];
    for later in [
        [10, 1000, 50],
        [0, 0, 0],
        [10, 0, 0],
        [0, 1000, 0],
        [0, 0, 50],
    ] {
        assert_eq!(split(&[[10, 1000, 50], later]), whole, "{later:?}");
    }
    assert_eq!(split(&[[2000, 0, 0], [7, 0, 0]]), [2000, 2000, 0, 0]);
    // The search of the server adds to the prompt.
    let grown = split(&[[10, 1000, 0], [40, 3000, 20]]);
    assert_eq!(grown, [3060, 40, 3000, 20]);
}

/// Counts that no model reaches, and values that are no counts.
#[test]
fn hostile_counts_are_unknown() {
    for unknown in [
        "{}",
        "null",
        "[]",
        r#""prompt_tokens""#,
        r#"{"prompt_tokens":null,"completion_tokens":null}"#,
        r#"{"prompt_tokens":"12","completion_tokens":[3]}"#,
        r#"{"prompt_tokens":-1,"completion_tokens":-3.5}"#,
        r#"{"prompt_tokens":18446744073709551615,"completion_tokens":1e300}"#,
        r#"{"prompt_tokens_details":null,"completion_tokens_details":"none"}"#,
        r#"{"total_tokens":0}"#,
    ] {
        assert_eq!(read(unknown), None, "{unknown}");
    }
    let one = r#"{"prompt_tokens":8.9,"completion_tokens":3e0,"total_tokens":1e300}"#;
    assert_eq!(sums(one), (8, 3));
}

#[test]
fn a_repeated_count_is_the_largest() {
    let twice = r#"{"prompt_tokens":7,"prompt_tokens":3,"input_tokens":0,"output_tokens":2}"#;
    assert_eq!(sums(twice), (7, 2));
}

/// Audio at OpenAI (<https://platform.openai.com/docs/api-reference/chat/object>) and images at
/// OpenRouter (<https://openrouter.ai/docs/use-cases/usage-accounting>).
#[test]
fn audio_and_images_are_parts_of_the_prompt_and_of_the_answer() {
    let tokens = read(
        r#"{"prompt_tokens":100,"completion_tokens":60,"total_tokens":160,
        "prompt_tokens_details":{"cached_tokens":0,"audio_tokens":40,"image_tokens":30},
        "completion_tokens_details":{"reasoning_tokens":5,"audio_tokens":20,"image_tokens":10}}"#,
    )
    .unwrap();
    assert_eq!((tokens.input, tokens.output), (100, 60));
    assert_eq!((tokens.audio_input, tokens.image_input), (40, 30));
    assert_eq!((tokens.audio_output, tokens.image_output), (20, 10));
    // A part is no larger than the whole.
    let tokens = read(
        r#"{"prompt_tokens":10,"completion_tokens":0,
        "prompt_tokens_details":{"audio_tokens":40},"completion_tokens_details":{"image_tokens":3}}"#,
    )
    .unwrap();
    assert_eq!((tokens.audio_input, tokens.image_output), (10, 0));
}

#[test]
fn the_last_service_tier_counts() {
    let mut counts = Counts::default();
    counts.note(CountKind::Prompt, 1);
    let tier = |counts: &Counts| counts.settled().unwrap().service_tier;
    assert_eq!(tier(&counts), ServiceTier::Standard);
    counts.note_service_tier(b"priority");
    let mut later = Counts::default();
    counts.merge(&later);
    assert_eq!(tier(&counts), ServiceTier::Priority);
    later.note_service_tier(b"default");
    counts.merge(&later);
    assert_eq!(tier(&counts), ServiceTier::Standard);
}

fn count() -> impl Strategy<Value = u64> {
    prop_oneof![0..20_u64, 0..100_000_u64, any::<u64>()]
}

proptest! {
    #[test]
    fn settled_counts_add_up(reported in any::<[Option<u8>; 13]>(), large in prop::collection::vec(count(), 13)) {
        let kinds = [
            CountKind::Prompt, CountKind::Uncached, CountKind::CacheRead, CountKind::CacheWrite,
            CountKind::CacheWrite5m, CountKind::CacheWrite1h, CountKind::Output,
            CountKind::Reasoning, CountKind::AudioInput, CountKind::ImageInput,
            CountKind::AudioOutput, CountKind::ImageOutput, CountKind::Total,
        ];
        let mut counts = Counts::default();
        for ((kind, is_reported), count) in kinds.into_iter().zip(reported).zip(large) {
            if is_reported.is_some() {
                counts.note(kind, count);
            }
        }
        let Some(tokens) = counts.settled() else { return Ok(()) };
        prop_assert!(tokens.cache_read + tokens.cache_write <= tokens.input);
        prop_assert!(tokens.cache_write_1h <= tokens.cache_write);
        prop_assert!(tokens.reasoning <= tokens.output);
        prop_assert!(tokens.audio_input.max(tokens.image_input) <= tokens.input);
        prop_assert!(tokens.audio_output.max(tokens.image_output) <= tokens.output);
        prop_assert!(counts.get(CountKind::Total) <= tokens.input + tokens.output);
        prop_assert!(counts.get(CountKind::Prompt) <= tokens.input);
        prop_assert!(counts.get(CountKind::Output) <= tokens.output);
        // Whoever writes the settled counts and reads them again gets the same.
        let mut again = Counts::default();
        again.note(CountKind::Prompt, tokens.input);
        again.note(CountKind::Output, tokens.output);
        if tokens.input.max(tokens.output) <= MAX_TOKENS {
            prop_assert_eq!(again.unsettled(&again.settled().unwrap()), None);
        }
    }
}
