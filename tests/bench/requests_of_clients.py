# SPDX-License-Identifier: Apache-2.0
"""Counts what rlocks send to a server."""
import collections
import re
import socket
import threading
import time

from waiting import wait_until


class Requests:
    """Counts the requests of rlocks, without the commands that scripts call and without the questions of this program."""

    OWN = ("zcard", "exists", "pubsub", "client")

    def __init__(self, server):
        self._counts = collections.Counter()
        self._connection = socket.create_connection(("127.0.0.1", server.port))
        self._connection.sendall(b"MONITOR\r\n")
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        wait_until("the server shows requests", lambda: server.ask("EXISTS", "x") == 0 and self._counts["exists"])

    def count(self):
        """(scripts, others), and stops."""
        time.sleep(0.2)  # what the server has sent arrives
        self._connection.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._connection.close()
        scripts = self._counts["evalsha"] + self._counts["eval"]
        return scripts, self._counts.total() - scripts - sum(self._counts[name] for name in self.OWN)

    def _read(self):
        with self._connection.makefile(errors="replace") as lines:
            for line in lines:
                request = re.match(r'\S+ \[\d+ (?!lua\])\S+\] "(\w+)"', line)
                if request:
                    self._counts[request[1].lower()] += 1
