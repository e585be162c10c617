# SPDX-License-Identifier: Apache-2.0
"""The driver of a library: a process that takes and releases locks as it is told, see java/Driver.java and
strings/redis_py.py."""
import concurrent.futures
import itertools
import subprocess
import threading

PATIENCE_S = 60  # for an answer


class Answer:
    def __init__(self, at, words):
        self.at, self.words = at, words

    def __str__(self):
        return " ".join(self.words)


class Driver:
    def __init__(self, argv, errors):
        self._errors = open(errors, "a")
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                                         text=True, bufsize=1)
        self._writing = threading.Lock()
        self._numbers = itertools.count(1)
        self._open = {0: concurrent.futures.Future()}
        ready = self._open[0]
        threading.Thread(target=self._read, daemon=True).start()
        ready.result(PATIENCE_S)

    def start(self, thread, verb, kind, key, *args):
        """Asks, and returns the future Answer."""
        future = concurrent.futures.Future()
        with self._writing:
            number = next(self._numbers)
            self._open[number] = future
            self._process.stdin.write(" ".join(map(str, (number, thread, verb, kind, key, *args))) + "\n")
        return future

    def ask(self, thread, verb, kind, key, *args):
        return self.start(thread, verb, kind, key, *args).result(PATIENCE_S)

    def expect(self, words, thread, verb, kind, key, *args):
        """Asks for an Answer that begins with these words."""
        answer = self.ask(thread, verb, kind, key, *args)
        assert str(answer).startswith(words), f"{verb} {kind} {key} {args}: expected '{words}', got '{answer}'"
        return answer

    def stop(self):
        self._process.stdin.close()
        self._process.wait(PATIENCE_S)
        self._errors.close()

    def kill(self):
        self._process.kill()
        self._process.wait()

    def _read(self):
        for line in self._process.stdout:
            number, at, *words = line.split()
            self._open.pop(int(number)).set_result(Answer(int(at), words))
        for future in list(self._open.values()):
            future.set_exception(AssertionError("the driver of the library has ended"))
