"""Normalisation: what two texts may differ in and still count as equal.

The steps always run in the same order: Unicode, quotes, removed characters, case, punctuation,
whitespace. They are options of a scorer, so they are part of its digest.
"""

import unicodedata
from collections.abc import Mapping
from typing import Any, Literal

from evalboard.core.document import Problems, at
from evalboard.core.scoring.kind import Option, one_of, text_of

NORMALISE_OPTIONS: dict[str, Option] = {
    "unicode": Option("nfc", one_of("keep", "nfc", "nfkc")),
    "quotes": Option("keep", one_of("keep", "double")),
    "remove": Option("", text_of(at_most=50)),
    "case": Option("keep", one_of("keep", "lower", "fold")),
    "punctuation": Option("keep", one_of("keep", "strip", "remove")),
    "whitespace": Option("strip", one_of("keep", "strip", "collapse", "remove")),
}

# JSON strings are compared as they stand unless a spec says otherwise.
VERBATIM = {"unicode": "keep", "whitespace": "keep"}

_FORMS: dict[str, Literal["NFC", "NFKC"]] = {"nfc": "NFC", "nfkc": "NFKC"}


def normalise_option(**defaults: str) -> Option:
    """Return the `normalise` option with a kind's own defaults."""
    filled = {name: defaults.get(name, option.default) for name, option in NORMALISE_OPTIONS.items()}

    def read(value: Any, path: str, problems: Problems) -> Any:
        if not isinstance(value, Mapping):
            problems.add(path, "must be an object")
            return value
        for name in value:
            if name not in NORMALISE_OPTIONS:
                problems.add(at(path, str(name)), f"is unknown; known are {', '.join(NORMALISE_OPTIONS)}")
        settings = {**filled}
        for name, option in NORMALISE_OPTIONS.items():
            if name in value:
                settings[name] = option.read(value[name], at(path, name), problems)
        settings["remove"] = "".join(sorted(set(str(settings["remove"]))))  # a set of characters has one form
        return settings

    return Option(filled, read)


def normalise(text: str, how: Mapping[str, str]) -> str:
    """Return `text` with everything evened out that `how` (a checked `normalise` option) names."""
    text = _composed(text, how)
    if how["quotes"] == "double":
        text = text.replace("'", '"')
    if how["remove"]:
        text = text.translate(dict.fromkeys(map(ord, how["remove"])))
    if how["case"] != "keep":
        # Changing case can take composed characters apart, so they are composed once more.
        text = _composed(text.lower() if how["case"] == "lower" else text.casefold(), how)
    if how["punctuation"] == "remove":
        text = "".join(char for char in text if not _is_punctuation(char))
    if how["punctuation"] == "strip":
        text = _strip_punctuation(text, spaces_too=how["whitespace"] != "keep")
    return _spaced(text, how["whitespace"])


def _composed(text: str, how: Mapping[str, str]) -> str:
    return text if how["unicode"] == "keep" else unicodedata.normalize(_FORMS[how["unicode"]], text)


def _spaced(text: str, how: str) -> str:
    if how == "strip":
        return text.strip()
    if how == "collapse":
        return " ".join(text.split())
    if how == "remove":
        return "".join(text.split())
    return text


def _strip_punctuation(text: str, *, spaces_too: bool) -> str:
    def is_cut(char: str) -> bool:
        return _is_punctuation(char) or (spaces_too and char.isspace())

    first, last = 0, len(text)
    while first < last and is_cut(text[first]):
        first += 1
    while last > first and is_cut(text[last - 1]):
        last -= 1
    return text[first:last]


def _is_punctuation(char: str) -> bool:
    """Tell whether Unicode calls it punctuation: quotes, brackets, `*`, but not `$`, `+` or a backtick."""
    return unicodedata.category(char).startswith("P")
