"""A suite's badge as numbers and words; the picture is badge.svg.

It is drawn in pages of others, where none of our style sheets is: so it has colours of its own, which a test holds to
tokens.css, and room for a text that is measured without the reader's font.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from django.utils.safestring import SafeString, mark_safe

from evalboard.contract.run import RunRow
from evalboard.wording.numbers import points
from evalboard.wording.release_names import verdict_name
from frontend.release.verdicts import VERDICTS
from runs.release import SuiteBadge

SPRITE = Path(__file__).resolve().parents[1] / "shell" / "static" / "shell" / "sprite.svg"
SYMBOL = re.compile(r'<symbol id="([\w-]+)" viewBox="0 0 16 16">(.*?)</symbol>', re.S)
GLYPHS = dict(SYMBOL.findall(SPRITE.read_text()))

# The light theme's inks: white text is read on each of them.
SUITE_INK = "#4a505a"  # --text-2
RUN_INK = "#2456b9"  # --candidate
OTHER_INK = "#606671"  # --text-3
VERDICT_INKS = {
    "ship": "#057558",
    "no_ship": "#a01916",
    "inconclusive": "#97610f",
    "not_comparable": "#464653",
}

CHARACTER = 6.1  # pixels, of 11-pixel Verdana on average; the picture stretches its text to what is reckoned here
PAD = 7
GLYPH = 13


@dataclass(frozen=True, slots=True)
class BadgePart:
    """One half: where its ground and its text begin and how wide they are, in pixels."""

    text: str
    ink: str
    x: float
    width: float
    text_x: float
    text_width: float


@dataclass(frozen=True, slots=True)
class BadgePicture:
    """The parts of a badge. `glyph`: markup of the sprite, "" if there is no verdict."""

    left: BadgePart
    right: BadgePart
    glyph: SafeString
    glyph_x: float
    width: float
    label: str


def picture(badge: SuiteBadge) -> BadgePicture:
    word, ink = _word(badge)
    glyph = GLYPHS[VERDICTS[badge.verdict].glyph] if badge.verdict else ""
    left = _part(badge.suite, SUITE_INK, x=0, before=PAD)
    right = _part(word, ink, x=left.width, before=PAD + (GLYPH if glyph else 0))
    return BadgePicture(
        left=left,
        right=right,
        glyph=mark_safe(glyph),  # noqa: S308  out of our own sprite
        glyph_x=left.width + PAD - 2,
        width=left.width + right.width,
        label=f"{badge.suite}: {word}",
    )


def _word(badge: SuiteBadge) -> tuple[str, str]:
    """Return the word and its background."""
    if badge.verdict:
        return verdict_name(badge.verdict), VERDICT_INKS[badge.verdict]
    if badge.run is None:
        return "no run", OTHER_INK
    return _run_word(badge.run)


def _run_word(run: RunRow) -> tuple[str, str]:
    if run.status != "finished":
        return run.status, OTHER_INK
    if run.range is None:
        return f"{run.n_buckets} buckets" if run.n_buckets > 1 else "no score", OTHER_INK
    low, high = (points(end) for end in run.range)
    return low if low == high else f"{low}–{high}", RUN_INK


def _part(text: str, ink: str, *, x: float, before: float) -> BadgePart:
    text_width = round(CHARACTER * len(text), 1)
    return BadgePart(text, ink, x, round(before + text_width + PAD, 1), round(x + before, 1), text_width)
