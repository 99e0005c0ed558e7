"""The coding agents, and how each is started without a terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Arguments, and an environment.
Start = tuple[list[str], dict[str, str]]

KEYS = {
    "SLUICEGATE_TEXT_KEY": "sg_test_text_key_000000000000000000",
    "SLUICEGATE_MESSAGES_KEY": "sg_test_messages_key_000000000000000",
    "SLUICEGATE_IMAGE_KEY": "sg_test_images_key_00000000000000000",
}
TEXT_KEY, MESSAGES_KEY, _ = KEYS.values()


class Turn(NamedTuple):
    """A prompt for an agent."""

    # The address of the gateway.
    gateway: str
    model: str
    prompt: str
    # The home folder of the agent.
    home: Path
    # Whether it continues the session before it.
    continues: bool


@dataclass(frozen=True)
class Agent:
    """A coding agent, in a configuration that uses one protocol."""

    name: str
    title: str
    protocol: str
    program: str
    start: Callable[[Turn], Start]
    # The names of the models that it is started with. Codex has other tools for those that it knows.
    models: tuple[str, str] = ("coder", "other")
    # Why it is not run in some scenarios, by their names.
    lacks: tuple[tuple[str, str], ...] = ()
    # False if it never offers tools.
    calls_tools: bool = True
    # Whether it compacts only when the session is continued.
    compacts_later: bool = False
    # Whether it sends its requests over a WebSocket.
    over_websocket: bool = False
    # The status with which it exits after a history has become too long, even if it has gone on.
    overflow_status: int = 0
    # The file of its home with the models that it has found in the gateway's list, if it asks for it.
    found_models: str | None = None

    @property
    def route(self) -> str:
        """The route of its requests in the gateway's log."""
        return {"Responses": "responses", "Messages": "messages", "Chat": "chat_completions"}[self.protocol]


def codex(turn: Turn, over_websocket: bool = False) -> Start:
    provider = f'base_url = "{turn.gateway}/v1", env_key = "SLUICEGATE_TEXT_KEY", wire_api = "responses"'
    provider += f", supports_websockets = {str(over_websocket).lower()}"
    settings = [
        'model_provider="gateway"',
        f'model_providers.gateway={{ name = "Gateway", {provider} }}',
        'model_reasoning_effort="low"',
        "model_auto_compact_token_limit=200000",
        "check_for_update_on_startup=false",
        "analytics.enabled=false",
        "features.plugins=false",
    ]
    # Its sandbox needs features of the kernel that containers lack.
    args = ["exec", "--model", turn.model, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    args += [arg for setting in settings for arg in ("-c", setting)]
    args += ["resume", "--last"] if turn.continues else []
    return [*args, turn.prompt], {"SLUICEGATE_TEXT_KEY": TEXT_KEY}


def claude(turn: Turn) -> Start:
    args = ["-p", "--model", turn.model, "--permission-mode", "acceptEdits"]
    args += ["--continue"] if turn.continues else []
    return [*args, turn.prompt], {
        "ANTHROPIC_BASE_URL": turn.gateway,
        "ANTHROPIC_AUTH_TOKEN": MESSAGES_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY": "1",
    }


def opencode(package: str, key: str, options: dict[str, object]) -> Callable[[Turn], Start]:
    """OpenCode with one of the packages for model servers that it includes, and options for its models."""

    def start(turn: Turn) -> Start:
        server = {"baseURL": f"{turn.gateway}/v1", "apiKey": key}
        models = {turn.model: {"reasoning": True, "options": options}}
        provider = {"npm": f"@ai-sdk/{package}", "options": server, "models": models}
        config = {"autoupdate": False, "share": "disabled", "provider": {"gateway": provider}}
        args = ["run", "--model", f"gateway/{turn.model}", *(["--continue"] if turn.continues else [])]
        return [*args, turn.prompt], {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    return start


def qwen(turn: Turn) -> Start:
    args = ["--auth-type", "openai", "--approval-mode", "auto-edit", *(["--continue"] if turn.continues else [])]
    return [*args, "--prompt", turn.prompt], {
        "OPENAI_BASE_URL": f"{turn.gateway}/v1",
        "OPENAI_API_KEY": TEXT_KEY,
        "OPENAI_MODEL": turn.model,
    }


def cline(provider: str, key: str) -> Callable[[Turn], Start]:
    """Cline with one of its providers, which it reads from a file."""

    def start(turn: Turn) -> Start:
        settings = {"provider": provider, "apiKey": key, "model": turn.model, "baseUrl": f"{turn.gateway}/v1"}
        entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
        file = turn.home / ".cline/data/settings/providers.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"version": 1, "lastUsedProvider": provider, "providers": {provider: entry}}))
        args = ["-P", provider, "-m", turn.model, "--thinking", "low"]
        # Otherwise it leaves a server behind.
        return [*args, turn.prompt], {"CLINE_SESSION_BACKEND_MODE": "local"}

    return start


def aider(turn: Turn) -> Start:
    quiet = ["analytics", "check-update", "git", "pretty", "show-model-warnings", "show-release-notes"]
    args = [*(f"--no-{name}" for name in quiet), "--yes-always"]
    return [*args, "--model", f"openai/{turn.model}", "--message", turn.prompt], {
        "OPENAI_API_BASE": f"{turn.gateway}/v1",
        "OPENAI_API_KEY": TEXT_KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


def known_codex(model: str, other: str) -> Agent:
    """Codex with a model of its catalog."""
    title = f"Codex, `{model}`"
    models = (model, other)
    return Agent(f"codex-{model}", title, "Responses", "codex", codex, models, compacts_later=True, overflow_status=1)


def over_websocket(agent: Agent) -> Agent:
    """Codex with a provider that offers WebSockets."""
    title = f"{agent.title} over WebSocket"
    start = partial(codex, over_websocket=True)
    return replace(agent, name=f"{agent.name}-websocket", title=title, start=start, over_websocket=True)


def open_code(package: str, protocol: str, key: str, options: dict[str, object]) -> Agent:
    """OpenCode with one of its packages for model servers, and options for its models."""
    start = opencode(package, key, options)
    return Agent(f"opencode-{protocol.lower()}", "OpenCode", protocol, "opencode", start, overflow_status=1)


def known_cline(provider: str, protocol: str, key: str) -> Agent:
    """Cline with one of its providers."""
    # `cline --id` wants a terminal. Its compaction goes by its own count of tokens.
    lacks = (("switch", "continues a session only in a terminal"), ("overflow", "ends with the error"))
    return Agent(f"cline-{protocol.lower()}", "Cline", protocol, "cline", cline(provider, key), lacks=lacks)


# Codex has no tool for edits with models that it does not know.
UNKNOWN = tuple((name, "no tool for edits") for name in ["edit", "ten", "switch", "failover", "overflow"])
NO_TOOLS = tuple((name, "no tools") for name in ["edit", "ten", "switch", "failover", "overflow"])
# Its tool for edits refuses a file that it has not read since the compaction, and the scripted model does not react.
READS_AGAIN = (
    ("overflow", "compacts, but then wants the file to be read again, which the scripted model does not do"),
)
# The options by which OpenCode asks for thoughts.
CHAT_OPTIONS: dict[str, object] = {"reasoningEffort": "low"}
RESPONSES_OPTIONS = CHAT_OPTIONS | {"include": ["reasoning.encrypted_content"], "store": False}
THINKING: dict[str, object] = {"thinking": {"type": "enabled", "budgetTokens": 2_000}}

AGENTS = [
    Agent("codex", "Codex, other models", "Responses", "codex", codex, lacks=UNKNOWN),
    known_codex("gpt-5.5", "gpt-5.6-sol"),
    known_codex("gpt-5.6-sol", "gpt-6.2-astra"),
    known_codex("gpt-6.2-astra", "gpt-5.6-sol"),
    over_websocket(known_codex("gpt-5.6-sol", "gpt-6.2-astra")),
    # It shows only models whose ids contain `claude` or `anthropic`.
    Agent(
        "claude-code",
        "Claude Code",
        "Messages",
        "claude",
        claude,
        models=("claude-coder", "claude-other"),
        found_models=".claude/cache/gateway-models.json",
    ),
    known_cline("openai-native", "Responses", TEXT_KEY),
    known_cline("anthropic", "Messages", MESSAGES_KEY),
    known_cline("openai-compatible", "Chat", TEXT_KEY),
    open_code("openai", "Responses", TEXT_KEY, RESPONSES_OPTIONS),
    open_code("anthropic", "Messages", MESSAGES_KEY, THINKING),
    open_code("openai-compatible", "Chat", TEXT_KEY, CHAT_OPTIONS),
    Agent("qwen-code", "Qwen Code", "Chat", "qwen", qwen, lacks=READS_AGAIN),
    Agent("aider", "aider", "Chat", "aider", aider, calls_tools=False, lacks=NO_TOOLS),
]
