"""Values of a parameter that the gate leaves out, and `make nightly` tries too."""

from collections.abc import Iterable
from typing import Any

import pytest

PARAMETERS = type(pytest.param())


def nightly(values: Iterable[Any]) -> list[Any]:
    """Return the values as parameters marked `nightly`; a tuple is the values of several arguments."""
    return [pytest.param(*(each if type(each) is tuple else (each,)), marks=pytest.mark.nightly) for each in values]


def few(values: Iterable[Any], n: int = 1) -> list[Any]:
    """Return the values as parameters, all but the first `n` marked `nightly`. They may be `pytest.param` too."""
    first, others = (every := list(values))[:n], every[n:]
    plain = [each if isinstance(each, PARAMETERS) else nightly([each])[0] for each in others]
    return [
        *first,
        *(pytest.param(*each.values, marks=[*each.marks, pytest.mark.nightly], id=each.id) for each in plain),
    ]
