"""What the pages of workers and of fingerprints found, in words."""

from collections import Counter
from collections.abc import Sequence

from evalboard.core.profile import ManifestDifference
from evalboard.wording.manifest import render_moved
from evalboard.wording.numbers import counted
from frontend.shell.findings import Finding
from runs.fingerprints import EndpointTimeline
from runs.work import PoolRow


def describe_team(pools: Sequence[PoolRow]) -> Finding:
    """Say how many workers there are and what they do; those that have stopped are no longer counted."""
    states = Counter(worker.state for pool in pools for worker in pool.workers)
    if not states:
        return Finding("No worker is there.", "Runs wait in the queue until one joins.")
    n_pools = sum(bool(pool.workers) for pool in pools)
    among = f" in {n_pools} pools" if n_pools > 1 else ""
    state_words = {"working": "at work", "idle": "idle", "resting": "resting", "silent": "silent"}
    each = ", ".join(f"{states[state]} {words}" for state, words in state_words.items() if states[state])
    n = states.total()
    claim = f"{counted(n, 'worker')}{among}: {each}."
    if not states["silent"]:
        return Finding(claim, "One that falls silent loses its lease, and its shards go to others.")
    return Finding(claim, "What a silent one held goes to others when its lease ends; what it stored stays.")


def describe_desertion(pool: PoolRow) -> Finding:
    """Say why a pool's work waits, and what to do."""
    n = pool.n_waiting
    waits = f"Pool {pool.name}: {counted(n, 'shard')} {'waits' if n == 1 else 'wait'}"
    there = Counter(worker.state for worker in pool.workers)
    if not there:
        return Finding(f"{waits} and no worker is there.", "Start one where its engine is:")
    states = " and ".join(f"{there[state]} {state}" for state in ("silent", "resting") if there[state])
    return Finding(f"{waits} and no worker serves it ({states}).", "Start another, or mend what stops them:")


def describe_timelines(lines: Sequence[EndpointTimeline]) -> Finding:
    """Return the newest rotation of all endpoints, and what moved with it."""
    turns = [turn for line in lines for turn in line.turns]
    if not turns:
        have = "It has" if len(lines) == 1 else "Each has"
        return Finding(
            "No fingerprint has rotated.", f"{have} kept, under every profile, to what served its first run."
        )
    last = max(turns, key=lambda turn: (turn.at, turn.run_id))
    claim = f"The last rotation was on {last.endpoint}, {last.profile}, with run {last.run_id}."
    what = f"What moved: {render_moved(last.moved)}. " if last.moved else ""
    return Finding(claim, f"{what}Scores from before and after it are different measurements.")


def describe_difference(fields: ManifestDifference, *, is_same: bool) -> Finding:
    """Say what moved between two fingerprints, and how much did not."""
    if is_same:
        return Finding("This is one fingerprint.", "Nothing can differ.")
    equal = f"{counted(len(fields.equal), 'field')} {'is' if len(fields.equal) == 1 else 'are'} equal"
    neither = f"{len(fields.unknown)} unknown on both sides" if fields.unknown else ""
    rest = f"{equal}{', ' if neither else ''}{neither}."
    if not fields.moved:
        claim = "No field that is known on either side differs."
        return Finding(claim, f"The two manifests differ in which unknown fields they name. {rest}")
    return Finding(f"{render_moved(fields.moved)}.", f"{len(fields.moved)} moved, {rest}")
