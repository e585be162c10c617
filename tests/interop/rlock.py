# SPDX-License-Identifier: Apache-2.0
"""rlock: how it is told to take each kind of lock, and its processes."""
import os
import subprocess

# The number of permits of every semaphore.
PERMITS = 3

OPTIONS = {
    "read": ["-s"],
    "write": ["-x"],
    "permits": ["--permits", str(PERMITS)],
    "one": ["--format", "string"],
    "quorum": ["--format", "string"],
}
SEVERAL_SERVERS = ("multi", "quorum")


class Rlock:
    def __init__(self, program, job, servers):
        self.program, self.job, self.servers = program, job, servers
        self.environment = {**os.environ, "LC_ALL": "C"}

    def argv(self, verb, kind, key, *options):
        several = kind in SEVERAL_SERVERS
        urls = [word for server in self.servers[:3 if several else 1] for word in ("-S", server.url)]
        guard = ["--no-restart-guard"] if several else []  # else the first use waits for the longest ttl
        return [self.program, verb, *urls, *guard, "-k", key, *options]

    def call(self, verb, kind, key, *options):
        return subprocess.run(self.argv(verb, kind, key, *options), env=self.environment, capture_output=True, text=True,
                              timeout=60)

    def run(self, kind, key, *options, job):
        """Starts `rlock run` with a command as its job."""
        argv = self.argv("run", kind, key, *OPTIONS.get(kind, []), *options)
        return subprocess.Popen([*argv, "--", *job], env=self.environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def start(self, kind, key, traces, *options, who="rlock", hold="-"):
        """Starts a section; with the hold "-" it lasts until finish()."""
        return self.run(kind, key, *options, job=[self.job, traces.directory, who, kind, str(hold)])

    def loop(self, kind, key, traces, who, hold):
        """One section after the other until the traces say stop."""
        while not traces.has_stopped():
            finish(self.start(kind, key, traces, "-w", "60s", who=who, hold=hold))


def finish(process, code=0, seconds=60):
    """Ends the section of a process, whose exit code must be this one, and returns its standard error."""
    _, errors = process.communicate(timeout=seconds)
    assert process.returncode == code, f"rlock ended with {process.returncode}, expected {code}: {errors}"
    return errors
