"""Read what the core comes to as a person does: each line with its table and its code."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalboard.core.compare.cause import find_cause
from evalboard.core.compare.comparability import SideSetup, find_blocks
from evalboard.core.compare.divergence import Divergence
from evalboard.core.compare.known_pair import KnownResponse, Pair
from evalboard.core.probes.call import ProbeResult
from evalboard.core.release import verdict
from evalboard.core.release.gate import GateQuestion, VerdictLine
from evalboard.core.release.gate_verdict import GateInput
from evalboard.core.stats.numeric_noise import LogitNoise
from evalboard.core.suite import PolicySettings
from evalboard.wording import probe, release_warnings, run
from evalboard.wording import release_verdict as words
from evalboard.wording.cause import explain_cause
from evalboard.wording.comparability import explain_block, write_prompts
from evalboard.wording.next_steps import next_step
from evalboard.wording.release import write_verdict
from evalboard.wording.replay import replay_command
from evalboard.wording.run_warnings import WarnedRun, list_warnings
from tests.core.questions import STRICT
from tests.core.test_cause import ASSUMED, SIDE

REPLAY = replay_command(12, "sum-17", repeat=1)

RUNS = {"baseline": 1, "candidate": 2}


@dataclass(frozen=True)
class Sentence:
    """table: which table of `evalboard.wording` has the code. code: "" for a sentence that has none."""

    table: str
    code: str
    text: str


Situations = Mapping[str, Callable[[], list[Sentence]]]


def read_gate(question: GateQuestion, policy: PolicySettings = STRICT) -> list[Sentence]:
    """Judge one suite and return its reasons, warnings and next steps."""
    judged = verdict.judge_gate(question, policy)
    return [
        *_read_lines("reason", judged.reasons, words.reason),
        *_read_lines("warning", judged.warnings, release_warnings.warning),
        *_read_lines("step", judged.next, lambda code, facts: next_step(code, {**facts, "runs": RUNS})),
    ]


def read_release(*gates: tuple[str, str, GateQuestion]) -> list[Sentence]:
    """Judge the gates of a release, each a tier, a suite's name and a question; its summary comes first."""
    judged = [GateInput(tier, name, verdict.judge_gate(question, STRICT)) for tier, name, question in gates]
    document = write_verdict(verdict.decide_from_gates(judged), [RUNS] * len(judged))
    tables = {"reason": "reasons", "warning": "warnings", "step": "next"}
    lines = [Sentence(table, line["code"], line["text"]) for table, key in tables.items() for line in document[key]]
    return [Sentence("summary", "", document["summary"]), *lines]


def read_cause(
    parting: Divergence | None,
    *,
    noise: LogitNoise = ASSUMED,
    base: KnownResponse = SIDE,
    replay: str = REPLAY,
    has_other_prompt: bool | None = None,
    **candidate: Any,
) -> list[Sentence]:
    """Find the cause of a pair whose candidate differs from `base` in these facts.

    replay: the command that decodes the case again, "" where nothing can.
    """
    cause = find_cause(Pair(base, replace(base, **candidate), has_other_prompt), parting, noise)
    code = f"unknown: {cause.evidence['reason']}" if cause.code == "unknown" else cause.code
    return [Sentence("cause", code, explain_cause(cause, replay=replay, backends=("A", "B")))]


def read_probe(kind: str, finding: ProbeResult) -> list[Sentence]:
    text = probe.describe_finding(kind, finding.state, finding.numbers)
    return [Sentence(f"{kind} probe", finding.state, text)]


def read_batch_comparison(finding: ProbeResult) -> list[Sentence]:
    text = probe.describe_batch_comparison(finding.state, finding.numbers)
    return [Sentence("two batch probes", finding.state, text)]


def read_run_warnings(**facts: Any) -> list[Sentence]:
    """Return the warnings of a run of which these facts are known. facts: as in `WarnedRun`."""
    return [Sentence(f"run {line.severity}", line.code, line.text) for line in list_warnings(WarnedRun(**facts))]


def read_waiting(code: str, **facts: Any) -> list[Sentence]:
    return [Sentence("waiting", code, run.waiting(code, facts))]


def read_warning(code: str, **facts: Any) -> list[Sentence]:
    """Return a release's warning that the core knows nothing of: how its runs were served, what was judged before."""
    return [Sentence("warning", code, release_warnings.warning(code, facts))]


def read_comparison(baseline: SideSetup, candidate: SideSetup, treatment: str, **counts: Any) -> list[Sentence]:
    """Return what keeps two sides from being compared, or is said beside their comparison."""
    blocks = find_blocks(baseline, candidate, treatment, is_verdict=False, **counts)
    return [Sentence("comparison", block.code, explain_block(block.code, block.facts)) for block in blocks]


def read_prompts(**counts: Any) -> list[Sentence]:
    """Return what is said of prompts that were compared. counts: as in a comparison's summary."""
    return [Sentence("prompts", "", write_prompts(counts))]


def _read_lines(
    table: str, lines: Iterable[VerdictLine], sentence: Callable[[str, Mapping[str, Any]], str]
) -> list[Sentence]:
    return [Sentence(table, line.code, sentence(line.code, line.facts)) for line in lines]
