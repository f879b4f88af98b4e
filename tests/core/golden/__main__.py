"""Print how the sentences of today differ from sentences.md; with --write, write them there."""

import sys
from difflib import unified_diff

from tests.core.golden.corpus import PAGE, read_all, render


def main() -> None:
    now = render(read_all())
    if "--write" in sys.argv[1:]:
        PAGE.write_text(now)
        return
    before = PAGE.read_text() if PAGE.exists() else ""
    sys.stdout.writelines(unified_diff(before.splitlines(True), now.splitlines(True), PAGE.name, "today", n=1))


main()
