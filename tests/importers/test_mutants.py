"""Whatever is damaged in a log, it is read or refused: no other exception, no hang, no answer lost without a word."""

import os
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from evalboard.core.errors import InvalidInput
from evalboard.importers import wire
from evalboard.importers.files import LogFile
from evalboard.importers.formats import read_logs
from evalboard.importers.records import LoggedRun
from tests.importers.mutants import SAMPLES, damage, whole, written
from tests.nightly import few

IS_SOAK = bool(os.environ.get("EVALBOARD_SOAK"))
N_MUTANTS = 5000 if IS_SOAK else 60
FIRST = random.SystemRandom().randrange(10**9) if IS_SOAK else 0
SECONDS = 10.0  # of the processor, for a log of 60 kB
MAX_CHARS = 6000
# What a refusal says of a file as a whole; every other one names a place in it.
WHOLE = (
    *("is not JSON", "is not UTF-8 text", "is a zip", "holds ", "is neither", "is compressed", "is of the same time"),
    *("points at other logs", "they are of two batches", "is missing", "is no ", "names another prompt", "unpacks to"),
)
PLACE = re.compile(
    r"^\S+ must be |(line|item|event) \d+|(results|requests)\[\d+\]|samples[/\[]|header|_journal/|(results|eval)\."
)
EXPLAINED = re.compile(r"cannot be read and are missing|copies of one answer|are missing|declared samples")


@pytest.mark.drawn
@pytest.mark.parametrize("sample", few(SAMPLES, 4))
def test_a_damaged_log_is_read_or_refused(sample: str, tmp_path: Path) -> None:
    n_before = count_answers(read_logs(written(tmp_path, whole(sample)))[1])
    for seed in range(FIRST, FIRST + N_MUTANTS):
        what, content = damage(sample, seed)
        files = written(tmp_path, content)
        began = time.process_time()
        try:
            name, runs = read_logs(files)
        except InvalidInput as refused:
            problems = list(unclear(refused, files))
        except Exception as error:
            raise AssertionError(f"{what}: {error!r}") from error
        else:
            problems = list(broken(name, runs))
            if " = " in what and count_answers(runs) < n_before and not is_explained(runs):
                problems.append(f"lost answers without a word: {[run.notes for run in runs]}")
        assert time.process_time() - began < SECONDS, what
        assert problems == [], what


def count_answers(runs: Sequence[LoggedRun]) -> int:
    return sum(not each.error for run in runs for each in run.responses)


def is_explained(runs: Sequence[LoggedRun]) -> bool:
    notes = [note for run in runs for note in run.notes]
    return any(map(EXPLAINED.search, notes)) or any(each.error for run in runs for each in run.responses)


def unclear(refused: InvalidInput, files: Sequence[LogFile]) -> Iterator[str]:
    """Yield what is wrong with a refusal: it names a file or the format, and a place or what the file is as a whole."""
    if not refused.fields:
        yield f"names nothing: {refused.detail}"
    for name, problem in refused.fields.items():
        if name == "format":
            continue
        if name not in [file.name for file in files]:
            yield f"names no file: {name}"
        if not PLACE.search(problem) and not any(words in problem for words in WHOLE):
            yield f"names no place: {problem}"
        if not 5 < len(problem) < MAX_CHARS or "Traceback" in problem or "object at 0x" in problem:
            yield f"is no sentence: {problem[:200]}"


def broken(name: str, runs: Sequence[LoggedRun]) -> Iterator[str]:
    """Yield what makes a run half, or no run that can be stored."""
    packed = list(wire.lines(name, runs))
    if list(wire.lines(*wire.read_lines(packed))) != packed:
        yield "does not survive its way to the server"
    for run in runs:
        ids = Counter(case.id for case in run.cases)
        answers = Counter((each.case_id, each.repeat) for each in run.responses)
        if max(ids.values(), default=1) > 1 or max(answers.values(), default=1) > 1:
            yield "has a case or a response twice"
        if any(case_id not in ids or repeat < 1 for case_id, repeat in answers):
            yield "has a response of no case"
        if not ids:
            yield "has no case"
        is_whole = all((case_id, repeat) in answers for case_id in ids for repeat in range(1, (run.n_repeats or 1) + 1))
        if run.status == "finished" and (not is_whole or any(each.error for each in run.responses)):
            yield "says that it is whole, and is not"
        names = {score for each in run.responses for score in each.scores}
        if not names <= set(run.scorers):
            yield "has scores that it does not name"
