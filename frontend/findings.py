"""What a page found, in words: a claim for the first line and the rest of the sentence after it."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evalboard.core.fingerprint import Difference
from evalboard.core.fingerprint_words import sentence
from frontend.templatetags.numbers import points, share, span
from runs.selectors.board import Board
from runs.selectors.fingerprint_history import EndpointTimeline
from runs.selectors.pool import PoolRow
from runs.selectors.response import TokenCell
from runs.selectors.run import RunReport

ONE_DRAW = "All repeats of a case were sent one seed, so how far the score moves by chance is not known."
DESERTED = "no_matching_worker"  # the code of the warning that nobody is there for a run


@dataclass(frozen=True, slots=True)
class Finding:
    claim: str
    rest: str = ""


def of_run(report: RunReport) -> Finding:
    row = report.row
    worth = f"One of {report.n_cases} cases is worth {points(report.points_per_case)} points."
    if row.status == "queued":
        if any(warning.code == DESERTED for warning in report.warnings):
            return Finding("Waiting for a worker.", worth)  # the banner below says why
        waiting = report.workers_waiting or "The first free worker of its pool takes it."
        return Finding("Waiting for a worker.", f"{waiting} {worth}")
    if row.status == "running":
        return Finding("So far; not a verdict.", worth)
    missing = sum(line.n_missing for line in report.repeats)
    if row.status in ("incomplete", "failed", "cancelled"):
        kept = f"{row.n_done:,} of {row.n_total:,} responses were kept."
        why = {
            "incomplete": f"{missing:,} response{' is' if missing == 1 else 's are'} missing, so no score is given.",
            "failed": "The run failed, so no score is given.",
            "cancelled": "The run was cancelled, so no score is given.",
        }
        return Finding(why[row.status], f"{kept} {worth}")
    if row.range is None:
        n = len(report.buckets)
        if n < 2 and any(row.left_out):
            return Finding("Finished, without a range.", f"No repeat is of draws alone. {_left_out(report)}")
        if n < 2:
            return Finding("Finished, without a score.", "The log gave none. Below it can be scored with a scorer.")
        return Finding(
            f"Served by {n} buckets, so no score is given for the whole.", "Each bucket is scored by itself."
        )
    n_repeats = len(row.drawn_points)
    n_unstable = report.noise.n_unstable
    if any(row.left_out):
        worth = f"{_left_out(report)} {worth}"
    if row.draws.is_one:
        return Finding(f"{span(row.range)} points in one draw.", f"{ONE_DRAW} {worth}")
    if n_repeats == 1:
        return Finding(f"{points(row.range[0])} points in one repeat.", f"One repeat has no spread yet. {worth}")
    if row.range[0] == row.range[1]:
        claim = f"Every one of {n_repeats} repeats scored {points(row.range[0])} points."
    else:
        claim = f"{span(row.range)} points over {n_repeats} repeats."
    if row.draws.is_sampled:
        cases = "1 case differs" if n_unstable == 1 else f"{n_unstable or 0:,} cases differ"
        return Finding(claim, f"{cases} between draws, which is the model’s own doing. {worth}")
    if not n_unstable:
        return Finding(claim, f"No case changed its score between repeats. {worth}")
    cases = "1 case changed its" if n_unstable == 1 else f"{n_unstable} cases changed their"
    return Finding(claim, f"{cases} score between repeats. {worth}")


def _left_out(report: RunReport) -> str:
    n, n_repeats = sum(report.row.left_out), sum(n > 0 for n in report.row.left_out)
    one, their = "came out of a cache or after a fallback and", "holds it" if n == 1 else "holds them"
    answers = f"1 answer {one} is no draw" if n == 1 else f"{n:,} answers {one} are no draws"
    repeats = f"repeat that {their}" if n_repeats == 1 else f"{n_repeats} repeats that hold them"
    return f"{answers}; no range reads the {repeats}."


def of_noise(report: RunReport) -> Finding:
    """What the repeats can tell apart; of the one bucket, for several have a column each."""
    noise, n = report.noise, f"{report.n_cases:,}"
    if len(report.buckets) > 1:
        return Finding("Each bucket is measured by itself.", "Nothing is said of them together.")
    if report.row.draws.is_one:
        return Finding("Not known from one draw.", ONE_DRAW)
    if noise.resolution is None:
        return Finding(
            "Not known from fewer than two repeats.", "A whole second repeat of draws measures how much scores move."
        )
    found = noise.resolution
    claim = f"{found.repeats} repeats resolve a change of {points(found.points)} points on these {n} cases."
    elsewhere = f"{points(found.elsewhere_points)} for other cases like these, if {share(found.churn)} of them change."
    return Finding(claim, elsewhere)


def of_likely(report: RunReport) -> Finding:
    """How many cases the margins of the first repeat say will flip, and how that came out where others have ended."""
    n = report.noise.n_likely_to_flip
    if n is None:
        return Finding("Not predicted.", "Only margins of greedy decoding say which case is likely to flip.")
    if not n:
        return Finding("No case is likely to flip.", "In the first repeat every choice was wide.")
    claim = f"{n:,} case{' is' if n == 1 else 's are'} likely to flip."
    basis = "Predicted from the margins of the first repeat, for numbers that move as under other batching."
    if report.noise.texts_alike == 1:
        return Finding(claim, f"{basis} These repeats were batched alike, and none did.")
    return Finding(claim, basis)


def of_board(board: Board) -> Finding:
    """What needs somebody, each kind counted, and how much is under way."""
    n_deserted = len(board.deserted_pools)
    counted = (
        (len(board.open_releases), "verdict is open", "verdicts are open"),
        (len(board.expired_baselines), "baseline has expired", "baselines have expired"),
        (len(board.attention), "run needs somebody", "runs need somebody"),
        (len(board.probes), "probe needs somebody", "probes need somebody"),
        (n_deserted, "pool has work and nobody to do it", "pools have work and nobody to do it"),
        (len(board.silent_workers), "worker fell silent", "workers fell silent"),
        (len(board.resting_workers), "worker rests", "workers rest"),
    )
    said = [f"{n} {one if n == 1 else many}" for n, one, many in counted if n]
    n_open = len(board.in_progress)
    progress = f"{n_open} run{'' if n_open == 1 else 's'} in progress." if n_open else "No run is in progress."
    return Finding(f"{', '.join(said)}." if said else "Nothing needs you.", progress)


def of_team(pools: Sequence[PoolRow]) -> Finding:
    """How many workers there are and what they do; those that have stopped are no longer counted."""
    states = Counter(worker.state for pool in pools for worker in pool.workers)
    if not states:
        return Finding("No worker is there.", "Runs wait in the queue until one joins.")
    n_pools = sum(bool(pool.workers) for pool in pools)
    among = f" in {n_pools} pools" if n_pools > 1 else ""
    said = {"working": "at work", "idle": "idle", "resting": "resting", "silent": "silent"}
    each = ", ".join(f"{states[state]} {words}" for state, words in said.items() if states[state])
    n = states.total()
    claim = f"{n} worker{'' if n == 1 else 's'}{among}: {each}."
    if not states["silent"]:
        return Finding(claim, "One that falls silent loses its lease, and its shards go to others.")
    return Finding(claim, "What a silent one held goes to others when its lease ends; what it stored stays.")


def of_desertion(pool: PoolRow) -> Finding:
    """Why a pool's work waits, and what to do."""
    n = pool.n_waiting
    waits = f"Pool {pool.name}: {n:,} shard{' waits' if n == 1 else 's wait'}"
    there = Counter(worker.state for worker in pool.workers)
    if not there:
        return Finding(f"{waits} and no worker is there.", "Start one where its engine is:")
    states = " and ".join(f"{there[state]} {state}" for state in ("silent", "resting") if there[state])
    return Finding(f"{waits} and no worker serves it ({states}).", "Start another, or mend what stops them:")


def of_processes(report: RunReport) -> tuple[str, ...]:
    """Which repeats shared an engine process, a sentence for each that decoded any; then who got too few seats."""
    repeats = [
        f"{_listed(line.repeats)} {'shared' if len(line.repeats) > 1 else 'came from'} engine process {line.id}."
        for line in report.processes
        if line.repeats
    ]
    found = [line.seats for line in report.processes if line.seats is not None and line.seats.got < line.seats.asked]
    return (*repeats, *(seats.words for seats in dict.fromkeys(found)))


def _listed(repeats: tuple[int, ...]) -> str:
    if len(repeats) == 1:
        return f"Repeat {repeats[0]}"
    return f"Repeats {', '.join(map(str, repeats[:-1]))} and {repeats[-1]}"


def of_margins(narrowest: TokenCell) -> Finding:
    margin = narrowest.margin
    if margin == 0:
        return Finding(
            f"At {narrowest.position} the two best tokens were exactly tied.", "Margin by position, log scale."
        )
    claim = f"The closest choice was at {narrowest.position}, by {margin:.3f} nats."
    return Finding(claim, "Margin between the two best tokens by position, log scale.")


def of_timelines(lines: Sequence[EndpointTimeline]) -> Finding:
    """The newest rotation of all endpoints, and what moved with it."""
    turns = [turn for line in lines for turn in line.turns]
    if not turns:
        held = "It has" if len(lines) == 1 else "Each has"
        return Finding(
            "No fingerprint has rotated.", f"{held} kept, under every profile, to what served its first run."
        )
    last = max(turns, key=lambda turn: (turn.at, turn.run_id))
    claim = f"The last rotation was on {last.endpoint}, {last.profile}, with run {last.run_id}."
    what = f"What moved: {sentence(last.moved)}. " if last.moved else ""
    return Finding(claim, f"{what}Scores from before and after it are different measurements.")


def of_difference(fields: Difference, *, is_same: bool) -> Finding:
    """What moved between two fingerprints, and how much did not."""
    if is_same:
        return Finding("This is one fingerprint.", "Nothing can differ.")
    equal = f"{len(fields.equal)} field{' is' if len(fields.equal) == 1 else 's are'} equal"
    neither = f"{len(fields.unknown)} unknown on both sides" if fields.unknown else ""
    rest = f"{equal}{', ' if neither else ''}{neither}."
    if not fields.moved:
        claim = "No field that is known on either side differs."
        return Finding(claim, f"The two manifests differ in which unknown fields they name. {rest}")
    return Finding(f"{sentence(fields.moved)}.", f"{len(fields.moved)} moved, {rest}")
