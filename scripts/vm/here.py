"""Where things are, and the error that every part raises."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
CACHE = TARGET / "vm"


class Trouble(Exception):
    """The machine cannot be made or does not answer; its text says why and what to do."""


class Gone(Trouble):
    """The guest does not answer any more, so that no other case can run."""
