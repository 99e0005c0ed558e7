//! The dispositions of the fields of a Responses request.

use vendor::Protocol;

use super::Disposition::{Dropped, Mapped, Refused};
use super::{BY_GATEWAY, Disposition, NOT_NEEDED, Row};

/// A field with its dispositions for Chat Completions and Messages.
const fn row(field: &'static str, chat: Disposition, messages: Disposition) -> Row {
    Row::new(Protocol::Responses, field, chat, messages)
}

pub(super) const ROWS: &[Row] = &[
    row("model", Mapped("`model`"), Mapped("`model`")),
    row("input", Mapped("`messages`"), Mapped("`messages`")),
    row(
        "input[]",
        Mapped("a function call, or its result"),
        Mapped("a function call, or its result"),
    )
    .is(CALLS),
    row("input[]", Mapped("`tools`"), Mapped("`tools`")).is(&["additional_tools"]),
    row("input[]", Dropped, Dropped).unless(SUPPORTED),
    row(
        "input[].type",
        Mapped("the place of the item"),
        Mapped("the place of the item"),
    ),
    row("input[].id", NOT_NEEDED, NOT_NEEDED),
    row("input[].status", NOT_NEEDED, NOT_NEEDED),
    row(
        "input[].role",
        Mapped("`role`"),
        Mapped("`role`, or `system`"),
    ),
    row("input[].phase", Dropped, Dropped),
    row("input[].content", Mapped("`content`"), Mapped("`content`")),
    row("input[].content[]", Refused, Refused).is(&["input_audio"]),
    row("input[].content[]", Dropped, Dropped).is(&["reasoning_text"]),
    row("input[].content[].type", Mapped("`type`"), Mapped("`type`")),
    row("input[].content[].text", Mapped("`text`"), Mapped("`text`")),
    row(
        "input[].content[].prompt_cache_breakpoint",
        Mapped("`prompt_cache_breakpoint`, from GPT-5.6 on"),
        Mapped("`cache_control`"),
    ),
    row("input[].content[].annotations", Dropped, Dropped).unless(&["[]"]),
    row("input[].content[].logprobs", Dropped, Dropped).unless(&["[]"]),
    row(
        "input[].content[].image_url",
        Mapped("`image_url.url`"),
        Mapped("`source`"),
    ),
    row(
        "input[].content[].detail",
        Mapped("`image_url.detail`, `original` as `high`"),
        Dropped,
    )
    .unless(&["auto"]),
    row(
        "input[].content[].filename",
        Mapped("`file.filename`"),
        Mapped("`title`"),
    ),
    row(
        "input[].content[].file_data",
        Mapped("`file.file_data`"),
        Mapped("`source`, PDF or text"),
    ),
    row("input[].content[].file_url", Refused, Mapped("`source`")),
    row("input[].content[].file_id", Refused, Refused),
    row("input[].content[].input_audio", Refused, Refused),
    row(
        "input[].content[].refusal",
        Mapped("`refusal`"),
        Mapped("a `text` block"),
    ),
    row(
        "input[].call_id",
        Mapped("`id`, `tool_call_id`"),
        Mapped("`id`, `tool_use_id`"),
    ),
    row("input[].name", Mapped("`function.name`"), Mapped("`name`")),
    row(
        "input[].arguments",
        Mapped("`function.arguments`"),
        Mapped("`input`"),
    ),
    row("input[].output", Mapped("`content`"), Mapped("`content`")),
    row(
        "input[].output[]",
        Mapped("`content` of the user, behind the results"),
        Mapped("a block of the result"),
    )
    .is(&["input_image", "input_file"]),
    row(
        "input[].output[]",
        Mapped("`content`"),
        Mapped("a block of the result"),
    ),
    row(
        "input[].summary",
        Mapped("`reasoning_content`, beside calls"),
        Mapped("`thinking`, with its signature"),
    ),
    row(
        "input[].encrypted_content",
        Mapped("`reasoning_details`, `extra_content`, from the gateway's envelope"),
        Mapped("`signature` or `data`, from the gateway's envelope"),
    ),
    row(
        "input[].extra_content",
        Mapped("`reasoning_details`, `extra_content`, from the gateway's envelope"),
        Mapped("`signature` or `data`, from the gateway's envelope"),
    ),
    row(
        "input[].input",
        Mapped("`function.arguments`"),
        Mapped("`input`"),
    ),
    row(
        "input[].namespace",
        Mapped("`function.name`"),
        Mapped("`name`"),
    ),
    row("input[].tools", Mapped("`tools`"), Mapped("`tools`")),
    row(
        "input[].action",
        Mapped("`function.arguments`"),
        Mapped("`input`"),
    ),
    row(
        "input[].operation",
        Mapped("`function.arguments`"),
        Mapped("`input`"),
    ),
    row("input[].execution", NOT_NEEDED, NOT_NEEDED),
    row(
        "instructions",
        Mapped("a `system` message"),
        Mapped("`system`"),
    ),
    row(
        "max_output_tokens",
        Mapped("`max_tokens` or `max_completion_tokens`"),
        Mapped("`max_tokens`"),
    ),
    row("stream", Mapped("`stream`"), Mapped("`stream`")),
    row("stream_options.include_obfuscation", BY_GATEWAY, BY_GATEWAY),
    row("tools", Mapped("`tools`"), Mapped("`tools`")),
    row("tools[]", Dropped, Dropped).unless(&["function", "custom", "namespace", "tool_search"]),
    row("tools[].type", Mapped("`type`"), NOT_NEEDED),
    row("tools[].name", Mapped("`function.name`"), Mapped("`name`")),
    row(
        "tools[].description",
        Mapped("`function.description`"),
        Mapped("`description`"),
    ),
    row(
        "tools[].parameters",
        Mapped("`function.parameters`"),
        Mapped("`input_schema`"),
    ),
    row(
        "tools[].strict",
        Mapped("`function.strict`, by the schema if absent"),
        Dropped,
    )
    .unless(&["false"]),
    row(
        "tools[].function",
        Mapped("`function`"),
        Mapped("the same as the fields"),
    ),
    row(
        "tools[].format",
        Mapped("`function.parameters`, as a description"),
        Mapped("`input_schema`, as a description"),
    ),
    row(
        "tools[].tools",
        Mapped("`tools`, with joined names"),
        Mapped("`tools`, with joined names"),
    ),
    row("tools[].execution", NOT_NEEDED, NOT_NEEDED),
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
    row("max_tool_calls", Dropped, Dropped),
    row(
        "temperature",
        Mapped("`temperature`"),
        Mapped("`temperature`, at most 1"),
    ),
    row("top_p", Mapped("`top_p`"), Mapped("`top_p`")),
    row("presence_penalty", Mapped("`presence_penalty`"), Dropped).unless(&["0"]),
    row("frequency_penalty", Mapped("`frequency_penalty`"), Dropped).unless(&["0"]),
    row("top_logprobs", Mapped("`top_logprobs`"), Refused).unless(&["0"]),
    row("include[]", Mapped("`logprobs`"), Refused).is(&["message.output_text.logprobs"]),
    row(
        "include[]",
        Mapped("`reasoning_details`, `extra_content`, in the gateway's envelope"),
        Mapped("`signature` or `data`, in the gateway's envelope"),
    )
    .is(&["reasoning.encrypted_content"]),
    row("include[]", Dropped, Dropped),
    row("text.format", Mapped("`response_format`"), Refused).is(&["json_object"]),
    row(
        "text.format.type",
        Mapped("`response_format.type`"),
        Mapped("`output_config.format.type`"),
    ),
    row(
        "text.format.name",
        Mapped("`response_format.json_schema.name`"),
        Dropped,
    ),
    row(
        "text.format.description",
        Mapped("`response_format.json_schema.description`"),
        Dropped,
    ),
    row(
        "text.format.schema",
        Mapped("`response_format.json_schema.schema`"),
        Mapped("`output_config.format.schema`"),
    ),
    row(
        "text.format.strict",
        Mapped("`response_format.json_schema.strict`"),
        Dropped,
    )
    .unless(&["true"]),
    row("text.verbosity", Mapped("`verbosity`"), Dropped),
    row(
        "reasoning.effort",
        Mapped("`reasoning_effort`"),
        Mapped("`thinking`, `output_config.effort`"),
    ),
    row("reasoning.summary", Dropped, Mapped("`thinking.display`")),
    row(
        "reasoning.generate_summary",
        Dropped,
        Mapped("`thinking.display`"),
    ),
    row("metadata", BY_GATEWAY, BY_GATEWAY),
    row("store", Dropped, Dropped).unless(&["false"]),
    row("previous_response_id", Refused, Refused),
    row("conversation", Refused, Refused),
    row("prompt", Refused, Refused),
    row("background", Refused, Refused).unless(&["false"]),
    row("truncation", Dropped, Dropped).unless(&["disabled"]),
    row("service_tier", Mapped("`service_tier`"), Dropped).unless(&["auto", "default"]),
    row("user", Mapped("`user`"), Mapped("`metadata.user_id`")),
    row(
        "safety_identifier",
        Mapped("`safety_identifier`"),
        Mapped("`metadata.user_id`"),
    ),
    row("prompt_cache_key", Mapped("`prompt_cache_key`"), Dropped),
    row("prompt_cache_retention", Dropped, Dropped),
    row("prompt_cache_options", Dropped, Dropped),
    row("context_management", Dropped, Dropped),
    row("moderation", Dropped, Dropped),
    row("access_programs", Dropped, Dropped),
    row("image", Dropped, Dropped),
    row("client_metadata", Dropped, Dropped),
];

/// The items that every protocol can represent; a message may omit its type.
const SUPPORTED: &[&str] = &[
    "message",
    "user",
    "assistant",
    "system",
    "developer",
    "function_call",
    "function_call_output",
    "reasoning",
];

/// The values of `tool_choice` that do not name a hosted tool.
const CHOICES: &[&str] = &[
    "auto",
    "none",
    "required",
    "function",
    "allowed_tools",
    "custom",
    "tool_search",
];

/// Calls of tools that run at the client, and their results.
const CALLS: &[&str] = &[
    "custom_tool_call",
    "custom_tool_call_output",
    "tool_search_call",
    "tool_search_output",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
];
