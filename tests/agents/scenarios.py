"""The scenarios: the work that an agent has to do, and the models of the simulator that are behind the gateway."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PROTOCOLS = {"responses": "Responses", "messages": "Messages", "chat": "Chat"}
# The upstreams, each with its column of the table. One that is not named after its protocol is a vendor with Chat
# Completions, which the gateway reaches with the preset of that name.
UPSTREAMS = PROTOCOLS | {
    "azure": "Chat of Azure",
    "mistral": "Chat of Mistral",
    "gemini": "Chat of Gemini",
    "deepseek": "Chat of DeepSeek",
}
# The upstreams whose model thinks: the Chat of DeepSeek demands its thoughts back.
THINKING = [("responses",), ("messages",), ("deepseek",)]
# From each of them to another one.
CHANGES = [("responses", "messages"), ("messages", "deepseek"), ("deepseek", "responses")]


@dataclass(frozen=True)
class File:
    """A file of the work, which is written, or edited if it has old lines."""

    name: str
    lines: tuple[str, ...]
    old: tuple[str, ...] = ()

    def sentences(self, work: Path) -> list[str]:
        """The lines of a prompt that ask for the file."""
        path = work / self.name
        if not self.old:
            return [f"Create the file {path} with the line: {line}" for line in self.lines]
        edits = zip(self.old, self.lines, strict=True)
        return [f"Edit the file {path} from the line: {old} to the line: {new}" for old, new in edits]


@dataclass(frozen=True)
class Scenario:
    """A task for every agent."""

    name: str
    title: str
    # A text for the page.
    about: str
    # The upstreams of each run, and the model of the simulator at each of them.
    upstreams: Sequence[tuple[str, ...]]
    models: tuple[str, ...]
    # The files of each turn. A later turn is another process of the agent, which continues the session; one without
    # files only asks to go on.
    turns: tuple[tuple[File, ...], ...]
    # Whether the upstreams are targets of one model. Otherwise each is a model of its own, for its turn.
    is_failover: bool = False
    # Whether a request is refused as too long.
    overflows: bool = False
    # Whether the model says how many of its thoughts came back.
    thinks: bool = True


WRITTEN = (File("hello.txt", ("The gateway was here.",)), File("again.txt", ("And it's still here.",)))
EDITED = File("notes.txt", ("The first line.", "It's the second line."), ("first line", "second line"))
LATER = File("more.txt", ("The third line.", "It's the fourth line."), ("third line", "fourth line"))
# Eight edits: with the reading before them and the answer at the end, ten requests.
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
COUNTED = File("counted.txt", tuple(f"Number {number}." for number in NUMBERS), tuple(f"{n} of 8" for n in NUMBERS))
LONG = File("long.txt", ("The first.", "It's the second.", "The third."), ("first", "second", "third"))

SCENARIOS = [
    Scenario(
        name="write",
        title="Two files are written",
        about="""\
The model calls a tool of the agent twice in one turn, or in two turns if the agent forbids parallel calls. aider offers
no tools, but reads edits from the text: its runs pass if it writes the files, with a single request.""",
        upstreams=[(name,) for name in UPSTREAMS if name != "deepseek"],
        models=("coding-agent",),
        turns=(WRITTEN,),
        thinks=False,
    ),
    Scenario(
        name="edit",
        title="A file is edited, with thoughts between the calls",
        about="""\
The model reads a file and edits it twice, with one call in each answer and a thought before each. It refuses a thought
that is not its own or was changed, with the error of its vendor, and the Chat of DeepSeek refuses calls without the
thought before them. Codex edits with patches: by its freeform tool `apply_patch`, or for the newer models in a script
for its freeform tool `exec`, in a namespace. The number of thoughts is counted in the last request to the upstream.""",
        upstreams=THINKING,
        models=("coding-agent-thinking",),
        turns=((EDITED,),),
    ),
    Scenario(
        name="ten",
        title="A file is edited eight times in a row",
        about="""\
As above, with eight edits: the model is asked at least ten times, and each request continues the one before it.""",
        upstreams=THINKING,
        models=("coding-agent-thinking",),
        turns=((COUNTED,),),
    ),
    Scenario(
        name="switch",
        title="The session goes on with the model of another vendor",
        about="""\
The agent edits a file with the first model. Then another process of it continues the session with the second model and
edits another file, so that the second vendor gets a history with the calls and thoughts of the first. In Chat, the
thoughts of the other vendor count, too, if the agent sends them back.""",
        upstreams=CHANGES,
        models=("coding-agent-thinking", "coding-agent-thinking"),
        turns=((EDITED,), (LATER,)),
    ),
    Scenario(
        name="failover",
        title="The first upstream fails in the middle of the work",
        about="""\
The model has two targets. The first one is overloaded from its second request on, so that the history with its call and
its thought goes to the second one, which finishes the work.""",
        upstreams=CHANGES,
        models=("coding-agent-failing-1", "coding-agent-thinking"),
        turns=((EDITED,),),
        is_failover=True,
    ),
    Scenario(
        name="overflow",
        title="The history becomes too long, and the agent compacts it",
        about="""\
The model refuses the third result of a tool with the error of its vendor for a history that is too long. It accepts the
request for a summary, and what follows. Then the agent makes the last edit. Codex ends with the error, and compacts
when the session is continued, if its limit of tokens (`model_auto_compact_token_limit`) is below the window that it
assumes; without the gateway it does the same. The others go on by themselves, but OpenCode exits with status 1.""",
        upstreams=THINKING,
        models=("coding-agent-window-2",),
        turns=((LONG,),),
        overflows=True,
    ),
]
