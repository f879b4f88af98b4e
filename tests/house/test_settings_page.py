"""docs/settings.md lists every variable that the code reads, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = r"EVALBOARD_[A-Z_]*[A-Z]|DATABASE_URL|REDIS_URL|CHROMIUM|PORT|ENGINE|PYTHON"
# Where the code names a variable that it reads: env.str("X"), os.environ["X"], environ.get("X"), envvar="X", $(X).
READ = re.compile(
    rf'(?:env\.\w+\(|environ(?:ment)?(?:\.get)?[\[(]|envvar=)\s*"({NAME})"|\$\(or \$\(({NAME})\)|^({NAME}) \?=', re.M
)


def variables_read() -> set[str]:
    sources = [ROOT / "Makefile", ROOT / "tests" / "conftest.py"]
    for folder in ("deploy", "evalboard", "frontend", "runs", "tools", "worker"):
        sources += (ROOT / folder).rglob("*.py")
    return {next(filter(None, found)) for source in sources for found in READ.findall(source.read_text())}


def test_every_variable_is_listed_and_every_listed_one_is_read():
    listed = set(re.findall(rf"^\| `({NAME})` \|", (ROOT / "docs" / "settings.md").read_text(), re.M))
    assert listed == variables_read()
