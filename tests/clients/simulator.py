"""The simulator as a child process: honest model servers of every protocol."""

from __future__ import annotations

import os
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def simulating() -> Iterator[str]:
    """Runs the binary on a port that the system chooses, and gives its base URL."""
    command = [str(BINARY), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield _base_url(child)
        finally:
            child.kill()


@dataclass(frozen=True)
class Fault:
    """What a model `fault-SEED` does where a stream is asked for (`True`) and where none is.

    With each goes whether anything of the answer is lost.
    """

    model: str
    acts: dict[bool, tuple[str, bool]]


def faults(first: int, count: int) -> list[Fault]:
    """The faults of so many seeds from the first on."""
    command = [str(BINARY), "--first", str(first), "--faults", str(count)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines()]
    return [
        Fault(f"fault-{row[0]}", {True: (row[1], row[2] == "loses"), False: (row[3], row[4] == "loses")})
        for row in rows
    ]


def _base_url(child: subprocess.Popen[str]) -> str:
    """The base URL that the simulator prints once it listens."""
    for line in child.stdout or []:
        if line.startswith(GREETING):
            return line.removeprefix(GREETING).strip()
    message = f"the simulator did not start: {child.wait()}"
    raise RuntimeError(message)


GREETING = "sluicegate-simulator listens on "
BINARY = Path(
    os.environ.get("SLUICEGATE_SIMULATOR_BIN", Path(__file__).parents[2] / "target/debug/sluicegate-simulator")
)
