"""The number that everything drawn in a run follows from."""

from __future__ import annotations

import os


def _read(text: str) -> int:
    """A decimal of 64 bits."""
    if not (text.isascii() and text.isdecimal() and int(text) < 1 << 64):
        message = f"{VARIABLE} must be a decimal number of 64 bits, not {text!r}"
        raise ValueError(message)
    return int(text)


VARIABLE = "SLUICEGATE_TEST_SEED"
SEED = _read(os.environ.get(VARIABLE, "1"))
