"""A pin is held only where the engine says so itself."""

import pytest

from evalboard.core.profile.profile import attest_pins


@pytest.mark.parametrize(
    ("wanted", "found", "held"),
    [
        (1, {"x": 1}, True),
        (1, {"x": 2}, False),
        (None, {"x": None}, True),
        (None, {}, False),
        (None, {"x": "awq"}, False),
        (False, {"x": False}, True),
        (False, {"x": 0}, False),
        (1, {"x": True}, False),
        ("0", {"x": 0}, False),
        (0.0, {"x": 0}, True),
    ],
)
def test_a_pin_is_held_when_the_value_is_the_same_in_kind_too(
    wanted: object, found: dict[str, object], held: bool
) -> None:
    assert attest_pins({"x": wanted}, found) == [{"name": "x", "wanted": wanted, "found": found.get("x"), "held": held}]


def test_broken_pins_come_first() -> None:
    pins = attest_pins({"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 1, "b": 2, "c": 1})
    assert [(pin["name"], pin["held"]) for pin in pins] == [("b", False), ("d", False), ("a", True), ("c", True)]


def test_what_was_not_asked_for_is_no_pin() -> None:
    assert attest_pins({}, {"block_size": 128}) == []
