"""Where two imported runs first part, as a comparison says: python -m bench.peer_ours BASELINE CANDIDATE.

BASELINE and CANDIDATE are runs. Prints JSON.
"""

import json
import os
import sys
import time


def main(baseline: int, candidate: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    import django

    django.setup()
    from runs.compare import compare
    from runs.models import ComparisonRecord, DivergenceRecord

    began, processor_began = time.perf_counter(), time.process_time()
    comparison = compare(baseline=baseline, candidate=candidate)
    found = {
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - processor_began,
        "n_flips": DivergenceRecord.objects.filter(comparison=comparison, flip_position__isnull=False).count(),
    }
    assert comparison.status == ComparisonRecord.Status.FINISHED, comparison.error
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
