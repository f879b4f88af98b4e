"""Pass records as lines of JSON from the process that parses a log to the one that stores it.

Numbers survive to the bit and NaN stays NaN. A line contains only values: whatever a log has, and whatever became of
the process that read it, reading lines makes records and runs no code.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from evalboard.core.errors import InvalidInput
from evalboard.importers.records import LoggedCase, LoggedPositions, LoggedResponse, LoggedRun

# The first item of a line. A response's second item says how many positions the next line holds.
FORMAT, RUN, CASE, RESPONSE, REFUSED, END = "format", "run", "case", "response", "refused", "end"
OUT_OF_MEMORY = 3  # the exit status of a writer that has no memory left to say so


class BrokenOff(Exception):
    """The lines are incomplete: their writer did not finish."""


def lines(format_name: str, runs: Iterable[LoggedRun]) -> Iterator[bytes]:
    """Yield what `read_lines` makes the same runs of."""
    yield _line(FORMAT, format_name)
    for run in runs:
        yield _line(RUN, _RUN.pack(replace(run, cases=(), responses=())))
        for case in run.cases:
            yield _line(CASE, _CASE.pack(case))
        for response in run.responses:
            positions = response.positions
            n = None if positions is None else len(positions)
            yield _line(RESPONSE, n, _RESPONSE.pack(replace(response, positions=None)))
            if positions:
                yield _packed(positions)
    yield _line(END)


def refusal(error: InvalidInput) -> bytes:
    """Return the line that reports why there are no runs."""
    return _line(REFUSED, error.detail, error.fields)


def read_lines(given: Iterable[bytes]) -> tuple[str, list[LoggedRun]]:
    """Return the name of the format and the runs in some lines.

    Raises InvalidInput if the lines report that the log was refused, BrokenOff if they are incomplete.
    """
    each = iter(given)
    known: dict[bytes, bytes] = {}
    format_name = ""
    runs: list[LoggedRun] = []
    cases: list[LoggedCase] = []
    responses: list[LoggedResponse] = []

    def complete() -> None:
        if runs:
            runs[-1] = replace(runs[-1], cases=tuple(cases), responses=tuple(responses))
        cases.clear()
        responses.clear()

    for line in each:
        kind, *content = json.loads(line)
        if kind == RESPONSE:
            n, packed = content
            response: LoggedResponse = _RESPONSE.unpack(packed)
            if n is not None:
                response = replace(response, positions=_unpacked(next(each, b"") if n else b"", known))
            responses.append(response)
        elif kind == CASE:
            cases.append(_CASE.unpack(*content))
        elif kind == RUN:
            complete()
            runs.append(_RUN.unpack(*content))
        elif kind == FORMAT:
            [format_name] = content
        elif kind == REFUSED:
            detail, problems = content
            raise InvalidInput(detail, fields=problems)
        elif kind == END:
            complete()
            return format_name, runs
    raise BrokenOff


class _Columns(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """The fields of LoggedPositions; numbers as little-endian bytes, and all bytes as base64."""

    tokens: tuple[bytes, ...] = ()
    chosen: bytes = b""
    logprobs: bytes = b""
    n_alternatives: bytes = b""
    others: bytes = b""
    other_logprobs: bytes = b""
    token_ids: bytes = b""


_COLUMNS = msgspec.json.Decoder(_Columns)


def _packed(positions: LoggedPositions) -> bytes:
    columns = _Columns(
        positions.tokens,
        positions.chosen.astype("<i4", copy=False).tobytes(),
        positions.logprobs.astype("<f8", copy=False).tobytes(),
        positions.n_alternatives.astype("<i4", copy=False).tobytes(),
        positions.others.astype("<i4", copy=False).tobytes(),
        positions.other_logprobs.astype("<f8", copy=False).tobytes(),
        positions.token_ids.astype("<i4", copy=False).tobytes(),
    )
    return msgspec.json.encode(columns) + b"\n"


def _unpacked(line: bytes, known: dict[bytes, bytes]) -> LoggedPositions:
    """Return the positions of a line, none for an empty one. Equal tokens share an object in `known`."""
    columns = _COLUMNS.decode(line) if line else _Columns()
    return LoggedPositions(
        tokens=tuple(known.setdefault(token, token) for token in columns.tokens),
        chosen=np.frombuffer(columns.chosen, dtype="<i4"),
        logprobs=np.frombuffer(columns.logprobs, dtype="<f8"),
        n_alternatives=np.frombuffer(columns.n_alternatives, dtype="<i4"),
        others=np.frombuffer(columns.others, dtype="<i4"),
        other_logprobs=np.frombuffer(columns.other_logprobs, dtype="<f8"),
        token_ids=np.frombuffer(columns.token_ids, dtype="<i4"),
    )


def _line(*content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class _Form:
    """How values of one type are written as JSON, and read."""

    pack: Callable[[Any], Any]
    unpack: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


_AS_IT_IS = _Form(_same, _same)


def _form(kind: Any) -> _Form:
    """Return the form of a field's type. Fields of any JSON value are written unchanged."""
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass_form(kind)
    if kind is bytes:  # each byte as the character of its number
        return _Form(lambda value: value.decode("latin-1"), lambda text: text.encode("latin-1"))
    if kind is datetime:
        return _Form(datetime.isoformat, datetime.fromisoformat)
    if origin in (Union, UnionType):
        [one] = (other for other in inner if other is not NoneType)
        return _optional_form(_form(one))
    if origin in (tuple, Sequence):
        return _row_form([_form(one) for one in inner if one is not ...], is_fixed=origin is tuple and ... not in inner)
    if origin is Mapping:
        return _mapping_form(_form(inner[1]))
    return _AS_IT_IS


def _dataclass_form(kind: type) -> _Form:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    forms = [_form(hints[name]) for name in names]
    paired = list(zip(names, forms, strict=True))
    return _Form(
        lambda value: [form.pack(getattr(value, name)) for name, form in paired],
        lambda row: kind(**{name: form.unpack(one) for (name, form), one in zip(paired, row, strict=True)}),
    )


def _optional_form(form: _Form) -> _Form:
    if form is _AS_IT_IS:
        return form
    return _Form(
        lambda value: None if value is None else form.pack(value),
        lambda value: None if value is None else form.unpack(value),
    )


def _row_form(forms: list[_Form], *, is_fixed: bool) -> _Form:
    if is_fixed:
        return _Form(
            lambda row: [form.pack(one) for form, one in zip(forms, row, strict=True)],
            lambda row: tuple(form.unpack(one) for form, one in zip(forms, row, strict=True)),
        )
    [form] = forms
    if form is _AS_IT_IS:
        return _Form(list, tuple)
    return _Form(lambda row: list(map(form.pack, row)), lambda row: tuple(map(form.unpack, row)))


def _mapping_form(form: _Form) -> _Form:
    if form is _AS_IT_IS:
        return _Form(dict, _same)
    return _Form(
        lambda mapping: {name: form.pack(value) for name, value in mapping.items()},
        lambda mapping: {name: form.unpack(value) for name, value in mapping.items()},
    )


_RUN, _CASE, _RESPONSE = _form(LoggedRun), _form(LoggedCase), _form(LoggedResponse)
