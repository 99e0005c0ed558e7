//! The dispositions of the fields of a Chat Completions request.

use vendor::Protocol;

use super::Disposition::{Dropped, Mapped, Refused};
use super::{BY_GATEWAY, Disposition, NOT_NEEDED, Row};

/// A field with its dispositions for Responses and Messages.
const fn row(field: &'static str, responses: Disposition, messages: Disposition) -> Row {
    Row::new(Protocol::Chat, field, responses, messages)
}

pub(super) const ROWS: &[Row] = &[
    row("model", Mapped("`model`"), Mapped("`model`")),
    row("messages", Mapped("`input`"), Mapped("`messages`")),
    row(
        "messages[].role",
        Mapped("`role`, or `instructions`"),
        Mapped("`role`, or `system`"),
    ),
    row("messages[].name", Dropped, Dropped),
    row(
        "messages[].content",
        Mapped("`content`, or `output`"),
        Mapped("`content`"),
    ),
    row("messages[].content[]", Refused, Refused).is(&["input_audio"]),
    row(
        "messages[].content[].type",
        Mapped("`type`"),
        Mapped("`type`"),
    ),
    row(
        "messages[].content[].text",
        Mapped("`text`"),
        Mapped("`text`"),
    ),
    row(
        "messages[].cache_control",
        Mapped("`prompt_cache_breakpoint`, from GPT-5.6 on"),
        Mapped("`cache_control`"),
    ),
    row(
        "messages[].content[].cache_control",
        Mapped("`prompt_cache_breakpoint`, from GPT-5.6 on"),
        Mapped("`cache_control`"),
    ),
    row(
        "messages[].content[].prompt_cache_breakpoint",
        Mapped("`prompt_cache_breakpoint`, from GPT-5.6 on"),
        Mapped("`cache_control`"),
    ),
    row(
        "messages[].content[].image_url.url",
        Mapped("`image_url`"),
        Mapped("`source`"),
    ),
    row(
        "messages[].content[].image_url.detail",
        Mapped("`detail`"),
        Dropped,
    )
    .unless(&["auto"]),
    row("messages[].content[].input_audio", Refused, Refused),
    row(
        "messages[].content[].file.filename",
        Mapped("`filename`"),
        Mapped("`title`"),
    ),
    row(
        "messages[].content[].file.file_data",
        Mapped("`file_data`"),
        Mapped("`source`, PDF or text"),
    ),
    row("messages[].content[].file.file_id", Refused, Refused),
    row(
        "messages[].content[].refusal",
        Mapped("`refusal`"),
        Mapped("a `text` block"),
    ),
    row(
        "messages[].refusal",
        Mapped("a `refusal` part"),
        Mapped("a `text` block"),
    ),
    row(
        "messages[].reasoning_content",
        Mapped("(left out, see above)"),
        Mapped("(left out, see above)"),
    ),
    row(
        "messages[].reasoning",
        Mapped("(left out, see above)"),
        Mapped("(left out, see above)"),
    ),
    row(
        "messages[].reasoning_details",
        Mapped("`id`, `encrypted_content`, from the gateway's envelope"),
        Mapped("`signature` or `data`, from the gateway's envelope"),
    ),
    row(
        "messages[].tool_calls",
        Mapped("`function_call` items"),
        Mapped("`tool_use` blocks"),
    ),
    row(
        "messages[].tool_calls[].type",
        Mapped("`type`"),
        Mapped("`type`"),
    ),
    row(
        "messages[].tool_calls[].id",
        Mapped("`call_id`"),
        Mapped("`id`"),
    ),
    row(
        "messages[].tool_calls[].function",
        Mapped("`name`, `arguments`"),
        Mapped("`name`, `input`"),
    ),
    row(
        "messages[].tool_calls[].custom",
        Mapped("`name`, `arguments` with the `input`"),
        Mapped("`name`, `input` with the `input`"),
    ),
    row(
        "messages[].function_call",
        Mapped("a `function_call` item"),
        Mapped("a `tool_use` block"),
    ),
    row(
        "messages[].tool_call_id",
        Mapped("`call_id`"),
        Mapped("`tool_use_id`"),
    ),
    row(
        "max_tokens",
        Mapped("`max_output_tokens`"),
        Mapped("`max_tokens`"),
    ),
    row(
        "max_completion_tokens",
        Mapped("`max_output_tokens`"),
        Mapped("`max_tokens`"),
    ),
    row("stream", Mapped("`stream`"), Mapped("`stream`")),
    row("stream_options.include_usage", BY_GATEWAY, BY_GATEWAY),
    row("stream_options.include_obfuscation", BY_GATEWAY, BY_GATEWAY),
    row("response_format", Mapped("`text.format`"), Refused).is(&["json_object"]),
    row(
        "response_format.type",
        Mapped("`text.format.type`"),
        Mapped("`output_config.format.type`"),
    ),
    row(
        "response_format.json_schema",
        Mapped("`text.format` of `json_object`"),
        Refused,
    )
    .without("schema"),
    row(
        "response_format.json_schema.name",
        Mapped("`text.format.name`"),
        Dropped,
    ),
    row(
        "response_format.json_schema.description",
        Mapped("`text.format.description`"),
        Dropped,
    ),
    row(
        "response_format.json_schema.schema",
        Mapped("`text.format.schema`"),
        Mapped("`output_config.format.schema`"),
    ),
    row(
        "response_format.json_schema.strict",
        Mapped("`text.format.strict`"),
        Dropped,
    )
    .unless(&["true"]),
    row("tools", Mapped("`tools`"), Mapped("`tools`")),
    row("tools[]", Dropped, Dropped).unless(&["function", "custom"]),
    row("tools[].type", Mapped("`type`"), NOT_NEEDED),
    row("tools[].function.name", Mapped("`name`"), Mapped("`name`")),
    row(
        "tools[].function.description",
        Mapped("`description`"),
        Mapped("`description`"),
    ),
    row(
        "tools[].function.parameters",
        Mapped("`parameters`"),
        Mapped("`input_schema`"),
    ),
    row(
        "tools[].function.strict",
        Mapped("`strict`, `false` if absent"),
        Dropped,
    )
    .unless(&["false"]),
    row(
        "tools[].custom",
        Mapped("a function with one text"),
        Mapped("a tool with one text"),
    ),
    row("tools[].cache_control", Dropped, Mapped("`cache_control`")),
    row("tool_choice", Refused, Refused).unless(CHOICES),
    row(
        "tool_choice",
        Mapped("`tool_choice`, `tools`"),
        Mapped("`tool_choice`, `tools`"),
    ),
    row(
        "parallel_tool_calls",
        Mapped("`parallel_tool_calls`"),
        Mapped("`tool_choice.disable_parallel_tool_use`"),
    ),
    row(
        "temperature",
        Mapped("`temperature`"),
        Mapped("`temperature`, at most 1"),
    ),
    row("top_p", Mapped("`top_p`"), Mapped("`top_p`")),
    row("presence_penalty", Mapped("`presence_penalty`"), Dropped).unless(&["0"]),
    row("frequency_penalty", Mapped("`frequency_penalty`"), Dropped).unless(&["0"]),
    row("stop", BY_GATEWAY, Mapped("`stop_sequences`")),
    row("n", Refused, Refused).unless(&["1"]),
    row("logprobs", Mapped("`include`"), Refused).unless(&["false"]),
    row("top_logprobs", Mapped("`top_logprobs`"), Refused).unless(&["0"]),
    row("logit_bias", Dropped, Dropped).unless(&["{}"]),
    row("seed", Dropped, Dropped),
    row(
        "reasoning_effort",
        Mapped("`reasoning.effort`"),
        Mapped("`thinking`, `output_config.effort`"),
    ),
    row("verbosity", Mapped("`text.verbosity`"), Dropped),
    row("user", Mapped("`user`"), Mapped("`metadata.user_id`")),
    row(
        "safety_identifier",
        Mapped("`safety_identifier`"),
        Mapped("`metadata.user_id`"),
    ),
    row("modalities[]", Refused, Refused).unless(&["text"]),
    row("modalities[]", BY_GATEWAY, BY_GATEWAY),
    row("audio", Refused, Refused),
    row("web_search_options", Refused, Refused),
    row("functions", Refused, Refused),
    row("function_call", Refused, Refused),
    row("metadata", Mapped("`metadata`"), Dropped).unless(&["{}"]),
    row("store", Dropped, Dropped).unless(&["false"]),
    row("service_tier", Mapped("`service_tier`"), Dropped).unless(&["auto", "default"]),
    row("prediction", Dropped, Dropped),
    row("prompt_cache_key", Mapped("`prompt_cache_key`"), Dropped),
    row(
        "thinking",
        Mapped("`reasoning.effort`"),
        Mapped("`thinking`, `output_config.effort`"),
    ),
    row(
        "reasoning",
        Mapped("`reasoning.effort`"),
        Mapped("`thinking`, `output_config.effort`"),
    ),
    row("top_k", Dropped, Mapped("`top_k`")),
    row("enable_thinking", Dropped, Dropped),
    row("chat_template_kwargs", Dropped, Dropped),
];

/// The values of `tool_choice` that name no tool of the vendor.
const CHOICES: &[&str] = &[
    "auto",
    "none",
    "required",
    "function",
    "allowed_tools",
    "custom",
];
