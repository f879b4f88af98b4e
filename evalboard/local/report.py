"""Print the steps of `evalboard up` with their seconds, and why it cannot continue."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evalboard.core.errors import EvalboardError


class CannotStart(EvalboardError):
    """Something outside the product prevents the start; the detail says what, and what to do."""

    code = "cannot_start"
    title = "Evalboard cannot start"
    status = 503


class Report:
    """Output of `evalboard up`: lines of text, or one JSON object per line."""

    def __init__(self, write: Callable[[str], object], *, as_json: bool = False) -> None:
        self._write = write
        self.as_json = as_json

    @contextmanager
    def step(self, words: str) -> Iterator[None]:
        """Report `words` with the seconds that the block took; a block that fails reports itself."""
        began = time.monotonic()
        yield
        self.tell_step(words, time.monotonic() - began)

    def tell_step(self, words: str, seconds: float) -> None:
        """Report a step that has ended."""
        if self.as_json:
            self._write(json.dumps({"step": words, "seconds": round(seconds, 1)}))
        else:
            self._write(f"{seconds:6.1f} s  {words}")

    def say(self, text: str, **facts: object) -> None:
        """Write a sentence; as JSON with its facts."""
        self._write(json.dumps({"text": text.strip(), **facts}) if self.as_json else text)
