"""The board's texts: a sentence that counts what waits, and a short reason for each release."""

from evalboard.wording.numbers import counted, points
from frontend.shell.findings import Headline
from runs.board import Board
from runs.release import WaitingRelease

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
WORST = {
    "no_ship": ("one must not ship", "{} must not ship"),
    "inconclusive": ("one is not settled", "{} are not settled"),
    "not_comparable": ("one cannot be compared", "{} cannot be compared"),
}
INCONCLUSIVE = {
    "noisy": "Repeats spread by more than the guard.",
    "suite_too_small": "Too few cases to settle it.",
    "too_few_repeats": "Too few repeats: a lean, and no verdict.",
    "cached": "Answers of a cache are no draws.",
    "fallback": "Answers of a fallback are no draws.",
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


def describe_board(board: Board) -> Headline:
    """Count what waits and what needs attention, and name the worst."""
    if not board.waiting and not list(_needs(board)) and not board.in_progress:
        signed = f" Last release signed {board.last_signed:%Y-%m-%d}." if board.last_signed else ""
        return Headline(f"Nothing waits for you.{signed}")
    rest = [_sentence(list(_needs(board))), _under_way(board)]
    return Headline(_waiting(board), " ".join(filter(None, rest)))


def _waiting(board: Board) -> str:
    n = len(board.waiting)
    if not n:
        return "No release waits for a decision."
    waits = f"{_number(n).capitalize()} release{' waits' if n == 1 else 's wait'} for a decision"
    worst = board.waiting[0].row.verdict or ""
    if worst not in WORST:
        return f"{waits}."
    n_worst = sum(each.row.verdict == worst for each in board.waiting)
    one, several = WORST[worst]
    return f"{waits}; {one if n_worst == 1 else several.format(_number(n_worst))}."


def _needs(board: Board) -> list[str]:
    kinds = (
        (len(board.expired_baselines), "a baseline expired", "baselines expired"),
        (len(board.attention), "a run needs a look", "runs need a look"),
        (len(board.probes), "a probe found something", "probes found something"),
        (len(board.failing_schedules), "a schedule is refused", "schedules are refused"),
        (len(board.deserted_pools), "a pool has work and no worker", "pools have work and no worker"),
        (len(board.silent_workers), "a worker is silent", "workers are silent"),
        (len(board.resting_workers), "a worker rests", "workers rest"),
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
    """Give the reason for a release's state, shorter than on its own page."""
    voided = VOIDED.get(release.row.outcome, "")
    claim, rest = _reason(release)
    return Headline(claim, " ".join(filter(None, (rest, voided))))


def _reason(release: WaitingRelease) -> tuple[str, str]:
    others = [gate for place, gate in enumerate(release.gates) if place != release.headline_gate]
    if release.row.verdict == "no_ship":
        claim = f"{counted(release.n_broken, 'case')} broke" if release.n_broken else "The score fell"
        return f"{claim} in {release.suite}.", _others(others)
    if release.row.verdict == "ship":
        gates = f"All {_number(len(release.gates))} gates ship" if len(release.gates) > 1 else f"{release.suite} ships"
        return f"{gates}.", "" if release.row.outcome in VOIDED else "Waits for a sign-off."
    if release.row.verdict == "not_comparable":
        return NOT_COMPARABLE.get(release.reason, "The sides may not be compared."), ""
    if release.row.verdict is None:
        return "Not decided yet.", ""
    if release.reason in INCONCLUSIVE:
        return INCONCLUSIVE[release.reason], ""
    limit = points(release.row.tolerance_points or 0.0)
    settles = ""
    if release.n_more and release.chance is not None:
        tenths = min(max(round(10 * release.chance), 1), 9)  # never sure, as what it rests on is an estimate
        settles = f"{release.n_more} more settle it {tenths} times in 10."
    return f"Crosses the accepted {limit}.", settles


def _others(verdicts: list[str]) -> str:
    if not verdicts or set(verdicts) != {"ship"}:
        return ""
    return "The other gate ships." if len(verdicts) == 1 else f"The other {_number(len(verdicts))} gates ship."
