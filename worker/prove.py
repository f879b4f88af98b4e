"""`evalboard worker prove`: measure what this node's engine does, and write one archive to send home.

No server and no database are needed. Every model is decoded under every setup: do the pins hold, how long does it take,
and do bits move from pass to pass, with what else is decoded, and over a restart? docs/node.md describes the archive.
"""

import copy
import json
import logging
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalboard.calling.calls import DecodeRequest, EngineFailure
from evalboard.core.errors import InvalidInput
from evalboard.core.probes import (
    complete_parameters,
    count_shared,
    judge_determinism_probe,
    list_prompt_texts,
    plan_calls,
)
from evalboard.core.profile import (
    DEFAULT_PROFILES,
    MAX_TESTED_BATCH,
    EnginePlan,
    attest_pins,
    find_profile_refusal,
    find_size_refusal,
    identify_manifest,
    parse_profile,
    plan_engine,
    read_seats,
)
from evalboard.core.rounding import shown
from evalboard.core.scoring import RECORDED
from evalboard.core.suite import SuiteDocument, read_suite_text
from evalboard.core.trace import Decoded
from evalboard.wording.numbers import fixed
from worker.engines.base import EngineSpec, Started, TokenListing
from worker.engines.kernels import measure
from worker.engines.probe_calls import make_request, with_answer
from worker.engines.vllm import VllmEngine, describe

logger = logging.getLogger(__name__)

FORMAT, VERSION = "evalboard-proof", 1
PROVEN, MOVED, NOT_MEASURED, WRONG_USE = 0, 1, 4, 64  # as docs/cli.md has them
FP8_CAPABILITY = 8.9  # from here on a GPU multiplies 8-bit floats
KIND = "determinism"
UNSCORED = {"kind": RECORDED.name, "source": "evalboard worker prove"}  # of prompts without a scorer: only bits count
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProofSetup:
    """A built-in profile with changed engine settings. is_still: it promises the same bits every time."""

    profile: str
    engine: Mapping[str, Any] = field(default_factory=dict)
    quantization: str | None = None
    sizes: tuple[int, int] = (1, 1)

    @property
    def is_still(self) -> bool:
        return self.profile != "fast"

    @classmethod
    def named(cls, name: str) -> "ProofSetup":
        """Return the setup of a name such as "pinned-cached": a profile, and what is exchanged in it."""
        profile, _, change = name.partition("-")
        return cls(profile, CHANGES[change], "fp8" if change == "fp8" else None, SIZES_OF.get(change, (1, 1)))


CHANGES: Mapping[str, Json] = {
    "": {},
    "cached": {"enable_prefix_caching": True},
    "tp2": {},
    "pp2": {},
    "fp8": {},
}
SIZES_OF: Mapping[str, tuple[int, int]] = {"tp2": (2, 1), "pp2": (1, 2)}  # as an endpoint says them


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofOrder:
    """What to measure.

    models: folders, or repositories as NAME@REVISION. n_passes: decodings of the suite, at least 2.
    """

    models: Sequence[str]
    suite: SuiteDocument
    setups: Sequence[str]
    dtype: str
    max_model_len: int
    n_passes: int
    n_prompts: int


@dataclass(frozen=True, slots=True)
class Pass:
    """One decoding of the whole suite. answers: by the index of the case."""

    answers: Mapping[int, Decoded]
    errors: Mapping[int, str]
    seconds: float

    def to_json(self) -> Json:
        decoded = self.answers.values()
        return {
            "seconds": shown(self.seconds, 3),
            "n_answers": len(self.answers),
            "n_tokens": sum(len(each.trace) for each in decoded),
            "n_cached_tokens": sum(each.n_cached_tokens or 0 for each in decoded),
            "batch_max": max((each.batch_max or 1 for each in decoded), default=None),
            "errors": sorted(set(self.errors.values())),
        }


def run(document: str) -> int:
    """Do what the command line asks for in JSON; print the proof. Return the exit code."""
    given = json.loads(document)
    python, out = Path(given.pop("python")), Path(given.pop("out"))
    as_json, sample = given.pop("as_json"), Path(given.pop("sample_model"))
    suite = Path(given.pop("suite"))
    try:
        parsed = read_suite_text(suite.read_text(encoding="utf-8"), slug="proof", scorer=UNSCORED).parse()
        if not given["models"]:
            given["models"] = [_make_sample_model(python, sample)]
        code, proof = prove(ProofOrder(**given, suite=parsed), python=python, out=out)
    except EngineFailure as failure:
        logger.error("This node could not be measured: %s\n%s", failure, failure.last_words.strip())
        return NOT_MEASURED
    except InvalidInput as problem:
        logger.error("This node could not be measured. %s %s", problem.detail, problem.fields)
        return WRONG_USE
    except (OSError, UnicodeDecodeError) as problem:
        logger.error("This node could not be measured. %s", problem)
        return NOT_MEASURED
    if as_json:
        proof["setups"] = [
            {name: value for name, value in row.items() if name != "manifest"} for row in proof["setups"]
        ]
        sys.stdout.write(json.dumps(proof, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join([*map(summarise, proof["setups"]), f"Written: {out}"]) + "\n")
    return code


def prove(order: ProofOrder, *, python: Path, out: Path) -> tuple[int, Json]:
    """Measure every setup, and write the archive again after each. Return the exit code and the proof.

    Raises EngineFailure where the node cannot be described, and OSError where the archive cannot be written.
    """
    described = describe(python)
    hardware = {name: value for name, value in described.items() if name != "versions"}
    proof: Json = {
        "format": FORMAT,
        "version": VERSION,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "hardware": hardware,
        "versions": described["versions"],
        "suite": {"slug": order.suite.slug, "digest": order.suite.digest, "n_cases": len(order.suite.cases)},
        "self_test": None,
        "setups": [],
    }
    logs: dict[str, str] = {}
    _write(out, proof, logs)  # a folder that is not there is refused before minutes are spent
    try:
        proof["self_test"] = measure(python, hardware)
    except EngineFailure as failure:
        proof["self_test_problem"] = f"{failure} {failure.last_words[-2000:]}".strip()
    _write(out, proof, logs)
    for place, model in enumerate(order.models, start=1):
        trials: dict[str, _Trial] = {}
        for name in order.setups:
            logger.info("%s under %s", model, name)
            trial = _Trial(
                order, model, ProofSetup.named(name), python=python, hardware=hardware, self_test=proof["self_test"]
            )
            row = trial.measure()
            proof["setups"].append({"model": model, "setup": name, **row, **_compare_setups(trial, trials)})
            logger.info("%s", summarise(proof["setups"][-1]))
            if trial.passes:
                trials[name] = trial
                logs[f"logs/{place}-{name}.jsonl"] = "".join(trial.log_lines())
            _write(out, proof, logs)
    states = {row["state"] for row in proof["setups"]}
    code = NOT_MEASURED if "failed" in states or "measured" not in states else PROVEN
    return MOVED if any(row.get("is_broken") for row in proof["setups"]) else code, proof


class _Trial:
    """One model under one setup: two engines, one after the other."""

    def __init__(
        self,
        order: ProofOrder,
        model: str,
        setup: ProofSetup,
        *,
        python: Path,
        hardware: Mapping[str, Any],
        self_test: Mapping[str, Any] | None,
    ) -> None:
        self._order, self._model, self._setup, self._python = order, model, setup, python
        self._hardware, self._self_test = hardware, self_test
        self._listing: TokenListing | None = None
        self.passes: list[Pass] = []

    def measure(self) -> Json:
        """Return the setup's row: refused, failed or measured."""
        settings = copy.deepcopy(DEFAULT_PROFILES[self._setup.profile]["settings"])
        settings["engine"] |= self._setup.engine
        decoding = parse_profile(settings)
        sizes = self._setup.sizes
        refusal = find_size_refusal([self._hardware], sizes) or find_profile_refusal(
            decoding, self._hardware, host=socket.gethostname(), self_test_result=self._self_test, sizes=sizes
        )
        if refusal or (refusal := self._find_weakness()):
            return {"state": "refused", "problem": refusal}
        suite = self._order.suite
        plan = plan_engine(
            decoding,
            self._hardware,
            dtype=self._order.dtype,
            quantization=self._setup.quantization,
            max_model_len=self._order.max_model_len,
            max_tokens=suite.max_tokens,
            stop=suite.stop,
            sizes=sizes,
        )
        row: Json = {"state": "measured", "problem": ""}
        try:
            self._measure(plan, row)
        except EngineFailure as failure:
            row |= {"state": "failed", "problem": str(failure), "last_words": failure.last_words[-8000:]}
        if self.passes:
            row["passes"] = [each.to_json() for each in self.passes]
        return row

    @property
    def seconds(self) -> float:
        """Return the seconds of the quickest pass: the first one compiles and measures kernels."""
        return min(each.seconds for each in self.passes)

    def log_lines(self) -> Iterator[str]:
        """Yield the answers of every pass as chat completions with token ids and logprobs."""
        for repeat, each in enumerate(self.passes, start=1):
            for index, decoded in sorted(each.answers.items()):
                yield json.dumps(self._line(index, repeat, decoded), separators=(",", ":"), ensure_ascii=False) + "\n"

    def _find_weakness(self) -> str | None:
        if self._setup.quantization != "fp8":
            return None
        gpus = self._hardware.get("gpus", [])
        if gpus and all(gpu["capability"] >= FP8_CAPABILITY for gpu in gpus):
            return None
        return f"FP8 needs GPUs of compute capability {FP8_CAPABILITY} or newer."

    def _measure(self, plan: EnginePlan, row: Json) -> None:
        """Fill the row as far as the engines live. Raises EngineFailure."""
        with self._engine(plan) as (engine, started):
            reported = started.manifest
            pins = attest_pins(plan.pins, reported["engine"])
            row |= {
                "start_seconds": [shown(started.seconds, 2)],
                "fingerprint": identify_manifest(reported).digest,
                "manifest": reported,
                "broken_pins": [pin for pin in pins if not pin["held"]],
            }
            self._listing = engine.vocabulary()
            first_check = engine.self_check()
            for number in range(self._order.n_passes):
                self.passes.append(self._decode(engine, plan, is_backward=number % 2 == 1))
            row["repeats"] = compare_passes(self.passes[0], self.passes[1:])
            row["determinism"] = self._probe(engine, plan, reported)
            row["has_same_self_check"] = engine.self_check() == first_check
        with self._engine(plan) as (engine, started):
            row["start_seconds"].append(shown(started.seconds, 2))
            row["has_same_self_check"] &= engine.self_check() == first_check
            again = self._decode(engine, plan, is_backward=False)
        row["restart"] = compare_passes(self.passes[0], [again])
        row["is_broken"] = self._setup.is_still and _has_moved(row)
        if problem := self._find_gap([*self.passes, again], row["determinism"]):
            row |= {"state": "failed", "problem": problem}

    def _find_gap(self, passes: Sequence[Pass], probe: Mapping[str, Any]) -> str:
        """Return which answers are missing: what did not come may be what would have moved. "" if none is."""
        n_wanted = len(passes) * len(self._order.suite.cases)
        n_missing = n_wanted - sum(len(each.answers) for each in passes)
        if n_missing:
            reasons = sorted({words for each in passes for words in each.errors.values()})
            return f"{n_missing} of {n_wanted} answers are missing. {' '.join(reasons[:3])}".rstrip()
        return "The determinism probe has too few answers." if probe["state"] == "incomplete" else ""

    @contextmanager
    def _engine(self, plan: EnginePlan) -> Iterator[tuple[VllmEngine, Started]]:
        is_folder = Path(self._model).is_dir()
        name, _, revision = (str(Path(self._model).resolve()), "", "") if is_folder else self._model.partition("@")
        engine = VllmEngine(EngineSpec(model=name, revision=revision or None, plan=plan), python=self._python)
        try:
            yield engine, engine.start()
        finally:
            engine.stop()

    def _decode(self, engine: VllmEngine, plan: EnginePlan, *, is_backward: bool) -> Pass:
        """Decode the suite once; backwards, other cases share each step."""
        cases = self._order.suite.cases
        requests = [
            DecodeRequest(case_index=case.index, messages=case.messages, tools=case.tools, sampling=plan.sampling)
            for case in (reversed(cases) if is_backward else cases)
        ]
        began = time.monotonic()
        outcomes = list(engine.decode(requests))
        seconds = time.monotonic() - began
        answers = {each.case_index: each for each in outcomes if isinstance(each, Decoded)}
        errors = {each.case_index: f"{each.code}: {each.detail}" for each in outcomes if not isinstance(each, Decoded)}
        return Pass(answers, errors, seconds)

    def _probe(self, engine: VllmEngine, plan: EnginePlan, manifest: Mapping[str, Any]) -> Json:
        """Return state and numbers of a determinism probe (docs/probes.md)."""
        known = read_seats(manifest)
        seats = min(known.got if known is not None else manifest["engine"]["max_num_seqs"], MAX_TESTED_BATCH)
        parameters = complete_parameters(KIND, {"prompts": self._order.n_prompts, "seats": seats, "passes": 1})
        texts = list_prompt_texts(KIND, parameters) or ()
        prompts = [({"role": "user", "content": text},) for text in texts]
        calls = plan_calls(KIND, parameters, texts)
        answered = []
        for number in dict.fromkeys(call.round for call in calls):
            here = [call for call in calls if call.round == number]
            requests = [
                make_request(place, call, prompts, kind=KIND, parameters=parameters, plan=plan)
                for place, call in enumerate(here)
            ]
            outcomes = {outcome.case_index: outcome for outcome in engine.decode(requests)}
            answered += [
                replace(with_answer(call, outcomes.get(place), KIND), worker=1, engine_process=1, bucket=1)
                for place, call in enumerate(here)
            ]
        result = judge_determinism_probe(answered, parameters=parameters)
        return {"state": result.state, **result.numbers}

    def _line(self, index: int, repeat: int, decoded: Decoded) -> Json:
        case = self._order.suite.cases[index]
        trace = decoded.trace
        words = [self._token(token, logprob) for token, logprob in zip(trace.token_ids, trace.logprobs, strict=True)]
        for position, word in enumerate(words):
            word["top_logprobs"] = [self._token(each.token_id, each.logprob) for each in trace.alternatives(position)]
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": decoded.text},
            "finish_reason": decoded.finish_reason,
            "token_ids": trace.token_ids.tolist(),
            "logprobs": {"content": words},
        }
        usage = {"prompt_tokens": decoded.n_prompt_tokens, "completion_tokens": len(trace)}
        request = {"model": self._model, "messages": list(case.messages), "temperature": 0.0}
        response = {"id": decoded.request_id, "object": "chat.completion", "model": self._model}
        return {
            "case_id": case.id,
            "repeat": repeat,
            "request": request,
            "response": {**response, "choices": [choice], "usage": usage},
        }

    def _token(self, token_id: Any, logprob: Any) -> Json:
        assert self._listing is not None  # noqa: S101  for the type checker: read before anything is decoded
        data = self._listing.tokens[int(token_id)] or b""
        return {"token": data.decode(errors="replace"), "logprob": float(logprob), "bytes": list(data)}


def compare_passes(first: Pass, others: Sequence[Pass]) -> Json:
    """Count the answers whose bits or tokens are not those of the first pass, and name the first of these."""
    texts, bits, n = [], 0, 0
    for other in others:
        for index in sorted(first.answers.keys() & other.answers.keys()):
            ours, theirs = first.answers[index].trace, other.answers[index].trace
            n += 1
            bits += ours.digest != theirs.digest
            one, other_one = (tuple(trace.token_ids.tolist()) for trace in (ours, theirs))
            if one != other_one:
                texts.append({"case": index, "position": count_shared(one, other_one)})
    return {"n": n, "n_bits_moved": bits, "n_texts_moved": len(texts), "first": texts[0] if texts else None}


def summarise(row: Mapping[str, Any]) -> str:
    """Return a row in one line of plain text."""
    head = f"{row['setup']}: "
    if row["state"] != "measured":
        return f"{head}{row['state']}. {row['problem']}"
    moved = {name: row[name] for name in ("repeats", "restart")}
    seats = row["determinism"].get("seats_reached", "?")
    price = f", {fixed(row['price'], 2)} times as long as fast" if row.get("price") else ""
    pins = f", {len(row['broken_pins'])} pins broken" if row["broken_pins"] else ""
    quickest = fixed(min(each["seconds"] for each in row["passes"]), 2)
    return (
        f"{head}{quickest} s a pass{price}; "
        + "; ".join(
            f"{name}: of {each['n']} answers {each['n_bits_moved']} moved a bit, {each['n_texts_moved']} a token"
            for name, each in moved.items()
        )
        + f"; determinism at {seats} seats: {row['determinism']['state']}{pins}"
    )


def _compare_setups(trial: _Trial, earlier: Mapping[str, _Trial]) -> Json:
    """Return what a setup costs next to `fast`, and how many answers are not those of `pinned`."""
    row: Json = {}
    if trial.passes and "fast" in earlier:
        row["price"] = trial.seconds / earlier["fast"].seconds
    if trial.passes and "pinned" in earlier:
        row["against_pinned"] = compare_passes(earlier["pinned"].passes[0], trial.passes[:1])
    return row


def _has_moved(row: Mapping[str, Any]) -> bool:
    moved = row["repeats"]["n_bits_moved"] + row["restart"]["n_bits_moved"]
    is_noisy = row["determinism"]["state"] in ("bits_move", "answers_move")
    return bool(moved or is_noisy or row["broken_pins"]) or not row["has_same_self_check"]


def _make_sample_model(python: Path, folder: Path) -> str:
    """Make the sample model, unless it is there. Raises EngineFailure."""
    script = Path(__file__).resolve().parent / "sample_model.py"
    made = subprocess.run([python, script, folder], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise EngineFailure("engine_error", "The sample model could not be made; name a model.", last_words=made.stderr)
    return str(folder)


def _write(out: Path, proof: Mapping[str, Any], logs: Mapping[str, str]) -> None:
    """Write the archive whole, or leave the one before."""
    beside = out.with_name(f"{out.name}.part")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("proof.json", json.dumps(proof, indent=1, ensure_ascii=False, allow_nan=False))
        for name, text in logs.items():
            archive.writestr(name, text)
    beside.replace(out)
