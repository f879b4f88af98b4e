"""The child process behind an engine: deadlines, interruption, last words, and that nothing outlives it."""

import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.processes import wait_for_end
from tests.waiting import HANG_SECONDS
from worker.engines.process import DeadlinePassed, EngineInterrupted, LineProcess, ProcessEnded

HOST = Path(__file__).resolve().parents[2] / "worker" / "vllm_host.py"
ECHO = """
    import sys
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""
Start = Callable[[str], LineProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    children = []

    def begin(script: str) -> LineProcess:
        child = LineProcess([sys.executable, "-c", textwrap.dedent(script)], os.environ)
        children.append(child)
        return child

    yield begin
    for child in children:
        child.kill()


def soon(seconds: float = HANG_SECONDS) -> float:
    return time.monotonic() + seconds


def test_a_message_larger_than_a_pipe_comes_back_whole(start: Start) -> None:
    child = start(ECHO)
    message = {"text": "née 東京 " * 50_000}
    # The child answers while it still reads: writing all of it first would lock both sides.
    reader = threading.Thread(target=child.send, args=(message,), kwargs={"seconds": HANG_SECONDS})
    reader.start()
    assert child.receive(deadline=soon()) == message
    reader.join()


def test_silence_ends_at_the_deadline(start: Start) -> None:
    child = start("import time; time.sleep(60)")
    with pytest.raises(DeadlinePassed):
        child.receive(deadline=soon(0.1))


def test_a_child_that_does_not_read_ends_at_the_deadline(start: Start) -> None:
    child = start("import time; time.sleep(60)")
    with pytest.raises(DeadlinePassed):
        child.send({"text": "x" * 1_000_000}, seconds=0.2)


def test_a_child_that_ends_is_noticed_and_its_words_are_kept(start: Start) -> None:
    child = start("import sys; print('first\\rsecond', file=sys.stderr); sys.exit('no memory left')")
    with pytest.raises(ProcessEnded):
        child.receive(deadline=soon())
    assert child.wait(seconds=HANG_SECONDS)
    child.kill()
    assert child.last_words() == "first\nsecond\nno memory left"
    assert child.exit_words() == "ended with exit status 1"


def test_another_thread_can_interrupt_waiting(start: Start) -> None:
    child = start("import time; time.sleep(60)")
    threading.Timer(0.1, child.interrupt).start()
    with pytest.raises(EngineInterrupted):
        child.receive(deadline=soon())


def test_only_the_last_lines_are_kept(start: Start) -> None:
    child = start("import sys\nfor i in range(1000): print(i, file=sys.stderr)")
    child.wait(seconds=HANG_SECONDS)
    child.kill()
    assert child.last_words().splitlines() == [str(number) for number in range(800, 1000)]


def test_killing_takes_the_child_s_own_children_along(start: Start) -> None:
    child = start(
        """
        import json, subprocess, sys, time
        grandchild = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(json.dumps({"pid": grandchild.pid}), flush=True)
        time.sleep(600)
        """
    )
    grandchild = child.receive(deadline=soon())["pid"]
    child.kill()
    wait_for_end(grandchild)
    assert child.exit_words() == "was ended by SIGKILL"


def test_killing_twice_is_harmless(start: Start) -> None:
    child = start(ECHO)
    child.kill()
    child.kill()
    assert child.has_ended


def test_a_command_that_cannot_run_raises() -> None:
    with pytest.raises(FileNotFoundError):
        LineProcess(["/nonexistent/python"], {})


def test_a_child_outlives_the_thread_that_asked_for_it(start: Start) -> None:
    """The kernel's parent-death signal follows the parent's thread, not its process."""
    started: list[LineProcess] = []
    script = f"""
        import ctypes, signal
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
        {textwrap.indent(textwrap.dedent(ECHO), " " * 8).strip()}
    """
    thread = threading.Thread(target=lambda: started.append(start(script)))
    thread.start()
    thread.join()
    child = started[0]
    child.send({"n": 1}, seconds=HANG_SECONDS)
    assert child.receive(deadline=soon()) == {"n": 1}
    child.send({"n": 2}, seconds=HANG_SECONDS)
    assert child.receive(deadline=soon()) == {"n": 2}
