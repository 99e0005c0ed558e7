"""The coding agents, and how each is started without a terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

# Arguments, and an environment.
Start = tuple[list[str], dict[str, str]]

KEYS = {
    "SLUICEGATE_TEXT_KEY": "sg_test_text_key_000000000000000000",
    "SLUICEGATE_MESSAGES_KEY": "sg_test_messages_key_000000000000000",
    "SLUICEGATE_IMAGE_KEY": "sg_test_images_key_00000000000000000",
}
TEXT_KEY, MESSAGES_KEY, _ = KEYS.values()


@dataclass(frozen=True)
class Agent:
    """A coding agent, in a configuration that uses one protocol."""

    name: str
    title: str
    protocol: str
    program: str
    # Called with the address of the gateway, the model and the prompt.
    start: Callable[[str, str, str], Start]
    # False if it never offers tools.
    calls_tools: bool = True

    @property
    def route(self) -> str:
        """The route of its requests in the gateway's log."""
        return {"Responses": "responses", "Messages": "messages", "Chat": "chat_completions"}[self.protocol]


def codex(gateway: str, model: str, prompt: str) -> Start:
    provider = f'name = "Gateway", base_url = "{gateway}/v1", env_key = "SLUICEGATE_TEXT_KEY", wire_api = "responses"'
    settings = [
        'model_provider="gateway"',
        f"model_providers.gateway={{ {provider} }}",
        'model_reasoning_effort="low"',
        "check_for_update_on_startup=false",
        "analytics.enabled=false",
        "features.plugins=false",
    ]
    # Its sandbox needs features of the kernel that containers lack.
    args = ["exec", "--model", model, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    args += [arg for setting in settings for arg in ("-c", setting)]
    return [*args, prompt], {"SLUICEGATE_TEXT_KEY": TEXT_KEY}


def claude(gateway: str, model: str, prompt: str) -> Start:
    return ["-p", "--model", model, "--permission-mode", "acceptEdits", prompt], {
        "ANTHROPIC_BASE_URL": gateway,
        "ANTHROPIC_AUTH_TOKEN": MESSAGES_KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def opencode(package: str, key: str) -> Callable[[str, str, str], Start]:
    """OpenCode with one of the packages for model servers that it includes."""

    def start(gateway: str, model: str, prompt: str) -> Start:
        options = {"baseURL": f"{gateway}/v1", "apiKey": key}
        provider = {"npm": f"@ai-sdk/{package}", "options": options, "models": {model: {}}}
        config = {"autoupdate": False, "share": "disabled", "provider": {"gateway": provider}}
        return ["run", "--model", f"gateway/{model}", prompt], {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
        }

    return start


def qwen(gateway: str, model: str, prompt: str) -> Start:
    return ["--auth-type", "openai", "--approval-mode", "auto-edit", "--prompt", prompt], {
        "OPENAI_BASE_URL": f"{gateway}/v1",
        "OPENAI_API_KEY": TEXT_KEY,
        "OPENAI_MODEL": model,
    }


def aider(gateway: str, model: str, prompt: str) -> Start:
    quiet = ["analytics", "check-update", "git", "pretty", "show-model-warnings", "show-release-notes"]
    args = [*(f"--no-{name}" for name in quiet), "--yes-always"]
    return [*args, "--model", f"openai/{model}", "--message", prompt], {
        "OPENAI_API_BASE": f"{gateway}/v1",
        "OPENAI_API_KEY": TEXT_KEY,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }


AGENTS = [
    Agent("codex", "Codex", "Responses", "codex", codex),
    Agent("claude-code", "Claude Code", "Messages", "claude", claude),
    Agent("opencode-responses", "OpenCode", "Responses", "opencode", opencode("openai", TEXT_KEY)),
    Agent("opencode-messages", "OpenCode", "Messages", "opencode", opencode("anthropic", MESSAGES_KEY)),
    Agent("opencode-chat", "OpenCode", "Chat", "opencode", opencode("openai-compatible", TEXT_KEY)),
    Agent("qwen-code", "Qwen Code", "Chat", "qwen", qwen),
    Agent("aider", "aider", "Chat", "aider", aider, calls_tools=False),
]
