"""One import of bench_imports, in a process of its own: python -m bench.import_once FILE."""

import json
import os
import resource
import sys
import time
from pathlib import Path


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    import django

    django.setup()
    from evalboard.importers.files import LogFile
    from runs.imports import import_logs
    from runs.models import ResponseRecord

    path = Path(sys.argv[1])
    began, seconds = time.perf_counter(), _processor_seconds()
    _, [run], is_new = import_logs(files=[LogFile(path.name, path)], user=None)
    assert is_new
    found = {
        "n_responses": ResponseRecord.objects.filter(repeat__run=run, n_tokens__gt=0).count(),
        "seconds": time.perf_counter() - began,
        "processor_seconds": _processor_seconds() - seconds,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "reader_peak_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024,
    }
    print(json.dumps(found))


def _processor_seconds() -> float:
    """Return what this process and the one that read the log for it have taken of the processor."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    main()
