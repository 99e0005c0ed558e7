//! The dispositions of the fields of a Messages request.

use vendor::Protocol;

use super::Disposition::{Dropped, Mapped, Refused};
use super::{BY_GATEWAY, Disposition, NOT_NEEDED, Row};

/// A field with its dispositions for Responses and Chat Completions.
const fn row(field: &'static str, responses: Disposition, chat: Disposition) -> Row {
    Row::new(Protocol::Messages, field, responses, chat)
}

pub(super) const ROWS: &[Row] = &[
    row("model", Mapped("`model`"), Mapped("`model`")),
    row("max_tokens", Refused, Refused).is(&["0"]),
    row(
        "max_tokens",
        Mapped("`max_output_tokens`, at least 16"),
        Mapped("`max_tokens` or `max_completion_tokens`"),
    ),
    row(
        "system",
        Mapped("`instructions`"),
        Mapped("a `system` message"),
    ),
    row("messages", Mapped("`input`"), Mapped("`messages`")),
    row("messages[].role", Mapped("`role`"), Mapped("`role`")),
    row(
        "messages[].content",
        Mapped("`content`"),
        Mapped("`content`"),
    ),
    row("messages[].content[]", Dropped, Dropped).is(&["redacted_thinking"]),
    row("messages[].content[]", Mapped("a text"), Mapped("a text"))
        .is(&["search_result", "compaction"]),
    row("messages[].content[]", Dropped, Dropped).unless(SUPPORTED),
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
    row("messages[].content[].citations", Dropped, Dropped).unless(&["[]"]),
    row("messages[].content[].caller", NOT_NEEDED, NOT_NEEDED).is(&["direct"]),
    row(
        "messages[].content[].cache_control",
        Mapped("`prompt_cache_breakpoint`, from GPT-5.6 on"),
        Mapped("`prompt_cache_breakpoint`, from GPT-5.6 on"),
    ),
    row(
        "messages[].content[].source",
        Mapped("`image_url`, `file_data`, `file_url`"),
        Mapped("`image_url`, `file.file_data`"),
    ),
    row(
        "messages[].content[].title",
        Mapped("`filename`"),
        Mapped("`file.filename`"),
    ),
    row("messages[].content[].context", Dropped, Dropped),
    row(
        "messages[].content[].id",
        Mapped("`call_id`"),
        Mapped("`tool_calls[].id`"),
    ),
    row(
        "messages[].content[].name",
        Mapped("`name`"),
        Mapped("`tool_calls[].function.name`"),
    ),
    row(
        "messages[].content[].input",
        Mapped("`arguments`"),
        Mapped("`tool_calls[].function.arguments`"),
    ),
    row(
        "messages[].content[].tool_use_id",
        Mapped("`call_id`"),
        Mapped("`tool_call_id`"),
    ),
    row(
        "messages[].content[].content",
        Mapped("`output`"),
        Mapped("`content`"),
    ),
    row(
        "messages[].content[].content[]",
        Mapped("a part of the `output`"),
        Mapped("`content` of the user, behind the results"),
    )
    .is(&["image", "document"]),
    row(
        "messages[].content[].content[]",
        Mapped("a part of the `output`"),
        Mapped("`content`"),
    ),
    row(
        "messages[].content[].is_error",
        Mapped("`[error] ` before the text"),
        Mapped("`[error] ` before the text"),
    ),
    row(
        "messages[].content[].thinking",
        Mapped("a `reasoning` item, with its signature"),
        Mapped("`reasoning_content`, beside calls"),
    ),
    row(
        "messages[].content[].signature",
        Mapped("`id`, `encrypted_content`, from the gateway's envelope"),
        Mapped("`reasoning_details`, `extra_content`, from the gateway's envelope"),
    )
    .unless(&[""]),
    row("messages[].content[].data", Dropped, Dropped),
    row("stream", Mapped("`stream`"), Mapped("`stream`")),
    row("stop_sequences", BY_GATEWAY, Mapped("`stop`")).unless(&["[]"]),
    row(
        "temperature",
        Mapped("`temperature`"),
        Mapped("`temperature`"),
    ),
    row("top_p", Mapped("`top_p`"), Mapped("`top_p`")),
    row("top_k", Dropped, Dropped),
    row("tools", Mapped("`tools`"), Mapped("`tools`")),
    row("tools[]", Dropped, Dropped).unless(&["", "custom"]),
    row("tools[].type", NOT_NEEDED, NOT_NEEDED),
    row("tools[].name", Mapped("`name`"), Mapped("`function.name`")),
    row(
        "tools[].description",
        Mapped("`description`"),
        Mapped("`function.description`"),
    ),
    row(
        "tools[].input_schema",
        Mapped("`parameters`"),
        Mapped("`function.parameters`"),
    ),
    row(
        "tools[].strict",
        Mapped("`strict`, `false` if absent"),
        Mapped("`function.strict`"),
    ),
    row("tools[].cache_control", Dropped, Dropped),
    row(
        "tool_choice",
        Mapped("`tool_choice`, `parallel_tool_calls`"),
        Mapped("`tool_choice`, `parallel_tool_calls`"),
    ),
    row(
        "thinking.type",
        Mapped("`reasoning.effort`"),
        Mapped("`reasoning_effort`"),
    ),
    row(
        "thinking.budget_tokens",
        Mapped("`reasoning.effort`, by its size"),
        Mapped("`reasoning_effort`, by its size"),
    ),
    row("thinking.display", Mapped("`reasoning.summary`"), Dropped).unless(&["omitted"]),
    row(
        "output_config.effort",
        Mapped("`reasoning.effort`"),
        Mapped("`reasoning_effort`"),
    ),
    row(
        "output_config.format.type",
        Mapped("`text.format.type`"),
        Mapped("`response_format.type`"),
    ),
    row(
        "output_config.format.schema",
        Mapped("`text.format.schema`"),
        Mapped("`response_format.json_schema.schema`"),
    ),
    row("metadata.user_id", Mapped("`user`"), Mapped("`user`")),
    row("cache_control", Dropped, Dropped),
    row("container", Dropped, Dropped),
    row("context_management", Dropped, Dropped),
    row("mcp_servers", Dropped, Dropped).unless(&["[]"]),
    row("service_tier", Dropped, Dropped).unless(&["auto", "default"]),
    row("speed", Dropped, Dropped),
    row("inference_geo", Dropped, Dropped),
    row("diagnostics", Dropped, Dropped),
];

/// The content blocks that every protocol can represent.
const SUPPORTED: &[&str] = &[
    "text",
    "image",
    "document",
    "tool_use",
    "tool_result",
    "thinking",
];
