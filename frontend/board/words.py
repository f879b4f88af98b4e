"""The board's texts: a sentence that counts what waits, and a short reason for each release."""

from collections.abc import Sequence

from evalboard.wording.numbers import capital, counted, percent, points
from frontend.shell.findings import Headline
from runs.board import Board
from runs.release import WaitingRelease

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
# What releases that wait have in common, the worst first: of one, and of several.
WAITS = {
    "no_ship": ("must not ship", "must not ship"),
    "more": ("needs more repeats", "need more repeats"),
    "inconclusive": ("is not settled", "are not settled"),
    "not_comparable": ("cannot be compared", "cannot be compared"),
    "ship": ("waits for {} signature", "wait for {} signature"),
    "": ("is not decided yet", "are not decided yet"),
}
INCONCLUSIVE = {
    "noisy": "Repeats spread by more than the guard.",
    "suite_too_small": "Too few cases to settle it.",
    "too_few_repeats": "Too few repeats: a lean, and no verdict.",
    "cached": "Answers from a cache are not counted.",
    "fallback": "Answers from a fallback are not counted.",
    "incomplete": "Missing responses could turn it.",
    "not_in_turn": "Whole runs move, and the sides took no turns.",
    "uncertified": "No certificate shows that batching moves no bit.",
}
NOT_COMPARABLE = {
    "prompts_unknown": "A log does not hold its prompts.",
    "suite_changed": "The sides answered different cases.",
    "scorer_changed": "The sides were scored by different scorers.",
    "params_changed": "The sides were sampled by different settings.",
    "mixed_fingerprint": "Several backends served one side.",
    "model_changed": "The stack is judged, and the models differ.",
    "rebaseline": "The stack changed since the baseline.",
    "batch_class": "The sides were batched differently.",
    "stack_changed": "Two stacks served the two sides.",
    "computation_apart": "One bucket answered both sides, by two computations.",
    "unknown_stack": "Nobody says what stack served a side.",
}
VOIDED = {"void": "Its sign-off is void.", "expired": "Its waiver has expired."}


def describe_board(board: Board, waiting: Sequence[WaitingRelease], *, may_sign: bool = False) -> Headline:
    """Say what waits, the worst first, and what is stuck.

    waiting: the releases that are listed. may_sign: the reader may.
    """
    if not waiting and not list(_needs(board)) and not board.in_progress:
        signed = f" Last release signed {board.last_signed:%Y-%m-%d}." if board.last_signed else ""
        return Headline(f"Nothing waits for you.{signed}")
    claim, *others = _waiting(waiting, "your" if may_sign else "a") or ["no release waits for a decision"]
    rest = [_sentence(others), _sentence(list(_needs(board))), _under_way(board)]
    return Headline(f"{capital(claim)}.", " ".join(filter(None, rest)))


def _waiting(waiting: Sequence[WaitingRelease], whose: str) -> list[str]:
    """Return a clause for each kind of waiting release: "two releases must not ship"."""
    kinds = [_kind(each) for each in waiting]
    counts = [(kinds.count(kind), kind) for kind in WAITS if kind in kinds]
    nouns = [f" release{'s' if n > 1 else ''}" if place == 0 else "" for place, (n, _) in enumerate(counts)]
    return [
        f"{_number(n)}{noun} {WAITS[kind][n > 1].format(whose)}" for (n, kind), noun in zip(counts, nouns, strict=True)
    ]


def _kind(release: WaitingRelease) -> str:
    verdict = release.row.verdict or ""
    return "more" if verdict == "inconclusive" and release.n_more and release.step == "settle" else verdict


def _needs(board: Board) -> list[str]:
    kinds = (
        (len(board.paused), "an endpoint is paused", "endpoints are paused"),
        (len(board.expired_baselines), "a baseline expired", "baselines expired"),
        (len(board.attention), "a run needs a look", "runs need a look"),
        (len(board.probes), "a probe found something", "probes found something"),
        (len(board.failing_schedules), "a schedule is refused", "schedules are refused"),
        (len(board.deserted_pools), "a pool has work and no worker", "pools have work and no worker"),
        (len(board.silent_workers), "a worker is silent", "workers are silent"),
        (len(board.resting_workers), "a worker is paused", "workers are paused"),
    )
    return [one if n == 1 else f"{_number(n)} {many}" for n, one, many in kinds if n]


def _sentence(parts: list[str]) -> str:
    if not parts:
        return ""
    text = ", ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _under_way(board: Board) -> str:
    n = len(board.in_progress)
    return f"{_number(n).capitalize()} run{' is' if n == 1 else 's are'} under way." if n else ""


def _number(n: int) -> str:
    return NUMBERS[n] if n < len(NUMBERS) else f"{n:,}"


def describe_release(release: WaitingRelease) -> Headline:
    """Return a release's state in one short sentence: the bold start and what follows it."""
    voided = VOIDED.get(release.row.outcome, "")
    claim, rest = _reason(release)
    rest = " ".join(filter(None, (rest, voided)))
    return Headline(claim, f" {rest}" if claim and rest and rest[0] != "," else rest)


def _reason(release: WaitingRelease) -> tuple[str, str]:
    others = [gate for place, gate in enumerate(release.gates) if place != release.headline_gate]
    if release.row.verdict == "no_ship":
        if not release.n_broken:
            return f"The score fell in {release.suite}.", _others(others)
        claim, rest = f"{counted(release.n_broken, 'case')} broke", _what_broke(release)
        return claim, f"{rest} {_others(others)}".rstrip()
    if release.row.verdict == "ship":
        n = len(release.gates)
        return "", f"All {_number(n)} suites ship." if n > 1 else "No worse than you accept."
    if release.row.verdict == "not_comparable":
        if release.reason == "mixed_fingerprint" and release.buckets:
            return _who_answered(release)
        return "", NOT_COMPARABLE.get(release.reason, "The sides may not be compared.")
    if release.row.verdict is None:
        return "", "Not decided yet."
    if release.reason in INCONCLUSIVE:
        return "", INCONCLUSIVE[release.reason]
    if release.n_more and release.chance is not None:
        tenths = min(max(round(10 * release.chance), 1), 9)  # never sure, as what it rests on is an estimate
        have = f"{release.look} of {release.look + release.n_more} repeats. " if release.look else ""
        return "", f"{have}{release.n_more} more settle it {tenths} times in 10."
    return "", f"Crosses the accepted {points(release.row.tolerance_points or 0.0)}."


def _what_broke(release: WaitingRelease) -> str:
    """Return the end of "23 cases broke": where most of them are, and what went wrong."""
    n, tag = release.n_broken, release.broken.tag
    where = f"in {release.suite}."
    if tag is not None and 2 * tag[1] >= n > 1:
        where = f", {'all' if tag[1] == n else f'{tag[1]:,}'} of them in {tag[0]}."
    kinds = ", ".join(f"{n_of:,} × {kind}" for kind, n_of in release.broken.kinds)
    return f"{where} {kinds}." if kinds else where


def _who_answered(release: WaitingRelease) -> tuple[str, str]:
    """Say who else answered of a side, and its score without them."""
    (_, _, _, score), *odd = release.buckets
    parts = ", ".join(f"fp {fingerprint[:4]} answered {percent(share, 0)}" for share, fingerprint, *_ in odd)
    them = "it" if len(odd) == 1 else "them"
    return f"{parts}.", "" if score is None else f"{points(score)} without {them}."


def _others(verdicts: list[str]) -> str:
    if not verdicts or set(verdicts) != {"ship"}:
        return ""
    return "The other suite ships." if len(verdicts) == 1 else f"The other {_number(len(verdicts))} suites ship."
