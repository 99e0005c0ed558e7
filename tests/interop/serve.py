"""Runs a command beside llama-cpp-python: `python serve.py LOG WEIGHTS COMMAND…`.

The server is on a port that the system chooses, and ends with the command. Its output goes to the file LOG.
`SLUICEGATE_INTEROP_URL`, `SLUICEGATE_INTEROP_KEY` and `SLUICEGATE_INTEROP_LOG` have its address, its key and this file.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

# The key that the server requires.
KEY = "sg_test_interop_key_00000000000000000"
OPTIONS = "--host 127.0.0.1 --port 0 --model_alias smollm2 --n_ctx 2048 --n_threads 1 --n_threads_batch 1".split()
# They take precedence over its options.
VARIABLES = ["HOST", "PORT", "CONFIG_FILE"]


def main() -> int:
    log, weights, *command = sys.argv[1:]
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    server = [sys.executable, "-m", "llama_cpp.server", "--api_key", KEY, *OPTIONS, "--model", weights]
    with (
        Path(log).open("wb") as file,
        subprocess.Popen(server, stdout=file, stderr=file, env=environment | {"PYTHONUNBUFFERED": "1"}) as process,
    ):
        try:
            url = address(process, Path(log))
            print(f"llama-cpp-python serves {weights} at {url}", flush=True)
            variables = {"URL": url, "KEY": KEY, "LOG": log}
            variables = {f"SLUICEGATE_INTEROP_{name}": value for name, value in variables.items()}
            return subprocess.run(command, env=os.environ | variables, check=False).returncode
        finally:
            process.kill()


def address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The address in the server's greeting, once it listens."""
    while True:
        has_ended = process.poll() is not None
        if found := re.search(r"Uvicorn running on (\S+)", log.read_text()):
            return found[1]
        if has_ended:
            sys.exit(f"llama-cpp-python did not start: see {log}")
        time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main())
