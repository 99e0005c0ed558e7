//! The sizes that errors about a prompt that is too long state, by the wordings of vendors and servers.
//!
//! They are read apart from the meaning of an error, which needs no numbers. Each wording is in the
//! file of published errors, as the rows of the [table](super::rows) are.

use wire::ContextOverflow;

use super::complaint::Complaint;

/// Returns the sizes that an error states, in one of the wordings or in members of their own.
pub(super) fn sizes(error: &Complaint) -> ContextOverflow {
    let stated = WORDINGS.iter().find_map(|(_, phrases)| error.says(phrases));
    stated.unwrap_or_default().or(error.sizes)
}

/// The server that is known for a wording, and its phrases in lower case, which have [places for the
/// numbers](super::phrase). The first wording whose phrases are all there counts.
static WORDINGS: &[(&str, &[&str])] = &[
    (
        "openai",
        &["request too large for", "limit {limit}, requested {prompt}"],
    ),
    (
        "openai",
        &[
            "maximum context length is {limit} tokens",
            "your messages resulted in {prompt} tokens",
        ],
    ),
    (
        "openai",
        &[
            "maximum context length is {limit} tokens",
            "({prompt} in the messages, {output} in the completion)",
        ],
    ),
    (
        "openai",
        &[
            "input tokens exceed the configured limit of {limit} tokens",
            "your messages resulted in {prompt} tokens",
        ],
    ),
    (
        "anthropic",
        &["prompt is too long: {prompt} tokens > {limit} maximum"],
    ),
    (
        "anthropic",
        &["exceed context limit: {prompt} + {output} > {limit}"],
    ),
    (
        "bedrock",
        &["max input tokens: {limit}, request input token count: {prompt}"],
    ),
    (
        "gemini",
        &["input token count ({prompt}) exceeds the maximum number of tokens allowed ({limit})"],
    ),
    (
        "vertex",
        &["input token count is {prompt} but model only supports up to {limit}"],
    ),
    (
        "xai",
        &["maximum prompt length is {limit} but the request contains {prompt} tokens"],
    ),
    (
        "xai",
        &["current message ({prompt} tokens) exceeds budget ({limit} tokens)"],
    ),
    (
        "fireworks",
        &["prompt is too long: {prompt}, model maximum context length: {limit}"],
    ),
    (
        "mistral",
        &[
            "prompt contains {prompt} tokens",
            "with {limit} maximum context length",
        ],
    ),
    (
        "openrouter",
        &["input length {prompt} exceeds the maximum allowed input length of {limit} tokens"],
    ),
    (
        "openrouter",
        &[
            "maximum context length is {limit} tokens",
            "({prompt} of text input, {output} in the output)",
        ],
    ),
    (
        "openrouter",
        &[
            "maximum context length is {limit} tokens",
            "({prompt} of text input)",
        ],
    ),
    (
        "together",
        &["input ({prompt} tokens) is longer than the model's context length ({limit} tokens)"],
    ),
    (
        "tgi",
        &["must have less than {limit} tokens. given: {prompt}"],
    ),
    (
        "tgi",
        &["must be <= {limit}. given: {prompt} `inputs` tokens and {output} `max_new_tokens`"],
    ),
    (
        "vllm",
        &[
            "maximum context length is {limit} tokens",
            "you requested {output} output tokens",
            "prompt contains at least {prompt} input tokens",
        ],
    ),
    (
        "vllm",
        &[
            "maximum context length is {limit} tokens",
            "prompt contains {prompt} input tokens",
        ],
    ),
    (
        "vllm",
        &[
            "is too large: {output}.",
            "maximum context length is {limit} tokens",
            "your request has {prompt} input tokens",
        ],
    ),
    (
        "vllm",
        &[
            "you passed {prompt} input tokens",
            "requested {output} output tokens",
            "the model's context length is only {limit} tokens",
        ],
    ),
    (
        "vllm",
        &["(length {prompt}) is longer than the maximum model length of {limit}"],
    ),
    (
        "vllm",
        &["(total length {prompt}) is too long to fit into the model (context length {limit})"],
    ),
    (
        "vllm",
        &["engine prompt length {prompt} exceeds the max_model_len {limit}"],
    ),
    (
        "vllm",
        &["input length ({prompt}) exceeds model's maximum context length ({limit})"],
    ),
    (
        "vllm",
        &[
            "maximum context length is {limit} tokens",
            "your request has {prompt} input tokens",
        ],
    ),
    (
        "omlx",
        &["prompt too long: {prompt} tokens exceeds max context window of {limit}"],
    ),
    (
        "atlas",
        &["prompt too long: {prompt} tokens exceeds max_seq_len {limit}"],
    ),
    (
        "tensorrt-llm",
        &[
            "sum of prompt length ({prompt}",
            "should not exceed max_num_tokens ({limit}",
        ],
    ),
    (
        "triton",
        &["prompt length ({prompt}) exceeds maximum sequence length ({limit})"],
    ),
    (
        "triton",
        &["prompt length ({prompt}) exceeds maximum input length ({limit})"],
    ),
    (
        "anyscale",
        &["received {prompt} tokens, but the maximum input length is {limit} tokens"],
    ),
    (
        "lm-studio",
        &["cannot truncate prompt with n_keep ({prompt}) >= n_ctx ({limit})"],
    ),
    ("lm-studio", &["n_keep: {prompt} >= n_ctx: {limit}"]),
    (
        "sglang",
        &[
            "maximum context length of {limit} tokens",
            "tokens: {prompt} tokens from the input messages and {output} tokens for the completion",
        ],
    ),
    (
        "sglang",
        &["length ({prompt} tokens) exceeds the maximum allowed length ({limit} tokens)"],
    ),
    (
        "llama-cpp",
        &["request ({prompt} tokens) exceeds the available context size ({limit} tokens)"],
    ),
    (
        "llama-cpp",
        &["input ({prompt} tokens) is larger than the max context size ({limit} tokens)"],
    ),
    (
        "llama-cpp-python",
        &["requested tokens ({prompt}) exceed context window of {limit}"],
    ),
    (
        "llama-cpp-python",
        &[
            "maximum context length is {limit} tokens",
            "({prompt} in your prompt; {output} for the completion)",
        ],
    ),
    (
        "lm-studio",
        &[
            "keep the first {prompt} tokens when context the overflows",
            "context length of only {limit} tokens",
        ],
    ),
    (
        "ds4",
        &["prompt has {prompt} tokens, but the configured context size is {limit} tokens"],
    ),
    (
        "tabbyapi",
        &["prompt length {prompt} is greater than max_seq_len {limit}"],
    ),
    (
        "cerebras",
        &["current length is {prompt} while limit is {limit}"],
    ),
    (
        "cohere",
        &[
            "too many tokens: total number of tokens",
            "cannot exceed {limit} - received {prompt}",
        ],
    ),
    (
        "copilot",
        &["prompt token count of {prompt} exceeds the limit of {limit}"],
    ),
    (
        "moonshot",
        &["exceeded model token limit: {limit} (requested: {prompt})"],
    ),
    (
        "siliconflow",
        &["length of prompt_tokens ({prompt}) must be less than max_seq_len ({limit})"],
    ),
    (
        "siliconflow",
        &["number of input tokens ({prompt}) has exceeded max_prompt_tokens ({limit})"],
    ),
    (
        "volcengine",
        &["input length {prompt} exceeds the maximum length {limit}"],
    ),
    (
        "watsonx",
        &["number of input tokens {prompt} cannot exceed the total tokens limit {limit}"],
    ),
    (
        "sambanova",
        &[
            "generation length {output} is not possible",
            "prompt is {prompt} tokens long",
            "maximum supported sequence length is just {limit}",
        ],
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::table::tests::published;
    use super::*;

    #[test]
    fn every_published_size_of_a_long_prompt_is_read() {
        for published in published() {
            let found = sizes(&published.complaint());
            let found = [found.prompt, found.output, found.limit];
            assert_eq!(found, published.sizes, "{}", published.body);
        }
    }

    #[test]
    fn every_wording_is_published_by_its_server() {
        let states = |error: &Complaint| {
            let mut wordings = WORDINGS.iter().enumerate();
            let found = wordings.find(|(_, (_, phrases))| error.says(phrases).is_some());
            found.map(|(place, _)| place)
        };
        let published = published();
        let stated = published
            .iter()
            .filter_map(|error| states(&error.complaint()));
        let stated: BTreeSet<_> = stated.collect();
        let idle = (0..WORDINGS.len()).filter(|place| !stated.contains(place));
        let idle: Vec<_> = idle.map(|place| WORDINGS[place]).collect();
        assert!(idle.is_empty(), "{idle:?}");
        for (server, phrases) in WORDINGS {
            assert!(
                published.iter().any(|error| error.server == *server),
                "{server}"
            );
            for phrase in *phrases {
                assert_eq!(*phrase, phrase.to_lowercase());
                assert!(!phrase.starts_with('{'), "{phrase}");
            }
        }
    }
}
