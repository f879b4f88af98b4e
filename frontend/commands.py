"""Commands for people to copy, as a shell reads them."""

import json
import shlex
from collections.abc import Mapping
from typing import Any

from evalboard.core import probe_parameters

RESOLVED = "suite_version"  # a canary always takes the suite's newest


def replay(run_id: int, case_id: str, *, repeat: int) -> str:
    """`evalboard replay` of one response; a case id may hold anything, and may look like an option."""
    if case_id.startswith("-"):
        return f"evalboard replay --repeat {repeat} -- {run_id} {shlex.quote(case_id)}"
    return f"evalboard replay {run_id} {shlex.quote(case_id)} --repeat {repeat}"


def probe(endpoint: str, kind: str, profile: str, parameters: Mapping[str, Any]) -> str:
    """`evalboard probe` with the same parameters; those that are the kind's defaults go without saying."""
    defaults = probe_parameters.complete(kind, {})
    words = ["evalboard", "probe", endpoint, "--kind", kind, "--profile", profile]
    for name, value in parameters.items():
        if name != RESOLVED and defaults.get(name) != value:
            words += ["--set", f"{name}={json.dumps(value, ensure_ascii=False)}"]
    return shlex.join(words)
