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


THEMES = ("light", "dark")


def list_faint(table: dict[str, tuple[str, ...]], least: float) -> list[str]:
    """Return each ink, ground and theme whose contrast is below the least that WCAG asks for."""
    return [
        f"{ink} on {ground}, {name}: {ratio:.2f}"
        for ink, grounds in table.items()
        for ground in grounds
        for name, of_ink, of_ground in zip(THEMES, TOKENS[ink], TOKENS[ground], strict=True)
        if (ratio := contrast(of_ink, of_ground)) < least
    ]


def test_text_is_readable() -> None:
    assert list_faint(TEXT_ON, 4.5) == []


def test_marks_and_borders_can_be_seen() -> None:
    assert list_faint(MARK_ON, 3.0) == []


def test_the_contrast_is_that_of_wcag() -> None:
    black, white, grey = "0 0 0", "1 0 0", "0.5999 0 0"  # #808080
    assert contrast(black, white) == pytest.approx(21, abs=0.01)
    assert contrast(grey, white) == pytest.approx(3.95, abs=0.01)
    assert contrast(grey, grey) == 1


def test_every_colour_lies_inside_srgb() -> None:
    outside = [
        f"{name}, {theme}"
        for name, colours in TOKENS.items()
        for theme, colour in zip(THEMES, colours, strict=True)
        if not all(-0.002 <= part <= 1.002 for part in linear_rgb(colour))
    ]
    assert outside == []


@pytest.mark.parametrize("path", [path for path in SHEETS if path != TOKENS_SHEET], ids=lambda path: path.name)
def test_raw_colours_stand_in_tokens_only(path: Path) -> None:
    text = path.read_text()
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b(?=[^{}]*;)|\b(?:rgb|hsl|oklch|oklab|lab|lch)a?\(", text)


def test_every_token_that_is_used_exists() -> None:
    known = set(re.findall(r"--([\w-]+):", "".join(path.read_text() for path in SHEETS)))
    used = {name for path in SHEETS for name in re.findall(r"var\(--([\w-]+)", path.read_text())}
    assert used <= known
