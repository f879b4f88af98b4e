"""Put on a worker's PYTHONPATH: its wall clock is wrong by SHIFT_SECONDS; its monotonic clock goes on as always."""

import os
import time

import time_machine

time_machine.travel(time.time() + float(os.environ["SHIFT_SECONDS"]), tick=True).start()
