//! The errors of vendors and servers that the status alone does not explain, by their wordings.
//!
//! The first row that applies counts, so a row for a wording comes before those that are more general.
//! A phrase is a part of the sentence that no request can contribute, with the [places of the
//! numbers](super::phrase) that clients are told. Each row is in the file of published errors
//! (`tests/it/fixtures/vendor-errors.json`), which names the vendor's page.

use super::table::Meaning::{
    Account, AgainstPolicy, Configuration, LongPrompt, Overload, Rate, Signature, TooLarge,
};
use super::table::{Row, row};

pub(super) static ROWS: &[Row] = &[
    // A rate is called a quota by these, with the sentence by which others report an empty account.
    row("gemini", Account)
        .word("resource_exhausted")
        .says(&["limit: 0, model"]),
    row("gemini", Account)
        .word("resource_exhausted")
        .says(&["credits are depleted"]),
    row("gemini", Account)
        .word("resource_exhausted")
        .says(&["spending cap"]),
    row("gemini", Rate).word("resource_exhausted"),
    row("dashscope", Rate).says(&["allocated quota exceeded"]),
    // A limit of tokens per minute that the prompt exceeds alone: waiting does not help.
    row("openai", LongPrompt).says(&["request too large for", "limit {limit}, requested {prompt}"]),
    // Prompts that are too long, first the wordings with numbers.
    row("openai", LongPrompt).says(&[
        "maximum context length is {limit} tokens",
        "your messages resulted in {prompt} tokens",
    ]),
    row("openai", LongPrompt).says(&[
        "maximum context length is {limit} tokens",
        "({prompt} in the messages, {output} in the completion)",
    ]),
    row("openai", LongPrompt).says(&[
        "input tokens exceed the configured limit of {limit} tokens",
        "your messages resulted in {prompt} tokens",
    ]),
    row("anthropic", LongPrompt).says(&["prompt is too long: {prompt} tokens > {limit} maximum"]),
    row("anthropic", LongPrompt).says(&["exceed context limit: {prompt} + {output} > {limit}"]),
    row("bedrock", LongPrompt)
        .says(&["max input tokens: {limit}, request input token count: {prompt}"]),
    row("gemini", LongPrompt).says(&[
        "input token count ({prompt}) exceeds the maximum number of tokens allowed ({limit})",
    ]),
    row("vertex", LongPrompt)
        .says(&["input token count is {prompt} but model only supports up to {limit}"]),
    row("xai", LongPrompt)
        .says(&["maximum prompt length is {limit} but the request contains {prompt} tokens"]),
    row("xai", LongPrompt)
        .says(&["current message ({prompt} tokens) exceeds budget ({limit} tokens)"]),
    row("fireworks", LongPrompt)
        .says(&["prompt is too long: {prompt}, model maximum context length: {limit}"]),
    row("mistral", LongPrompt).says(&[
        "prompt contains {prompt} tokens",
        "with {limit} maximum context length",
    ]),
    row("openrouter", LongPrompt).says(&[
        "input length {prompt} exceeds the maximum allowed input length of {limit} tokens",
    ]),
    row("openrouter", LongPrompt).says(&[
        "maximum context length is {limit} tokens",
        "({prompt} of text input, {output} in the output)",
    ]),
    row("openrouter", LongPrompt).says(&[
        "maximum context length is {limit} tokens",
        "({prompt} of text input)",
    ]),
    row("together", LongPrompt).says(&[
        "input ({prompt} tokens) is longer than the model's context length ({limit} tokens)",
    ]),
    row("tgi", LongPrompt).says(&["must have less than {limit} tokens. given: {prompt}"]),
    row("tgi", LongPrompt).says(&[
        "must be <= {limit}. given: {prompt} `inputs` tokens and {output} `max_new_tokens`",
    ]),
    row("vllm", LongPrompt).says(&[
        "maximum context length is {limit} tokens",
        "you requested {output} output tokens",
        "prompt contains at least {prompt} input tokens",
    ]),
    row("vllm", LongPrompt).says(&[
        "maximum context length is {limit} tokens",
        "prompt contains {prompt} input tokens",
    ]),
    row("vllm", LongPrompt).says(&[
        "is too large: {output}.",
        "maximum context length is {limit} tokens",
        "your request has {prompt} input tokens",
    ]),
    row("vllm", LongPrompt).says(&[
        "you passed {prompt} input tokens",
        "requested {output} output tokens",
        "the model's context length is only {limit} tokens",
    ]),
    row("vllm", LongPrompt)
        .says(&["(length {prompt}) is longer than the maximum model length of {limit}"]),
    row("vllm", LongPrompt).says(&[
        "(total length {prompt}) is too long to fit into the model (context length {limit})",
    ]),
    row("sglang", LongPrompt).says(&[
        "maximum context length of {limit} tokens",
        "tokens: {prompt} tokens from the input messages and {output} tokens for the completion",
    ]),
    row("sglang", LongPrompt)
        .says(&["length ({prompt} tokens) exceeds the maximum allowed length ({limit} tokens)"]),
    row("llama-cpp", LongPrompt)
        .says(&["request ({prompt} tokens) exceeds the available context size ({limit} tokens)"]),
    row("llama-cpp", LongPrompt)
        .says(&["input ({prompt} tokens) is larger than the max context size ({limit} tokens)"]),
    row("llama-cpp-python", LongPrompt)
        .says(&["requested tokens ({prompt}) exceed context window of {limit}"]),
    row("llama-cpp-python", LongPrompt).says(&[
        "maximum context length is {limit} tokens",
        "({prompt} in your prompt; {output} for the completion)",
    ]),
    row("lm-studio", LongPrompt).says(&[
        "keep the first {prompt} tokens when context the overflows",
        "context length of only {limit} tokens",
    ]),
    row("ds4", LongPrompt)
        .says(&["prompt has {prompt} tokens, but the configured context size is {limit} tokens"]),
    row("tabbyapi", LongPrompt)
        .says(&["prompt length {prompt} is greater than max_seq_len {limit}"]),
    row("cerebras", LongPrompt).says(&["current length is {prompt} while limit is {limit}"]),
    row("cohere", LongPrompt).says(&[
        "too many tokens: total number of tokens",
        "cannot exceed {limit} - received {prompt}",
    ]),
    row("copilot", LongPrompt)
        .says(&["prompt token count of {prompt} exceeds the limit of {limit}"]),
    row("moonshot", LongPrompt)
        .says(&["exceeded model token limit: {limit} (requested: {prompt})"]),
    row("siliconflow", LongPrompt)
        .says(&["length of prompt_tokens ({prompt}) must be less than max_seq_len ({limit})"]),
    row("siliconflow", LongPrompt)
        .says(&["number of input tokens ({prompt}) has exceeded max_prompt_tokens ({limit})"]),
    row("volcengine", LongPrompt)
        .says(&["input length {prompt} exceeds the maximum length {limit}"]),
    row("watsonx", LongPrompt)
        .says(&["number of input tokens {prompt} cannot exceed the total tokens limit {limit}"]),
    row("sambanova", LongPrompt).says(&[
        "generation length {output} is not possible",
        "prompt is {prompt} tokens long",
        "maximum supported sequence length is just {limit}",
    ]),
    // Prompts that are too long, without the length of the prompt.
    row("openai", LongPrompt).part("context_length"),
    row("openai", LongPrompt).says(&["maximum context length"]),
    row("openai", LongPrompt).says(&["exceeds the context window"]),
    row("openai", LongPrompt).says(&["reduce the length of the messages"]),
    row("anthropic", LongPrompt).says(&["prompt is too long"]),
    row("anthropic", LongPrompt).says(&["long context beta is not yet available"]),
    row("anthropic", Account).says(&["extra usage is required for long context"]),
    row("bedrock", LongPrompt).says(&["input is too long"]),
    row("bedrock", LongPrompt).says(&["number of input tokens exceeds maximum length"]),
    row("bedrock", LongPrompt).says(&["malformed input request: expected maxlength"]),
    row("vertex", TooLarge).says(&["request payload size exceeds the limit"]),
    row("groq", LongPrompt).says(&["please reduce the length"]),
    row("llama-cpp", LongPrompt).word("exceed_context_size_error"),
    row("llama-cpp", LongPrompt).says(&["exceeds the available context size"]),
    row("llama-cpp", LongPrompt).says(&["context size has been exceeded"]),
    row("llama-cpp", LongPrompt).says(&["input is too large to process"]),
    row("lm-studio", LongPrompt).says(&["greater than the context length"]),
    row("lm-studio", LongPrompt).says(&["reached context length of"]),
    row("ollama", LongPrompt).says(&["exceeded max context length"]),
    row("ollama", LongPrompt).says(&["input length exceeds", "context length"]),
    row("ds4", LongPrompt).word("context_exceeded"),
    row("litellm", LongPrompt).says(&["contextwindowexceedederror"]),
    row("copilot", LongPrompt).word("model_max_prompt_tokens_exceeded"),
    row("github-models", LongPrompt).word("tokens_limit_reached"),
    row("minimax", LongPrompt).says(&["context window exceeds limit"]),
    row("moonshot", LongPrompt).says(&["input token length too long"]),
    row("dashscope", LongPrompt).says(&["range of input length should be"]),
    row("zhipu", LongPrompt).says(&["prompt exceeds max length"]),
    row("zhipu", LongPrompt).part("context_window"),
    row("baidu", LongPrompt).says(&["prompt tokens too long"]),
    row("baidu", LongPrompt).says(&["the max input characters is"]),
    row("volcengine", LongPrompt).says(&["exceed max message tokens"]),
    row("workers-ai", LongPrompt).says(&["exceeded this model context window limit"]),
    row("snowflake", LongPrompt).says(&["max tokens of", "exceeded"]),
    // Reasoning of another server.
    row("openai", Signature).word("invalid_encrypted_content"),
    row("openai", Signature).says(&["items are not persisted when `store` is set to false"]),
    row("openai", Signature).says(&[
        "of type",
        "was provided without its required following item",
    ]),
    row("anthropic", Signature).says(&["invalid `signature` in `thinking` block"]),
    row("gemini", Signature).says(&["is missing a thought_signature"]),
    // Content against a policy.
    row("openai", AgainstPolicy).part("content_policy"),
    row("openai", AgainstPolicy).part("moderation"),
    row("openai", AgainstPolicy).word("invalid_prompt"),
    row("openai", AgainstPolicy).part("cyber_policy"),
    row("openai", AgainstPolicy).says(&["safety system"]),
    row("openai", AgainstPolicy).says(&["our usage policy"]),
    row("openai", AgainstPolicy).says(&["usage policies"]),
    row("openai", AgainstPolicy).says(&["content policy"]),
    row("openai", AgainstPolicy).says(&["was flagged for possible cybersecurity risk"]),
    row("azure", AgainstPolicy).part("content_filter"),
    row("azure", AgainstPolicy).word("responsibleaipolicyviolation"),
    row("azure", AgainstPolicy).says(&["content management policy"]),
    row("anthropic", AgainstPolicy).says(&["content filtering policy"]),
    row("anthropic", AgainstPolicy).says(&["request contains prohibited content"]),
    row("bedrock", AgainstPolicy).says(&["blocked by our content filters"]),
    row("gemini", AgainstPolicy).word("prohibited_content"),
    row("gemini", AgainstPolicy).says(&["responsible ai practices"]),
    row("xai", AgainstPolicy).says(&["violates usage guidelines"]),
    row("openrouter", AgainstPolicy).says(&["requires moderation", "flagged"]),
    row("openrouter", AgainstPolicy).says(&["violation of provider terms of service"]),
    row("together", AgainstPolicy).says(&["prompt contains nsfw content"]),
    row("deepseek", AgainstPolicy).says(&["content exists risk"]),
    row("moonshot", AgainstPolicy).says(&["considered high risk"]),
    row("zhipu", AgainstPolicy).says(&["不安全或敏感内容"]),
    row("zhipu", AgainstPolicy).says(&["unsafe or sensitive content"]),
    row("dashscope", AgainstPolicy).word("data_inspection_failed"),
    row("dashscope", AgainstPolicy).word("datainspectionfailed"),
    row("dashscope", AgainstPolicy).says(&["data may contain inappropriate content"]),
    row("minimax", AgainstPolicy).says(&["new_sensitive"]),
    row("baidu", AgainstPolicy).word("prompt_sensitive"),
    row("volcengine", AgainstPolicy).part("sensitivecontentdetected"),
    row("stepfun", AgainstPolicy).word("censorship_blocked"),
    row("stability", AgainstPolicy).says(&["flagged by our content moderation"]),
    row("ideogram", AgainstPolicy).says(&["prompt failed safety check"]),
    row("workers-ai", AgainstPolicy).says(&["blocked due to security configurations"]),
    row("litellm", AgainstPolicy).says(&["contentpolicyviolationerror"]),
    row("litellm", AgainstPolicy).says(&["violated guardrail policy"]),
    row("portkey", AgainstPolicy).with(&[446]),
    row("new-api", AgainstPolicy).word("sensitive_words_detected"),
    // The operator's account.
    row("openai", Account).word("insufficient_quota"),
    row("openai", Account).word("usage_not_included"),
    row("openai", Account).part("billing_hard_limit"),
    row("openai", Account).part("billing_not_active"),
    row("openai", Account).part("spend_limit_exceeded"),
    row("openai", Account).says(&["exceeded your current quota"]),
    row("openai", Account).says(&["billing hard limit has been reached"]),
    row("openai", Account).says(&["account is not active"]),
    row("openai", Account).says(&["account", "has been deactivated"]),
    row("openai", Account).says(&["organization must be verified"]),
    row("openai", Account).says(&["your access was terminated"]),
    row("anthropic", Account).word("billing_error"),
    row("anthropic", Account).says(&["credit balance is too low"]),
    row("anthropic", Account).says(&["organization has been disabled"]),
    row("anthropic", Account).says(&["specified api usage limits"]),
    row("anthropic", Account).says(&["out of extra usage"]),
    row("anthropic", Account).says(&["draw from your extra usage"]),
    row("anthropic", Account).says(&["account has been disabled"]),
    row("bedrock", Account).says(&["invalid_payment_instrument"]),
    row("bedrock", Account).says(&["your account is not authorized to invoke"]),
    row("bedrock", Account).says(&["have not been submitted for this account"]),
    row("vertex", Account).word("billing_disabled"),
    row("vertex", Account).word("consumer_suspended"),
    row("vertex", Account).says(&["requires billing to be enabled"]),
    row("gemini", Account).says(&["free tier is not available in your country"]),
    row("gemini", Account).says(&["user location is not supported"]),
    row("gemini", Account).says(&["project has been denied access"]),
    row("deepseek", Account).says(&["insufficient balance"]),
    row("fireworks", Account).says(&["account", "is suspended"]),
    row("groq", Account).word("organization_restricted"),
    row("groq", Account).word("blocked_api_access"),
    row("groq", Account).word("model_terms_required"),
    row("mistral", Account).says(&["inactive subscription or usage limit reached"]),
    row("openrouter", Account).says(&["insufficient credits"]),
    row("openrouter", Account).says(&["requires more credits"]),
    row("openrouter", Account).says(&["key limit exceeded"]),
    row("together", Account).word("credit_limit"),
    row("together", Account).says(&["credit limit exceeded"]),
    row("xai", Account).says(&["used all available credits"]),
    row("xai", Account).says(&["doesn't have any credits"]),
    row("xai", Account).says(&["run out of credits"]),
    row("ollama", Account).says(&["model requires a subscription"]),
    row("ollama", Account).says(&["reached your", "usage limit"]),
    row("huggingface", Account).says(&["monthly included credits"]),
    row("deepinfra", Account).says(&["inference prohibited"]),
    row("moonshot", Account).word("exceeded_current_quota_error"),
    row("moonshot", Account).says(&["exceeded your current token quota"]),
    row("zhipu", Account).says(&["account has been locked"]),
    row("zhipu", Account).says(&["package has expired"]),
    row("zhipu", Account).says(&["余额不足"]),
    row("zhipu", Account).says(&["已欠费"]),
    row("dashscope", Account).word("arrearage"),
    row("dashscope", Account).part("freetieronly"),
    row("dashscope", Account).says(&["account is in good standing"]),
    row("dashscope", Account).says(&["free tier of the model has been exhausted"]),
    row("minimax", Account).says(&["usage limit exceeded"]),
    row("volcengine", Account).word("accountoverdueerror"),
    row("volcengine", Account).says(&["has an overdue balance"]),
    row("volcengine", Account).says(&["reached the set inference limit"]),
    row("siliconflow", Account).says(&["account balance is insufficient"]),
    row("siliconflow", Account).says(&["api key balance is sufficient"]),
    row("novita", Account).word("not_enough_balance"),
    row("copilot", Account).says(&["exceeded your monthly quota"]),
    row("workers-ai", Account).says(&["used up your daily free allocation"]),
    row("watsonx", Account).word("token_quota_reached"),
    row("nvidia", Account).says(&["cloud credits expired"]),
    row("vercel", Account).word("insufficient_funds"),
    row("litellm", Account).word("budget_exceeded"),
    row("litellm", Account).says(&["budget has been exceeded"]),
    row("new-api", Account).word("insufficient_user_quota"),
    row("new-api", Account).part("pre_consume_token_quota"),
    row("new-api", Account).says(&["quota is not enough"]),
    row("new-api", Account).says(&["额度不足"]),
    // The operator's key, model or address, with a status for the client's fault.
    row("gemini", Configuration).word("api_key_invalid"),
    row("gemini", Configuration).says(&["api key not valid"]),
    row("gemini", Configuration).says(&["api key expired"]),
    row("xai", Configuration).says(&["incorrect api key provided"]),
    row("openai", Configuration).word("invalid_api_key"),
    row("openai", Configuration).word("model_not_found"),
    row("anthropic", Configuration).says(&["credential is only authorized for use with"]),
    row("bedrock", Configuration).says(&["model identifier is invalid"]),
    row("bedrock", Configuration).says(&["with on-demand throughput isn"]),
    row("groq", Configuration).word("model_decommissioned"),
    row("mistral", Configuration).word("invalid_model"),
    row("deepseek", Configuration).says(&["model not exist"]),
    row("openrouter", Configuration).says(&["is not a valid model id"]),
    row("together", Configuration).says(&["unable to access model"]),
    row("minimax", Configuration)
        .word("1004")
        .says(&["login fail"]),
    row("zhipu", Configuration).says(&["unknown model, please check"]),
    row("dashscope", Configuration).word("invalidapikey"),
    // Overload.
    row("openai", Overload).word("server_is_overloaded"),
    row("openai", Overload).word("slow_down"),
    row("anthropic", Overload).word("overloaded_error"),
    row("bedrock", Overload).word("modelnotreadyexception"),
    row("bedrock", Overload).word("serviceunavailableexception"),
    row("groq", Overload).with(&[498]),
    row("moonshot", Overload).word("engine_overloaded_error"),
    row("zhipu", Overload).says(&["访问量过大"]),
    row("cerebras", Overload).word("queue_exceeded"),
    row("huggingface", Overload).says(&["is currently loading"]),
    // Rates.
    row("bedrock", Rate).word("throttlingexception"),
    row("bedrock", Rate).word("servicequotaexceededexception"),
    row("moonshot", Rate).word("rate_limit_reached_error"),
    row("minimax", Rate).word("1002").says(&["rate limit"]),
    row("dashscope", Rate).part("throttling"),
    row("databricks", Rate).word("request_limit_exceeded"),
    row("volcengine", Rate).part("ratelimitexceeded"),
    // Sizes.
    row("openai", TooLarge).part("too_large"),
];
