"""Commands for people to copy, as a shell reads them."""

import shlex


def replay(run_id: int, case_id: str, *, repeat: int) -> str:
    """`evalboard replay` of one response; a case id may hold anything, and may look like an option."""
    if case_id.startswith("-"):
        return f"evalboard replay --repeat {repeat} -- {run_id} {shlex.quote(case_id)}"
    return f"evalboard replay {run_id} {shlex.quote(case_id)} --repeat {repeat}"
