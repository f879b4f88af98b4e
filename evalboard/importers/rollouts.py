"""Read rollouts of reinforcement learning: token ids with the sampler's and the trainer's logprobs.

evalboard.core.rollouts knows the fields of each writer. Each rollout is a case of its own, called by its id or
its place in the file: what a trainer gave equal answers may differ.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.errors import InvalidInput
from evalboard.core.rollouts import Rollout, is_like_rollout, parse_row, refuse_zeros
from evalboard.importers.calls import own_id, slug, title
from evalboard.importers.files import LogFile
from evalboard.importers.json_files import OddRows, naming, read_rows
from evalboard.importers.records import LoggedCase, LoggedPositions, LoggedResponse, LoggedRun, LoggedTrainer
from evalboard.wording.numbers import counted

TOOL = "rollouts"
WITHOUT_TEXT = "The rollouts hold token ids and no text: prompts and answers are shown by their ids."
WITHOUT_TRAINER = (
    "They hold no logprobs of a trainer, so nothing says how far it is. Where these are in a second file, "
    "`evalboard on-policy ROLLOUTS --trainer FILE --keep` stores both."
)
ROUNDED = (
    "The two sides' logprobs of {n} differ by less than the 32 bits that a stored trace holds of each. The figures "
    "are those of the file's own numbers."
)


def recognises(files: Sequence[LogFile]) -> bool:
    """Return whether every file begins with token ids or logprobs as rollouts have them."""
    return bool(files) and all(is_like_rollout(file.first_object) for file in files)


def read(files: Sequence[LogFile]) -> list[LoggedRun]:
    """Return one run for each file; unreadable rows are left out and noted, as in `OddRows`.

    Raises InvalidInput naming file and line.
    """
    return [_run(file) for file in files]


def _run(file: LogFile) -> LoggedRun:
    odd = OddRows(file)
    by_place = dict(_rollouts(file, odd))
    odd_notes, rollouts = odd.settle(), list(by_place.values())
    with naming(file):
        if not rollouts:
            raise InvalidInput("holds no rollout")
        refuse_zeros(rollouts)
        names = _names(by_place)
    return LoggedRun(
        slug=slug(title([file.name])) or TOOL,
        title=title([file.name]),
        tool=TOOL,
        model="",
        detail="ids_alone",
        status="finished",
        cases=tuple(_case(*each) for each in zip(names, rollouts, strict=True)),
        responses=tuple(_response(*each) for each in zip(names, rollouts, strict=True)),
        notes=(*odd_notes, *_notes(rollouts)),
    )


def _rollouts(file: LogFile, odd: OddRows) -> Iterator[tuple[int, Rollout]]:
    """Yield the rollouts with their places, from 1 on; a row that cannot be read has a place too."""
    n_read = 0
    for place, row in read_rows(file, odd):
        for rollout in odd.read(place, _read_row, row) or ():
            n_read += 1
            yield n_read + len(odd.problems), rollout


def _read_row(row: Mapping[str, Any]) -> list[Rollout]:
    try:
        parsed = parse_row(row)
    except ValueError as problem:
        raise InvalidInput(str(problem)) from problem
    for rollout in parsed:
        own_id({"id": rollout.name}, ("id",))  # a name that no case can have is the row's problem alone
    return parsed


def _names(by_place: Mapping[int, Rollout]) -> list[str]:
    """The rollouts' own ids where each has one that no other has, else their places."""
    names = [own_id({"id": rollout.name}, ("id",)) for rollout in by_place.values()]
    if all(names) and len(set(names)) == len(names):
        return names
    return [f"rollout-{place}" for place in by_place]


def _case(name: str, rollout: Rollout) -> LoggedCase:
    """A prompt by its ids, so that no two prompts are ever taken for one."""
    if rollout.prompt_ids is None:
        return LoggedCase(id=name)
    ids = " ".join(map(str, rollout.prompt_ids.tolist()))
    return LoggedCase(id=name, messages=({"role": "user", "content": f"Token ids: {ids or 'none'}"},))


def _response(name: str, rollout: Rollout) -> LoggedResponse:
    n, ids = len(rollout.token_ids), rollout.token_ids.tolist()
    return LoggedResponse(
        case_id=name,
        repeat=1,
        positions=LoggedPositions.from_columns([b""] * n, _own(rollout, rollout.logprobs), [0] * n, [], [], ids),
        prompt_token_ids=None if rollout.prompt_ids is None else tuple(rollout.prompt_ids.tolist()),
        n_tokens=n,
        trainer=_trainer(rollout),
    )


def _trainer(rollout: Rollout) -> LoggedTrainer | None:
    if rollout.trainer is None:
        return None
    return LoggedTrainer(tuple(_own(rollout, rollout.trainer).tolist()), tuple(rollout.is_sampled.tolist()))


def _own(rollout: Rollout, logprobs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the logprobs of sampled tokens, NaN elsewhere: other values of writers are no logprobs."""
    return np.where(rollout.is_sampled, logprobs, np.nan)


def _notes(rollouts: Sequence[Rollout]) -> Iterator[str]:
    yield WITHOUT_TEXT
    sides = [(_own(each, each.logprobs), _own(each, each.trainer)) for each in rollouts if each.trainer is not None]
    if not sides:
        yield WITHOUT_TRAINER
    elif n := sum(_count_rounded(*side) for side in sides):
        yield ROUNDED.format(n=counted(n, "token"))


def _count_rounded(sampler: NDArray[np.float64], trainer: NDArray[np.float64]) -> int:
    """Return how many logprobs differ between the two sides, but not in float32."""
    return int(((sampler != trainer) & (sampler.astype(np.float32) == trainer.astype(np.float32))).sum())
