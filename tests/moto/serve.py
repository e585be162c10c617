#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""serve.py PORT: a store of objects in memory, by moto, for the tests of buckets.

moto compares and then writes without a lock, so one request is let in at a time. It checks no time either, so a request that was signed
a quarter of an hour away from this machine's clock is refused here, as Amazon S3 refuses it.

SIGUSR1: the next PUT happens, and its connection is cut instead of the answer. SIGUSR2: from now on the conditions of PUT are ignored.
"""
import datetime
import signal
import socket
import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

LONGEST_SKEW = datetime.timedelta(minutes=15)
TOO_SKEWED = (b"<Error><Code>RequestTimeTooSkewed</Code><Message>The difference between the request time and the current time is "
              b"too large.</Message></Error>")


class Handler(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open

    def log_request(self, *_):
        pass


class OneAtATime:
    def __init__(self):
        self.app = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.loses_answer = False
        self.ignores_conditions = False

    def lose_answer(self, *_):
        self.loses_answer = True

    def ignore_conditions(self, *_):
        self.ignores_conditions = True

    @staticmethod
    def is_skewed(environ):
        signed = environ.get("HTTP_X_AMZ_DATE")
        if signed is None:
            return False
        at = datetime.datetime.strptime(signed, "%Y%m%dT%H%M%SZ")
        return abs(at - datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None)) > LONGEST_SKEW

    def __call__(self, environ, start_response):
        if self.is_skewed(environ):
            start_response("403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(TOO_SKEWED)))])
            return [TOO_SKEWED]
        is_put = environ["REQUEST_METHOD"] == "PUT"
        if is_put and self.ignores_conditions:
            environ.pop("HTTP_IF_MATCH", None)
            environ.pop("HTTP_IF_NONE_MATCH", None)
        with self.lock:
            answer = list(self.app(environ, start_response))
            if is_put and self.loses_answer:
                self.loses_answer = False
                environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
                raise ConnectionError
        return answer


def main():
    app = OneAtATime()
    signal.signal(signal.SIGUSR1, app.lose_answer)
    signal.signal(signal.SIGUSR2, app.ignore_conditions)
    make_server("127.0.0.1", int(sys.argv[1]), app, threaded=True, request_handler=Handler).serve_forever()


main()
