# SPDX-License-Identifier: Apache-2.0
"""kazoo_lock.py CONNECT-STRING SESSION-MS PATH CMD...: runs CMD under a Lock of kazoo."""
import subprocess
import sys

from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1], timeout=int(sys.argv[2]) / 1000)
client.start()
with client.Lock(sys.argv[3], "kazoo"):
    code = subprocess.call(sys.argv[4:])
client.stop()
sys.exit(code)
