"""Name the nodes that answered a probe, for certificates and incidents."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalboard.core.probes import ProbeExchange
from evalboard.core.profile import digest_node
from runs.models import EngineProcess, WorkerRecord


def describe_nodes(numbers: Mapping[str, Any], calls: Sequence[ProbeExchange]) -> dict[str, Any]:
    """Return the numbers that name each worker with its node, and the first engine process's settings.

    `node_digest` is that of a self-test: it changes with hardware or versions, including the driver.
    """
    known = WorkerRecord.objects.in_bulk([row["worker"] for row in numbers["workers"]])
    rows = [{**row, **_name(known[row["worker"]])} for row in numbers["workers"] if row["worker"] in known]
    ids = {call.engine_process for call in calls if call.engine_process is not None}
    processes = EngineProcess.objects.filter(pk__in=ids).select_related("bucket__model").order_by("pk")
    process = processes.first()
    return {"workers": rows, "covers": None if process is None else _describe_engine(process)}


def name_incidents(numbers: Mapping[str, Any], case_ids: Sequence[str], tokens: Mapping[int, str]) -> dict[str, Any]:
    """Return the numbers that name workers with their hosts, cases, and tokens as they can be seen.

    case_ids: by prompt; none where texts are asked.
    """
    rows = [*numbers["workers"], *numbers["incidents"], *(row["against"] for row in numbers["incidents"])]
    known = WorkerRecord.objects.in_bulk({row["worker"] for row in rows})

    def named(row: Mapping[str, Any]) -> dict[str, Any]:
        worker = known.get(row["worker"])
        return {**row, "name": worker and worker.name, "host": worker and worker.host}

    incidents = [
        {
            **named(row),
            "case": case_ids[row["prompt"]] if row["prompt"] < len(case_ids) else None,
            "against": named(row["against"]),
            "token_text": tokens.get(row["token"]),
            "token_against_text": tokens.get(row["token_against"]),
        }
        for row in numbers["incidents"]
    ]
    return {"workers": [named(row) for row in numbers["workers"]], "incidents": incidents}


def _name(worker: WorkerRecord) -> dict[str, Any]:
    digest = digest_node(worker.hardware, worker.versions)
    return {"name": worker.name, "host": worker.host, "node_digest": digest}


def _describe_engine(process: EngineProcess) -> dict[str, Any]:
    engine = process.manifest.get("engine", {})
    return {
        "model": process.bucket.model.name,
        "dtype": engine.get("dtype"),
        "quantization": engine.get("quantization"),
        "n_devices": engine.get("tensor_parallel_size"),
    }
