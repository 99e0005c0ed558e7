"""Tests the running gateway against its own OpenAPI document: `cargo xtask schemathesis` calls this.

The document is validated first, against the official schema of OpenAPI. `SLUICEGATE_BIN` and `SLUICEGATE_SIMULATOR_BIN`
name the programs, and the logs and the document are written to the folder of the first argument.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
GATEWAY, SIMULATOR = os.environ["SLUICEGATE_BIN"], os.environ["SLUICEGATE_SIMULATOR_BIN"]
# One key for every capability.
KEY = "sg_test_schemathesis_key_0000000000000"
KEYS = dict.fromkeys(["SLUICEGATE_TEXT_KEY", "SLUICEGATE_MESSAGES_KEY", "SLUICEGATE_IMAGE_KEY"], KEY)
# The embedded model is slow: one plain reply and one stream of each operation and phase for so many examples.
EXAMPLES_PER_ANSWER = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--examples", type=int, default=25)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--without", action="append", default=[], metavar="TAG")
    args = parser.parse_args()
    document = args.folder / "openapi.json"
    document.write_bytes(subprocess.run([GATEWAY, "openapi"], stdout=subprocess.PIPE, check=True).stdout)
    subprocess.run([sys.executable, "-m", "openapi_spec_validator", str(document)], check=True)
    with running([SIMULATOR, "--listen", "127.0.0.1:0"], args.folder / "simulator.log") as simulator:
        config = args.folder / "schemathesis.toml"
        config.write_text((HERE / "sluicegate.toml").read_text().replace("{simulator}", simulator))
        serve = [GATEWAY, "serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--config", str(config)]
        with running(serve, args.folder / "schemathesis.log") as gateway:
            return judge(args, document, gateway)


def judge(args: argparse.Namespace, document: Path, url: str) -> int:
    """Sends the requests, and returns the exit status of schemathesis."""
    print(f"requests are drawn by the seed {args.seed}", flush=True)
    command = [sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", url]
    command += ["--max-examples", str(args.examples), "--seed", str(args.seed)]
    for tag in args.without:
        command += ["--exclude-tag", tag]
    environment = os.environ | {
        "SLUICEGATE_KEY": KEY,
        "SLUICEGATE_ANSWERS": str(max(args.examples // EXAMPLES_PER_ANSWER, 1)),
        "HYPOTHESIS_STORAGE_DIRECTORY": str(args.folder / "hypothesis"),
        # A proxy of the user cannot reach the gateway.
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(command, cwd=HERE, env=environment, check=False).returncode


@contextmanager
def running(command: list[str], log: Path) -> Iterator[str]:
    """Runs a server on a port that the system chooses, and gives the address that it prints."""
    environment = {name: value for name, value in os.environ.items() if name != "SLUICEGATE_LOG"} | KEYS
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True) as child,
    ):
        try:
            addresses = (line.partition(" listens on ")[2].strip() for line in child.stdout or [])
            address = next(filter(None, addresses), None)
            if address is None:
                sys.exit(f"{command[0]} did not start: see {log}")
            yield address
        finally:
            child.kill()


if __name__ == "__main__":
    sys.exit(main())
