"""The board's texts: a sentence that counts what waits, and a short reason for each release."""

from collections.abc import Sequence

from evalboard.wording.messages import Messages
from evalboard.wording.numbers import capital, percent
from frontend.shell.findings import Headline
from runs.board import Board
from runs.release import SETTLING_STEPS, WaitingRelease

# What releases that wait have in common, the worst first.
KINDS = ("no_ship", "more", "inconclusive", "not_comparable", "ship", "undecided")
WAITS = Messages(
    "board",
    {
        ("board", "denies"): {
            "nothing": "Nothing waits for you.",
            "last_signed": "Last release signed {at:%Y-%m-%d}.",
            "none": "no release waits for a decision",
        },
        ("releases", "asserts"): {
            "no_ship": "{n:words}{noun} must not ship",
            "more": "{n:words}{noun} {n:needs|need} more repeats",
            "inconclusive": "{n:words}{noun} {n:is|are} not settled",
            "not_comparable": "{n:words}{noun} cannot be compared",
            "ship": "{n:words}{noun} {n:waits|wait} for {whose} signature",
            "undecided": "{n:words}{noun} {n:is|are} not decided yet",
        },
        ("needs", "asserts"): {
            "paused": "{n:an} {n:endpoint is|endpoints are} paused",
            "expired_baselines": "{n:a} {n:baseline|baselines} expired",
            "attention": "{n:a} {n:run needs|runs need} a look",
            "probes": "{n:a} {n:probe|probes} found something",
            "failing_schedules": "{n:a} {n:schedule is|schedules are} refused",
            "deserted_pools": "{n:a} {n:pool has|pools have} work and no worker",
            "silent_workers": "{n:a} {n:worker is|workers are} silent",
            "resting_workers": "{n:a} {n:worker is|workers are} paused",
        },
        ("work", "asserts"): {"under_way": "{n:words} {n:run is|runs are} under way."},
        ("work", "unknown"): {
            "no_worker": "no worker in pool {pool}",
            "waiting_for_endpoint": "waiting for endpoint",
            "queued": "waits in the queue",
            "engine_starts": "an engine starts",
        },
    },
)
NEEDS = Messages(
    "board_need",
    {
        ("endpoint", "asserts"): {
            "paused": "{endpoint}: {why}",
            "paused_waits": "{endpoint}: {n:run} {n:waits|wait}. {why}",
        },
        ("baseline", "asserts"): {"expired": "{suite} on {line}, {profile}: run {run}, {score}{turned}."},
        ("probe", "asserts"): {"probe": "{kind} of {endpoint}, {profile}: {finding}", "probe_failed": "it failed."},
        ("schedule", "asserts"): {"schedule": "{schedule}: {n} starts in a row were refused."},
        ("worker", "asserts"): {
            "silent": "{worker} of pool {pool}. What it held goes to others when its lease ends.",
            "several_silent": "{n} of pool {pool}. What they held goes to others when their leases end.",
            "rests": "{worker} of pool {pool}, until {until:%H:%M} UTC. {note}",
        },
        ("run", "asserts"): {
            "run": "run {run}, {suite} on {endpoint}, {profile}: {what}",
            "run_failed": "it failed.",
            "run_needs": "{reasons}.",
            "incomplete": "lacks {n_missing:,} of {n_total:,} responses",
            "two_computations": "has outlier responses",
            "unsteady": "has repeats that are not the same to the bit",
            "broken_pin": "broke a pin",
        },
    },
)
REASONS = Messages(
    "board_release",
    {
        ("verdict", "unknown"): {
            "noisy": "Repeats spread by more than the range limit.",
            "suite_too_small": "Too few cases to settle it.",
            "too_few_repeats": "Too few repeats for a verdict.",
            "one_draw": "All repeats of a side used one seed, so noise is unknown.",
            "copies": "Some repeats are copies of earlier answers.",
            "no_metric": "The policy's metric needs samples that are right or wrong.",
            "cached": "Answers from a cache are not counted.",
            "fallback": "Answers from a fallback are not counted.",
            "incomplete": "Missing responses could change the verdict.",
            "not_in_turn": "Scores vary between repeats, and the sides ran at different times.",
            "uncertified": "It is not certified that batching leaves answers unchanged.",
            "crosses": "The interval includes a larger drop than you accept ({tolerance:points}).",
            "open": "The release says what is missing.",
            "undecided": "Not decided yet.",
        },
        ("comparison", "denies"): {
            "prompts_unknown": "A log does not hold its prompts.",
            "suite_changed": "The sides answered different cases.",
            "scorer_changed": "The sides were scored by different scorers.",
            "judge_changed": "The judge changed between the sides.",
            "params_changed": "The sides were sampled by different settings.",
            "mixed_fingerprint": "Several backends served one side.",
            "model_changed": "The two sides ran different models.",
            "rebaseline": "The stack changed since the baseline.",
            "batch_class": "The sides were batched differently.",
            "stack_changed": "Two stacks served the two sides.",
            "computation_apart": "Both sides report the same model and stack, but their numbers differ.",
            "unknown_stack": "The stack of a side is unknown.",
            "not_comparable": "The sides may not be compared.",
        },
        ("verdict", "asserts"): {
            "fell": "The score fell in {suite}.",
            "broke": "{n:case} broke",
            "where": "in {suite}.",
            "all_in_tag": ", all of them in {tag}.",
            "most_in_tag": ", {n_tag:,} of them in {tag}.",
            "kinds": "{kinds}.",
            "all_ship": "All {n:words} suites ship.",
            "ships": "A larger drop than you accept is ruled out.",
            "other_ships": "The other suite ships.",
            "others_ship": "The other {n:words} suites ship.",
        },
        ("repeats", "asserts"): {"look": "{look} of {n} repeats."},
        ("repeats", "allows"): {"settles": "{n_more} more settle it {tenths} times in 10."},
        ("backends", "asserts"): {"answered": "{parts}.", "without": "{score:points} without {n:it|them}."},
        ("sign-off", "denies"): {"void": "Its sign-off is void.", "expired": "Its waiver has expired."},
    },
)


def describe_board(board: Board, waiting: Sequence[WaitingRelease], *, may_sign: bool = False) -> Headline:
    """Say what waits, the worst first, and what is stuck.

    waiting: the releases that are listed. may_sign: the reader may.
    """
    if not waiting and not list(_needs(board)) and not board.in_progress:
        signed = f" {WAITS.write('last_signed', at=board.last_signed)}" if board.last_signed else ""
        return Headline(f"{WAITS.write('nothing')}{signed}")
    claim, *others = _waiting(waiting, "your" if may_sign else "a") or [WAITS.write("none")]
    rest = [_sentence(others), _sentence(list(_needs(board))), _under_way(board)]
    return Headline(f"{capital(claim)}.", " ".join(filter(None, rest)))


def _waiting(waiting: Sequence[WaitingRelease], whose: str) -> list[str]:
    """Return a clause for each kind of waiting release: "two releases must not ship"."""
    kinds = [_kind(each) for each in waiting]
    counts = [(kind, kinds.count(kind)) for kind in KINDS if kind in kinds]
    nouns = [f" release{'s' if n > 1 else ''}" if place == 0 else "" for place, (_, n) in enumerate(counts)]
    return [WAITS.write(kind, n=n, noun=noun, whose=whose) for (kind, n), noun in zip(counts, nouns, strict=True)]


def _kind(release: WaitingRelease) -> str:
    verdict = release.row.verdict or "undecided"
    return (
        "more"
        if verdict == "inconclusive" and release.n_more and release.step and release.step.code in SETTLING_STEPS
        else verdict
    )


def _needs(board: Board) -> list[str]:
    counts = ((code, len(getattr(board, code))) for code, row in WAITS.items() if row.subject == "needs")
    return [WAITS.write(code, n=n) for code, n in counts if n]


def _sentence(parts: list[str]) -> str:
    return f"{capital(', '.join(parts))}." if parts else ""


def _under_way(board: Board) -> str:
    n = len(board.in_progress)
    return capital(WAITS.write("under_way", n=n)) if n else ""


def describe_release(release: WaitingRelease) -> Headline:
    """Return a release's state in one short sentence: the bold start and what follows it."""
    outcome = release.row.outcome
    voided = REASONS.write(outcome) if outcome in ("void", "expired") else ""
    claim, rest = _reason(release)
    rest = " ".join(filter(None, (rest, voided)))
    return Headline(claim, f" {rest}" if claim and rest and rest[0] != "," else rest)


def _reason(release: WaitingRelease) -> tuple[str, str]:
    row, reason, n_gates = release.row, release.reason, len(release.gates)
    others = [gate for place, gate in enumerate(release.gates) if place != release.headline_gate]
    if row.verdict == "no_ship":
        if not release.n_broken:
            return REASONS.write("fell", suite=release.suite), _others(others)
        return REASONS.write("broke", n=release.n_broken), f"{_what_broke(release)} {_others(others)}".rstrip()
    if row.verdict == "ship":
        return "", REASONS.write("all_ship" if n_gates > 1 else "ships", n=n_gates)
    if row.verdict == "not_comparable":
        if reason == "mixed_fingerprint" and release.buckets:
            return _who_answered(release)
        return "", REASONS.write(reason if reason in REASONS else "not_comparable")
    if row.verdict is None:
        return "", REASONS.write("undecided")
    if reason in REASONS:
        return "", REASONS.write(reason)
    if release.n_more and release.chance is not None:
        tenths = min(max(round(10 * release.chance), 1), 9)  # never sure, as what it rests on is an estimate
        have = REASONS.write("look", look=release.look, n=release.look + release.n_more) if release.look else ""
        return "", f"{have} {REASONS.write('settles', n_more=release.n_more, tenths=tenths)}".lstrip()
    return "", REASONS.write("crosses" if reason == "not_settled" else "open", tolerance=row.tolerance_points or 0.0)


def _what_broke(release: WaitingRelease) -> str:
    """Return the end of "23 cases broke": where most of them are, and what went wrong."""
    n, tag = release.n_broken, release.broken.tag
    where = REASONS.write("where", suite=release.suite)
    if tag is not None and 2 * tag[1] >= n > 1:
        where = REASONS.write("all_in_tag" if tag[1] == n else "most_in_tag", tag=tag[0], n_tag=tag[1])
    kinds = ", ".join(f"{n_of:,}\u00a0×\u00a0{kind}" for kind, n_of in release.broken.kinds)
    return f"{where} {REASONS.write('kinds', kinds=kinds)}" if kinds else where


def _who_answered(release: WaitingRelease) -> tuple[str, str]:
    """Say who else answered of a side, and its score without them."""
    (_, _, _, score), *odd = release.buckets
    parts = ", ".join(f"{stack} answered {percent(share, 0)}" for share, stack, *_ in odd)
    answered = capital(REASONS.write("answered", parts=parts))
    return answered, "" if score is None else REASONS.write("without", score=score, n=len(odd))


def _others(verdicts: list[str]) -> str:
    if not verdicts or set(verdicts) != {"ship"}:
        return ""
    return REASONS.write("other_ships" if len(verdicts) == 1 else "others_ship", n=len(verdicts))
