"""How often a client looks after what it waits for: a quick end is seen soon, and a long wait costs little."""

import pytest

from evalboard.client.progress import WaitProgress
from evalboard.client.waiting import ProgressLines, choose_pause


@pytest.mark.parametrize(
    ("waited", "eta", "pause"),
    [
        (0.0, None, 0.5),
        (9.0, None, 0.5),
        (20.0, None, 1.0),  # what ends within 20 s is seen within 1 s
        (60.0, None, 3.0),
        (3600.0, None, 5.0),
        (3600.0, 4.0, 2.0),  # the end is near
        (3600.0, 0.0, 0.5),
        (0.0, 500.0, 0.5),
    ],
)
def test_the_pause_grows_with_the_wait_and_shrinks_towards_the_end(
    waited: float, eta: float | None, pause: float
) -> None:
    assert choose_pause(waited, eta) == pytest.approx(pause)


def test_an_hour_is_asked_after_less_than_every_four_seconds() -> None:
    waited, n_looks = 0.0, 0
    while waited < 3600:
        waited, n_looks = waited + choose_pause(waited, None), n_looks + 1
    assert n_looks < 900


def test_a_pause_is_said_at_once_and_not_twice(capsys: pytest.CaptureFixture[str]) -> None:
    lines = ProgressLines()
    for pause in ("", "Paused.", "Paused.", ""):
        lines.tell(
            WaitProgress("run 3", "responses", "queued", 0, 6, is_terminal=False, pause=pause, note="Nine ahead.")
        )
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == third == "run 3: queued, 0 of 6 responses. Nine ahead."
    assert second == "run 3: queued, 0 of 6 responses. Paused."
