"""What the vendors document of the fields of a request, written by hand: a request that breaks it is wrong for certain.

The gateway's own document is made from the types that read requests, so a mistake in a type is in both. This is the
second opinion. It knows fields, types, ranges and closed lists of words. What it does not know is left open: other
fields, kinds that only some vendors have, and rules about two fields at once.

Chat Completions, Responses and Images: https://platform.openai.com/docs/api-reference
Messages: https://docs.anthropic.com/en/api/messages
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "number"}
OBJECT: Schema = {"type": "object"}


def integer(low: int = -(2**63), high: int = 2**63 - 1) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high}


def number(low: int, high: int) -> Schema:
    return {"type": "number", "minimum": low, "maximum": high}


def text(low: int, high: int) -> Schema:
    return {"type": "string", "minLength": low, "maxLength": high}


def name(high: int) -> Schema:
    """The name of a function or of a schema."""
    return {"type": "string", "pattern": f"^[a-zA-Z0-9_-]{{1,{high}}}$"}


def words(*known: str) -> Schema:
    return {"enum": list(known)}


def many(items: Schema, low: int = 0, high: int | None = None) -> Schema:
    limits = {"minItems": low} | ({} if high is None else {"maxItems": high})
    return {"type": "array", "items": items} | limits


def either(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def fields(required: dict[str, Schema], **optional: Schema) -> Schema:
    """An object with these members among others; null stands for an optional one that is absent."""
    members = required | {name: either(schema, {"type": "null"}) for name, schema in optional.items()}
    return {"type": "object", "properties": members, "required": list(required)}


def kinds(known: dict[str, Schema], tag: str = "type", *, others: Schema | None = None) -> Schema:
    """An object whose tag says which of these it is, or one of the others."""
    choices = [
        {"if": {"properties": {tag: {"const": kind}}, "required": [tag]}, "then": schema}
        for kind, schema in known.items()
    ]
    tags = either(words(*known), others) if others else words(*known)
    return fields({tag: tags}) | ({"allOf": choices} if choices else {})


def with_null(schema: Schema, tag: str) -> Schema:
    """The schema where the tag is absent."""
    return {"allOf": [schema, {"properties": {tag: {"type": "null"}}}]}


def matching(pattern: str) -> Schema:
    return {"type": "string", "pattern": pattern}


def contents(parts: dict[str, Schema], others: Schema | None = None) -> Schema:
    """A text, or parts of these kinds."""
    return either(TEXT, many(kinds(parts, others=others)))


SAMPLING = {
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "presence_penalty": number(-2, 2),
    "frequency_penalty": number(-2, 2),
    "top_logprobs": integer(0, 20),
}
EFFORT = words("none", "minimal", "low", "medium", "high", "xhigh", "max")
MUCH = 1 << 20
MODEL = WORD = text(1, MUCH)
# What the vendors' own tools and services make or are.
HOSTED_ITEMS = matching(
    "_call$|_call_output$|^(mcp_|tool_search_)|^(compaction|additional_tools|program|program_output)$"
)
HOSTED_TOOLS = matching(
    "^(custom|file_search|code_interpreter|image_generation|mcp|local_shell|shell|apply_patch|namespace|tool_search)$"
    "|^(web_search|computer)"
)
CARRIED = matching("_tool_result$|^(search_result|server_tool_use|mcp_tool_use|container_upload|tool_reference)$")


def mode(relayed: bool) -> Schema:
    """The choice of a tool in a word, which only the upstream judges where the request is relayed."""
    return WORD if relayed else words("none", "auto", "required")


def chat(*, relayed: bool) -> Schema:
    # Tools and calls of other kinds, which are the upstream's to judge.
    others = WORD if relayed else None
    part = fields({"text": TEXT})
    image = fields({"image_url": either(TEXT, fields({"url": TEXT}))})
    refusal = fields({"refusal": TEXT})
    every = {"text": part, "image_url": image, "input_audio": {}, "file": {}, "refusal": refusal} if relayed else {}
    texts = contents({"text": part} | every)
    function = fields({"id": TEXT, "function": fields({"name": TEXT, "arguments": TEXT})})
    # A call without a kind is one of a function.
    call = either(kinds({"function": function, "custom": {}}, others=others), with_null(function, "type"))
    message = kinds(
        {
            "system": fields({"content": texts}),
            "developer": fields({"content": texts}),
            "user": fields(
                {"content": contents({"text": part, "image_url": image, "input_audio": {}, "file": {}} | every)}
            ),
            "assistant": fields({}, content=contents({"text": part, "refusal": refusal} | every), tool_calls=many(call)),
            "tool": fields(
                {"content": contents({"text": part, "image_url": image, "file": {}} | every), "tool_call_id": TEXT}
            ),
            "function": {},
        },
        "role",
    )
    offered = fields({"name": name(64)}, description=TEXT, parameters=OBJECT, strict=FLAG)
    schema = fields({"name": name(64)}, schema=OBJECT, strict=FLAG)
    choice = {"function": fields({"function": fields({"name": TEXT})}), "custom": {}}
    allowed = fields({"tools": many(kinds(choice))}, mode=WORD if relayed else words("auto", "required"))
    return fields(
        {"model": MODEL, "messages": many(message, 1)},
        max_tokens=integer(1),
        max_completion_tokens=integer(1),
        stream=FLAG,
        stream_options=fields({}, include_usage=FLAG, include_obfuscation=FLAG),
        response_format=kinds({"text": {}, "json_object": {}, "json_schema": fields({"json_schema": schema})}),
        tools=many(kinds({"function": fields({"function": offered}), "custom": {}}, others=others), 0, 128),
        tool_choice=either(mode(relayed), kinds(choice | {"allowed_tools": fields({"allowed_tools": allowed})})),
        parallel_tool_calls=FLAG,
        stop=either(TEXT, many(TEXT, 1, None if relayed else 4)),
        n=integer(1, 128),
        logprobs=FLAG,
        seed=integer(),
        reasoning_effort=EFFORT,
        **SAMPLING,
    )


def responses(*, relayed: bool) -> Schema:
    part = fields({"text": TEXT})
    image = fields({}, image_url=TEXT, detail=words("auto", "low", "high", "original"))
    file: Schema = {}
    told = {"input_text": part, "text": part}
    said = {"output_text": part, "refusal": fields({"refusal": TEXT}), "text": part}
    found = {"input_text": part, "input_image": image, "input_file": file, "text": part}
    if relayed:
        told = said = found = found | said | {"input_audio": {}}
    message = kinds(
        {
            "user": fields({"content": contents(found | {"input_audio": {}})}),
            "system": fields({"content": contents(told)}),
            "developer": fields({"content": contents(told)}),
            "assistant": fields({"content": contents(said)}),
        },
        "role",
    )
    items = {
        "message": message,
        "function_call": fields({"call_id": TEXT if relayed else text(1, 64), "name": TEXT, "arguments": TEXT}),
        "function_call_output": fields({"output": contents(found)}),
        "custom_tool_call": {},
        "custom_tool_call_output": {},
        "reasoning": fields({}, summary=many(kinds({"summary_text": part}))),
        "item_reference": {},
    }
    # An item without a type is a message when it has a role.
    has_type = {"properties": {"type": TEXT}, "required": ["type"]}
    item = {"type": "object", "if": has_type, "then": kinds(items, others=HOSTED_ITEMS), "else": message}
    described = {"description": TEXT, "parameters": OBJECT, "strict": FLAG}
    function = fields({}, name=name(64), function=fields({}, name=name(64), **described), **described)
    form = {"text": {}, "json_object": {}, "json_schema": fields({"name": name(64), "schema": OBJECT}, strict=FLAG)}
    choice: dict[str, Schema] = {"function": {}}
    allowed = fields({"tools": many(kinds(choice, others=HOSTED_TOOLS))}, mode=WORD if relayed else words("auto", "required"))
    pairs = {"maxProperties": 16, "propertyNames": {"maxLength": 64}, "additionalProperties": text(0, 512)}
    return fields(
        {"model": MODEL, "input": either(TEXT, many(item, 1))},
        instructions=TEXT,
        max_output_tokens=integer(1),
        max_tool_calls=integer(1),
        stream=FLAG,
        stream_options=fields({}, include_obfuscation=FLAG),
        tools=many(kinds({"function": function}, others=HOSTED_TOOLS), 0, 128),
        tool_choice=either(mode(relayed), kinds(choice | {"allowed_tools": allowed}, others=HOSTED_TOOLS)),
        parallel_tool_calls=FLAG,
        text=fields({}, format=kinds(form), verbosity=words("low", "medium", "high")),
        reasoning=fields({}, effort=EFFORT, summary=words("auto", "concise", "detailed")),
        include=many(TEXT),
        metadata={"type": "object"} | pairs,
        background=FLAG,
        truncation=words("auto", "disabled"),
        **SAMPLING,
    )


def messages(*, cap: bool, relayed: bool) -> Schema:
    """A request for a message; one for a count does without a cap and is not held to what governs the answer."""
    part = fields({"text": TEXT})
    url = fields({"url": matching("^[hH][tT][tT][pP][sS]://.")})
    media = WORD if relayed else words("image/png", "image/jpeg", "image/webp", "image/gif")
    image = fields({"source": kinds({"base64": fields({"media_type": media, "data": text(1, MUCH)}), "url": url})})
    pdf = fields({"media_type": WORD if relayed else words("application/pdf"), "data": text(1, MUCH)})
    within = {"$ref": "#/$defs/contents"} if relayed else None
    inner = within or contents({"text": part, "image": image}, others=CARRIED)
    sources = {"base64": pdf, "text": fields({"data": TEXT}), "url": url, "content": fields({"content": inner})}
    seen = {"text": part, "image": image, "document": fields({"source": kinds(sources)})}
    found = within or contents(seen, others=CARRIED)
    result = {"tool_result": fields({"tool_use_id": TEXT}, content=found, is_error=FLAG)}
    said = {
        "text": part,
        "tool_use": fields({"id": TEXT, "name": TEXT, "input": OBJECT}),
        "thinking": fields({"thinking": TEXT}),
        "redacted_thinking": fields({"data": TEXT}),
    }
    texts = within or contents({"text": part}, others=CARRIED)
    message = kinds(
        {
            "user": fields({"content": within or contents(seen | result, others=CARRIED)}),
            "assistant": fields({"content": within or contents(said, others=CARRIED)}),
            "system": fields({}, content=texts),
        },
        "role",
    )
    custom = fields({"name": name(128), "input_schema": OBJECT}, description=TEXT)
    # A tool without a type is a custom one.
    is_custom = {"properties": {"type": {"enum": [None, "custom"]}}}
    tool = {"type": "object", "if": is_custom, "then": custom, "else": fields({"type": TEXT})}
    modes = {"enabled": fields({"budget_tokens": integer(1024)}), "disabled": {}, "adaptive": {}, "between_tools": {}}
    effort = words("low", "medium", "high", "xhigh", "max")
    form = kinds({"json_schema": fields({"schema": OBJECT})})
    governing = {"temperature": number(0, 1), "top_p": number(0, 1), "top_k": integer(0)}
    unread = {"max_tokens": integer(), "temperature": NUMBER, "top_p": NUMBER, "top_k": integer()}
    shared = {"$defs": {"contents": contents(seen | result | said, others=CARRIED)}} if relayed else {}
    return shared | fields(
        {"model": MODEL, "messages": many(message, 1)} | ({"max_tokens": integer(1)} if cap else {}),
        system=texts,
        stream=FLAG,
        stop_sequences=many(TEXT),
        tools=many(tool),
        tool_choice=kinds({"auto": {}, "any": {}, "none": {}, "tool": fields({"name": TEXT})}),
        thinking={"allOf": [kinds(modes), fields({}, display=words("summarized", "omitted", "updates"))]},
        output_config=fields({}, effort=effort, format=form),
        metadata=fields({}, user_id=TEXT),
        **(governing if cap else unread),
    )


def images(*, edits: bool, relayed: bool) -> Schema:
    reference = fields({}, image_url=TEXT)
    pictures = {"images": many(reference, 1, 16), "mask": reference} if edits else {}
    return fields(
        {"prompt": text(1, 32_000)},
        model=MODEL,
        n=integer(1, 10),
        size={"type": "string", "pattern": "^(auto|[1-9][0-9]{1,4}x[1-9][0-9]{1,4})$"},
        quality=words("low", "medium", "high", "xhigh", "max", "auto"),
        background=words("transparent", "opaque", "auto"),
        output_format=words("png", "jpeg", "webp"),
        output_compression=integer(0, 100),
        partial_images=integer(0, 3),
        response_format=WORD if relayed else words("b64_json"),
        stream=FLAG,
        seed=integer(),
        **pictures,
    )


def known(*, relayed: bool) -> dict[str, Schema]:
    """The schemas by path, of requests that are relayed to an upstream of the path's own protocol or of all others."""
    return {
        "/v1/responses": responses(relayed=relayed),
        "/v1/chat/completions": chat(relayed=relayed),
        "/v1/messages": messages(cap=True, relayed=relayed),
        "/v1/messages/count_tokens": messages(cap=False, relayed=relayed),
        "/v1/images/generations": images(edits=False, relayed=relayed),
        "/v1/images/edits": images(edits=True, relayed=relayed),
    }


# By path.
KNOWN, RELAYED = known(relayed=False), known(relayed=True)
# Of a form, whose files are no part of it.
KNOWN_FORM, RELAYED_FORM = images(edits=False, relayed=False), images(edits=False, relayed=True)
