"""The gateway as a child process, and the clients that reach it."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anthropic import Anthropic, AsyncAnthropic
from openai import AsyncOpenAI, OpenAI

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT_KEY = "sg_test_text_key_000000000000000000"
MESSAGES_KEY = "sg_test_messages_key_000000000000000"
IMAGE_KEY = "sg_test_images_key_00000000000000000"


@dataclass(frozen=True)
class Gateway:
    """A running gateway. Its clients are strict about what they read and try once."""

    url: str

    def openai(self, key: str = TEXT_KEY, **options: Any) -> OpenAI:
        return OpenAI(base_url=f"{self.url}/v1", api_key=key, **(STRICT | options))

    def async_openai(self, key: str = TEXT_KEY, **options: Any) -> AsyncOpenAI:
        return AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, **(STRICT | options))

    def anthropic(self, key: str = MESSAGES_KEY, **options: Any) -> Anthropic:
        return Anthropic(base_url=self.url, api_key=key, **(STRICT | options))

    def async_anthropic(self, key: str = MESSAGES_KEY, **options: Any) -> AsyncAnthropic:
        return AsyncAnthropic(base_url=self.url, api_key=key, **(STRICT | options))


@contextmanager
def running(folder: Path, config: str | None = None) -> Iterator[Gateway]:
    """Runs the binary on a port that the system chooses, with this configuration file or with none."""
    command = [str(BINARY), "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
    if config is not None:
        file = folder / "sluicegate.toml"
        file.write_text(config, encoding="utf-8")
        command += ["--config", str(file)]
    log = folder / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, env=_environment(), stdout=subprocess.PIPE, stderr=errors, text=True) as child,
    ):
        try:
            yield Gateway(_address(child, log))
        finally:
            child.kill()


def _environment() -> dict[str, str]:
    """The keys of the tests, and nothing else that changes how the gateway answers."""
    environment = {name: value for name, value in os.environ.items() if name != "SLUICEGATE_LOG"}
    keys = {"SLUICEGATE_TEXT_KEY": TEXT_KEY, "SLUICEGATE_MESSAGES_KEY": MESSAGES_KEY, "SLUICEGATE_IMAGE_KEY": IMAGE_KEY}
    return environment | keys


def _address(child: subprocess.Popen[str], log: Path) -> str:
    """The address that the gateway prints once it listens."""
    for line in child.stdout or []:
        if line.startswith(GREETING):
            return line.removeprefix(GREETING).strip()
    message = f"the gateway did not start: {child.wait()}\n{log.read_text(encoding='utf-8')}"
    raise RuntimeError(message)


# Unknown or missing members fail a test, and so does a second try; the time-out is a guard against hanging.
STRICT = {"_strict_response_validation": True, "max_retries": 0, "timeout": 120.0}
GREETING = "sluicegate listens on "
BINARY = Path(os.environ.get("SLUICEGATE_BIN", Path(__file__).parents[2] / "target/debug/sluicegate"))
