"""Colours: every text ink is readable on every ground it may stand on, and no file but one names a colour."""

import math
import re
from pathlib import Path

import pytest

PAGES = Path(__file__).resolve().parents[2] / "frontend"
SHEETS = sorted(PAGES.glob("*/static/*/*.css"))
TOKENS_SHEET = PAGES / "shell" / "static" / "shell" / "tokens.css"
TOKEN = re.compile(r"--([\w-]+): light-dark\(oklch\(([^)]*)\), oklch\(([^)]*)\)\);")
TOKENS = {name: (light, dark) for name, light, dark in TOKEN.findall(TOKENS_SHEET.read_text())}
GROUNDS = ("page", "surface", "sunken")
SOFT = ("accent-soft", "ship-soft", "no-ship-soft", "inconclusive-soft", "not-comparable-soft", "margin-1", "margin-2")
TEXT_ON = {
    "text": (*GROUNDS, *SOFT, "margin-3"),
    "text-2": (*GROUNDS, *SOFT, "margin-3"),
    "text-3": (*GROUNDS, *SOFT[:-1]),
    "accent": (*GROUNDS, "accent-soft", "inconclusive-soft", "not-comparable-soft"),
    "on-accent": ("accent",),
    "ship": (*GROUNDS, "ship-soft"),
    "no-ship": (*GROUNDS, "no-ship-soft"),
    "inconclusive": (*GROUNDS, "inconclusive-soft"),
    "not-comparable": (*GROUNDS, "not-comparable-soft"),
    "setup": GROUNDS,
}
MARK_ON = {
    "line-strong": GROUNDS,
    "margin-ink": ("margin-1", "margin-2", "margin-3"),
    "numeric": (*GROUNDS, "margin-2"),
    "baseline": GROUNDS,
    "candidate": GROUNDS,
    "shift": GROUNDS,
    "reading": GROUNDS,
    "absent": GROUNDS,
}


def linear_rgb(oklch: str) -> tuple[float, float, float]:
    """Linear sRGB of `oklch()` arguments, by the matrices of CSS Color 4."""
    lightness, chroma, hue = map(float, oklch.split("/")[0].split())
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    return (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )


def luminance(oklch: str) -> float:
    red, green, blue = (min(max(part, 0.0), 1.0) for part in linear_rgb(oklch))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def pairs(table):
    return [
        pytest.param(ink, ground, theme, id=f"{ink}-on-{ground}-{name}")
        for ink, grounds in table.items()
        for ground in grounds
        for theme, name in enumerate(("light", "dark"))
    ]


@pytest.mark.parametrize(("ink", "ground", "theme"), pairs(TEXT_ON))
def test_text_is_readable(ink, ground, theme):
    assert contrast(TOKENS[ink][theme], TOKENS[ground][theme]) >= 4.5


@pytest.mark.parametrize(("ink", "ground", "theme"), pairs(MARK_ON))
def test_marks_and_borders_can_be_seen(ink, ground, theme):
    assert contrast(TOKENS[ink][theme], TOKENS[ground][theme]) >= 3.0


@pytest.mark.parametrize(("name", "theme"), [(name, theme) for name in TOKENS for theme in (0, 1)])
def test_every_colour_lies_inside_srgb(name, theme):
    assert all(-0.002 <= part <= 1.002 for part in linear_rgb(TOKENS[name][theme]))


@pytest.mark.parametrize("path", SHEETS, ids=lambda path: path.name)
def test_raw_colours_stand_in_tokens_only(path):
    if path.name == "tokens.css":
        return
    text = path.read_text()
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*;)|\b(?:rgb|hsl|oklch|oklab|lab|lch)a?\(", text)


def test_every_token_that_is_used_exists():
    known = set(re.findall(r"--([\w-]+):", "".join(path.read_text() for path in SHEETS)))
    used = {name for path in SHEETS for name in re.findall(r"var\(--([\w-]+)", path.read_text())}
    assert used <= known
