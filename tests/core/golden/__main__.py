"""Print how the sentences of today differ from sentences.md; with --write, write them there."""

import sys
from difflib import unified_diff

from tests.core.golden.corpus import PAGE, list_unversioned, read_all, render


def main() -> None:
    now = render(read_all())
    before = PAGE.read_text() if PAGE.exists() else ""
    if "--write" in sys.argv[1:]:
        if changed := list_unversioned(before, now):
            step = "Stored verdicts would keep their words: first raise VERDICT_RULES in core/release/gate_verdict.py."
            sys.exit(f"Verdicts say something else in: {'; '.join(changed)}. {step}")
        PAGE.write_text(now)
        return
    sys.stdout.writelines(unified_diff(before.splitlines(True), now.splitlines(True), PAGE.name, "today", n=1))


main()
