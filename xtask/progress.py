"""Runs a command that downloads a package with pip, and prints how much of the package has arrived.

    python3 progress.py FOLDER BYTES COMMAND…

pip writes the package, which has BYTES, into a temporary folder in FOLDER. There is a line for each tenth, also on a
terminal, where cargo prints its own lines beside them.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

PAUSE = 0.2
MEGA = 1_000_000


def downloaded(folder: Path) -> int:
    """The bytes that have arrived."""
    try:
        return sum(package.stat().st_size for package in folder.glob("*/*.whl"))
    except FileNotFoundError:
        # pip has removed it in this moment.
        return 0


def line(size: int, whole: int, elapsed: float) -> str:
    """Such as `31 of 93 MB, 33 %, 10 s left`."""
    left = f", {elapsed * (whole - size) / size:.0f} s left" if size else ""
    return f"{round(size / MEGA)} of {round(whole / MEGA)} MB, {100 * size // whole} %{left}"


def main() -> int:
    folder, whole, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    begun, tenths = time.monotonic(), 0
    process = subprocess.Popen(command)
    while process.poll() is None:
        size = min(downloaded(folder), whole)
        if 10 * size // whole > tenths:
            tenths = 10 * size // whole
            print(line(size, whole, time.monotonic() - begun), flush=True)
        time.sleep(PAUSE)
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # The command has had the signal, too.
        sys.exit(130)
