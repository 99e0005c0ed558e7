"""The models of `sluicegate.toml`, by the paths at which they are asked."""

from __future__ import annotations

# The models at the simulator, the one that is relayed first, and the embedded one.
MESSAGES = ("msg-sonnet-5", "messages-by-chat", "messages-by-responses"), "messages-embedded"
IMAGES = ("model-image-2.5-flare",), "images-embedded"
MODELS = {
    "/v1/responses": (("text-by-responses", "alt-flash", "text-by-messages"), "text-embedded"),
    "/v1/chat/completions": (("alt-flash", "text-by-responses", "text-by-messages"), "text-embedded"),
    "/v1/messages": MESSAGES,
    # The other protocols cannot count ahead.
    "/v1/messages/count_tokens": (MESSAGES[0][:1], MESSAGES[1]),
    "/v1/images/generations": IMAGES,
    "/v1/images/edits": IMAGES,
}
EMBEDDED = {embedded for _, embedded in MODELS.values()}


def is_served(path: str, model: object) -> bool:
    """Whether the model may be asked at this path; images are drawn by a usual one where none is named."""
    simulated, embedded = MODELS[path]
    return model in (*simulated, embedded) or (model is None and "images" in path)


def is_relayed(path: str, model: object) -> bool:
    """Whether an upstream of the path's own protocol is asked, as for pictures where no model is named."""
    return model == MODELS[path][0][0] or (model is None and "images" in path)
