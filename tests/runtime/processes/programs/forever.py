"""Joins, says so, and waits, as its child does."""

import subprocess
import sys
import time

import dovetail as dt

dt.distributed.initialize()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("waiting", child.pid, flush=True)
if sys.argv[1:] == ["raise"] and dt.process_index() == 1:
    raise ValueError("enough")
time.sleep(60)
