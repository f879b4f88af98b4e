"""What was asked for once is made once, whatever is lost on the way; a server that is away is waited for."""

from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

from runs.models import RunRecord
from tests import build
from tests.cli.decoding import Decoding
from tests.cli.gateway import Gateway

Call = Callable[..., "CompletedProcess[str]"]

ASKED = ("run", "colours", "--endpoint", "local", "--profile", "pinned", "--repeats", "1")


@pytest.fixture(autouse=True)
def _catalogue(transactional_db: None) -> None:
    build.suite()
    build.endpoint()
    build.profile()


@pytest.fixture
def gateway(live_server: Any) -> Iterator[Gateway]:
    """Not up yet."""
    made = Gateway(live_server.url)
    yield made
    made.stop()


@pytest.fixture
def losing(live_server: Any) -> Iterator[Gateway]:
    """Up, and about to lose the answer to the first request that writes."""
    made = Gateway(live_server.url, loses_an_answer=True)
    made.start()
    yield made
    made.stop()


def test_an_answer_that_is_lost_on_the_way_makes_no_second_run(evalboard: Call, losing: Gateway) -> None:
    with Decoding(("blue",) * 3):
        done = evalboard(*ASKED, "--wait", EVALBOARD_URL=losing.url)
    assert losing.lost == [201], "the server had made the run"
    assert (done.returncode, RunRecord.objects.count()) == (0, 1)
    assert "Asking again for up to 300 s." in done.stderr
    assert done.stdout.startswith(f"Run {RunRecord.objects.get().pk} finished: 100.0 points")


def test_without_wait_it_says_how_to_ask_again(evalboard: Call, losing: Gateway) -> None:
    done = evalboard(*ASKED, "--key", "ci-4711", EVALBOARD_URL=losing.url)
    assert (done.returncode, done.stdout) == (4, "")
    assert "repeat the command with --key ci-4711, and no second one is made" in done.stderr
    assert ".. " not in done.stderr
    again = evalboard(*ASKED, "--key", "ci-4711")
    assert (again.returncode, again.stdout.split()[1]) == (0, str(RunRecord.objects.get().pk))


def test_a_server_that_is_not_up_yet_is_waited_for(evalboard: Call, gateway: Gateway) -> None:
    coming_up = [("Asking again for up to 300 s.", gateway.start)]
    with Decoding(("blue",) * 3):
        done = evalboard(*ASKED, "--wait", meanwhile=coming_up, EVALBOARD_URL=gateway.url)
    assert (done.returncode, "100.0 points" in done.stdout, RunRecord.objects.count()) == (0, True, 1)


@pytest.mark.nightly
def test_a_server_that_restarts_is_waited_for(evalboard: Call, gateway: Gateway) -> None:
    run = build.run(repeats=1)

    def come_back() -> None:
        build.decode(run, 1, ("blue",) * 3)
        gateway.start()

    gateway.start()
    steps = [("queued", gateway.stop), ("Asking again for up to 300 s.", come_back)]
    done = evalboard("wait", str(run.pk), meanwhile=steps, EVALBOARD_URL=gateway.url)
    assert (done.returncode, "100.0 points" in done.stdout) == (0, True)


def test_a_server_that_stays_away_is_4(evalboard: Call) -> None:
    done = evalboard(*ASKED, "--wait", "--give-up-after", "0.5", EVALBOARD_URL="http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (4, "")
    assert "The run may or may not exist; repeat the command with --key " in done.stderr
    assert "for up to 0.5 s" in done.stderr
    assert "Traceback" not in done.stderr
