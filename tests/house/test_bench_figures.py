"""How a new figure of the bench stands against the one that was kept."""

from pathlib import Path

import pytest

from bench import stored_figures
from bench.row import Row, median_row
from bench.stored_figures import Figure, Standing

SLOW, FAST = 0.02, 0.01  # seconds of the yardstick on two machines


def judge(kept: Row, new: Row, *, yardstick: float = FAST) -> Standing:
    return Figure(kept, yardstick=FAST, date="2026-11-23").judge(new, yardstick=yardstick)


@pytest.mark.parametrize(
    ("unit", "kept", "new", "standing"),
    [
        ("ms", 100.0, 114.0, Standing.EQUAL),
        ("ms", 100.0, 120.0, Standing.WORSE),
        ("ms", 100.0, 80.0, Standing.BETTER),
        ("responses/s", 100.0, 120.0, Standing.BETTER),
        ("responses/s", 100.0, 80.0, Standing.WORSE),
        ("queries", 20, 21, Standing.WORSE),
        ("bytes/position", 9.26, 9.27, Standing.EQUAL),
        ("%", 2.0, 3.0, Standing.OTHER),
        ("", "True", "False", Standing.OTHER),
    ],
)
def test_a_figure_is_judged_by_its_unit(unit: str, kept: float | str, new: float | str, standing: Standing) -> None:
    assert judge(Row("x", kept, unit), Row("x", new, unit)) is standing


def test_times_are_brought_to_one_machine_and_sizes_are_not() -> None:
    assert judge(Row("x", 100.0, "ms"), Row("x", 200.0, "ms"), yardstick=SLOW) is Standing.EQUAL
    assert judge(Row("x", 100.0, "ms"), Row("x", 100.0, "ms"), yardstick=SLOW) is Standing.BETTER
    assert judge(Row("x", 100.0, "pages/s"), Row("x", 50.0, "pages/s"), yardstick=SLOW) is Standing.EQUAL
    assert judge(Row("x", 100.0, "MB"), Row("x", 200.0, "MB"), yardstick=SLOW) is Standing.WORSE


def test_readings_that_reach_into_each_other_are_equal() -> None:
    kept = median_row("x", [90.0, 100.0, 130.0], "ms")
    assert judge(kept, median_row("x", [120.0, 140.0, 150.0], "ms")) is Standing.EQUAL
    assert judge(kept, median_row("x", [135.0, 140.0, 150.0], "ms")) is Standing.WORSE


def test_keeping_a_part_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_figures, "PATH", tmp_path / "figures.json")
    one, other = (Figure(median_row(what, [1.0, 2.0, 4.0], "s"), FAST, "2026-11-23") for what in ("one", "other"))
    stored_figures.store({"api": [one], "run": [one]})
    stored_figures.store({"run": [other]})
    assert stored_figures.load() == {"api": {"one": one}, "run": {"other": other}}
