"""Two runs of the stage's suite whose responses differ as a test says, through the services as a worker would."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from evalboard.core.trace import Decoded, Outcome, make_trace, pack_vocabulary
from runs.models import EngineProcess, RunRecord
from runs.work import store_vocabulary
from tests.frontend import stage

Row = tuple[int, Sequence[tuple[int, float]]]  # the chosen token, and the alternatives with their logprobs


def said(case: int, rows: Sequence[Row], *, text: str | None = None, prompt: Sequence[int] = (1, 2, 3)) -> Decoded:
    """A response decoded as these rows say."""
    chosen = [token for token, _ in rows]
    logprobs = [dict(alternatives).get(token, float("nan")) for token, alternatives in rows]
    plain = stage.reply(case)
    words = "".join(stage.WORDS[token] for token in chosen) if text is None else text
    trace = make_trace(chosen, logprobs, [list(alternatives) for _, alternatives in rows], list(prompt))
    return replace(plain, text=words, trace=trace, n_prompt_tokens=len(prompt))


def sure(token: int, logprob: float = -0.25) -> Row:
    """A position where the choice was wide."""
    return token, [(token, logprob), (11, logprob - 3.0)]


def tie(token: int, other: int, *, by: float = 0.0) -> Row:
    """A position where another token was almost as likely."""
    return token, [(token, -0.7), (other, -0.7 - by)]


END_ROW = sure(stage.END, -0.5)


def near_tie(case: int, *, n_more: int = 0) -> tuple[Decoded, Decoded]:
    """Four shared tokens, drift from the second on, and a flip at 3: "blue" against " red".

    n_more: so many further tokens after it, for what only longer answers have.
    """
    more = [sure(9)] * n_more
    ours = [sure(4), sure(5), sure(6), tie(1, 10), sure(9), *more, END_ROW]
    theirs = [sure(4), sure(5, -0.2501), sure(6, -0.2499), tie(10, 1, by=0.00001), sure(7), sure(9), *more, END_ROW]
    return said(case, ours), said(case, theirs)


def make(
    ours: Mapping[int, Outcome], theirs: Mapping[int, Outcome], *, by: EngineProcess | None = None, repeats: int = 1
) -> tuple[RunRecord, RunRecord]:
    """Two finished runs; a case that is not named has the same plain response on both sides.

    by: the candidate's engine process, where another served it.
    """
    worker = stage.worker(f"runner-{RunRecord.objects.count()}")
    process = stage.engine(worker, batch_class="mixed")  # whose bits may move
    baseline = stage.start(repeats=repeats)
    stage.serve(worker, process, answer=lambda _, case: ours.get(case, stage.reply(case, 1)))
    candidate = stage.start(repeats=repeats)
    stage.serve(worker, by or process, answer=lambda _, case: theirs.get(case, stage.reply(case, 1)))
    for run in (baseline, candidate):
        run.refresh_from_db()
    return baseline, candidate


def other_words(process: EngineProcess, words: Sequence[bytes]) -> EngineProcess:
    """The same process with a vocabulary of its own; token 0 ends an answer."""
    data = pack_vocabulary(list(words), end_ids=[stage.END])
    store_vocabulary(process=process, digest=f"{len(words):064x}", n_tokens=len(words), data=data)
    process.refresh_from_db()
    return process
