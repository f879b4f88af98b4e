"""Values of a parameter that the gate leaves out, and `make nightly` tries too."""

from collections.abc import Iterable
from typing import Any

import pytest


def nightly(values: Iterable[Any]) -> list[Any]:
    """Return the values as parameters marked `nightly`; a tuple is the values of several arguments."""
    return [pytest.param(*(each if isinstance(each, tuple) else (each,)), marks=pytest.mark.nightly) for each in values]
