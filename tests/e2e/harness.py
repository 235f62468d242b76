# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What the end-to-end tests share: run a program bare and under kymo, read results, speak TAP.

Results are read with the standard library alone, from the files that users get, never through
kymo's own readers.

E2E_PREFIX=DIRECTORY: kymo's command and libraries on the command line stand for those that are
installed below it (tests/installed-copy makes such a place); programs of the tests stay those of the
build tree.
"""
import collections
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pprof

# The test runner puts the build's directories in front of all others; programs are to find what users'
# programs find.
os.environ.pop("LD_LIBRARY_PATH", None)

# A shell that starts the tests in its background has them ignore these, and so would the programs.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


def installed(path):
    """What stands for a part of kymo's in the build tree."""
    name, prefix = os.path.basename(path), os.environ.get("E2E_PREFIX")
    if not prefix or not (name == "kymo" or name.startswith(("libkymo", "libnccl-profiler-kymo",
                                                             "librocprofiler-sdk"))):
        return path
    places = ("bin", "lib*", "lib*/kymo", "lib/*", "lib/*/kymo")
    found = [there for place in places
             for there in glob.glob(os.path.join(glob.escape(prefix), place, name))]
    if not found:
        raise SystemExit(f"Bail out! no {name} below {prefix}")
    return os.path.abspath(found[0])


def preloadable(library, directory):
    """A path of the library that LD_PRELOAD can name: blanks and colons separate there, so it may be a link."""
    if not any(sign in library for sign in " :\t\n"):
        return library
    link = os.path.join(directory, os.path.basename(library))
    if not os.path.lexists(link):
        os.symlink(library, link)
    return link


sys.argv[1:] = [installed(argument) if os.path.isfile(argument) else argument for argument in sys.argv[1:]]

SOURCES = ("auto", "perf", "timer")

Ended = collections.namedtuple("Ended", "status stdout stderr seconds")


class Failed(Exception):
    """A check that did not hold; the text says what was seen."""


class Skipped(Exception):
    """A check that cannot be made here; the text says why."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


def run(command, stdin=b"", timeout=120, environment=None, preexec=None, cwd=None):
    """Runs to the end; a negative status is the signal that killed it. Kills the whole session on
    timeout, so that a hanging profiler cannot hold up the suite."""
    merged = clean_environment()
    merged.update(environment or {})
    begin = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=merged, preexec_fn=preexec, cwd=cwd,
                               start_new_session=True)
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        raise Failed(f"still running after {timeout} s: {' '.join(command)}\n"
                     f"{stderr.decode(errors='replace')[-2000:]}") from None
    return Ended(process.returncode, stdout, stderr.decode(errors="replace"),
                 time.monotonic() - begin)


def wait_until(condition, otherwise, seconds=60):
    """What the condition says once it holds. How long that takes is up to the machine."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        expect(time.monotonic() < deadline, otherwise)
        time.sleep(0.01)
    return value


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
            return stream.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def cpu_seconds(pid):
    """What the process has used, threads that ended and kymo's included."""
    # its scheduler clock, as clock_getcpuclockid(3) makes the number
    return time.clock_gettime(~pid << 3 | 2)


def clean_environment():
    """The caller's environment without what would steer kymo or differ between runs."""
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("KYMO_", "MESON", "ASAN_", "UBSAN_", "MALLOC_", "LD_PRELOAD"))}


class Kymo:
    """The command under test."""

    def __init__(self, path):
        self.path = os.path.abspath(path)

    def sample(self, command, directory, *options, quiet=True, **how):
        """`kymo sample`; results go straight into `directory`."""
        line = [self.path, "sample", "-o", directory, "--time-output=off", *options]
        if quiet:
            line.append("-q")
        return run(line + ["--"] + command, **how)

    def report(self, directory, *options, **how):
        return run([self.path, "report", directory, *options], **how)


class Result:
    """A result directory."""

    def __init__(self, directory):
        self.directory = directory

    def path(self, name):
        return os.path.join(self.directory, name)

    def has(self, name):
        return os.path.exists(self.path(name))

    def json(self, name):
        with open(self.path(name), encoding="utf-8", errors="replace") as stream:
            return json.load(stream)

    def metadata(self):
        return self.json("metadata.json")

    def processes(self):
        """Results that `kymo report` made later have no metadata.json."""
        return self.json("metadata.json" if self.has("metadata.json") else "profile.json")["processes"]

    def samples(self):
        return sum(process["samples"] for process in self.processes())

    def folded(self):
        """[(frames outermost first, weight)] of samples.folded; the first frame is the process."""
        stacks = []
        with open(self.path("samples.folded"), encoding="utf-8", errors="replace") as stream:
            for line in stream:
                stack, _, weight = line.rstrip("\n").rpartition(" ")
                stacks.append((stack.split(";"), float(weight)))
        return stacks

    def profile(self):
        """profile.pb.gz, decoded."""
        return pprof.Profile(self.path("profile.pb.gz"))

    def inclusive_shares(self):
        """{function: share of all samples in which it is on the stack}"""
        return self.profile().shares(lambda sample: {frame.function for frame in sample.stack},
                                     self.measure())

    def measure(self):
        """CPU time where there is some, else the first thing measured besides the samples."""
        types = [name for name in self.profile().types if name != "samples"]
        return "cpu" if "cpu" in types else types[0]


class Scratch:
    """A temporary directory that is kept when KYMO_KEEP is set, for looking at failures."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp(prefix="kymo-e2e-")
        os.chmod(self.directory, 0o711)
        return self

    def __exit__(self, *_):
        if not os.environ.get("KEEP_RESULTS"):
            shutil.rmtree(self.directory, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.directory, name)


class Tap:
    """Test Anything Protocol; meson shows and tests/summary counts each point."""

    def __init__(self):
        self.count = self.failures = 0

    def point(self, name, check, retries=0, retried=Exception):
        """Runs check(); Failed and unexpected errors fail the point, Skipped skips it. Statistical
        checks may be tried again: their bounds hold with high probability, not always."""
        self.count += 1
        for attempt in range(retries + 1):
            try:
                check()
                print(f"ok {self.count} - {name}", flush=True)
                return True
            except Skipped as reason:
                print(f"ok {self.count} - {name} # SKIP {reason}", flush=True)
                return True
            except Exception as error:  # pylint: disable=broad-except
                text = str(error) if isinstance(error, Failed) else repr(error)
                if not isinstance(error, retried):
                    break
            if attempt < retries:
                self.note(f"{name}: tried again after: {text}")
        self.failures += 1
        print(f"not ok {self.count} - {name}")
        self.note(text)
        return False

    @staticmethod
    def note(text):
        for line in str(text).splitlines():
            print(f"# {line}", flush=True)

    def finish(self):
        print(f"1..{self.count}", flush=True)
        # TAP carries the verdict; a status of its own would make meson count it twice.
        sys.exit(0)


def require_tool(*names):
    for name in names:
        if not shutil.which(name):
            raise Skipped(f"{name} is not installed")


def require_tracer(name):
    """strace or ltrace, and the permission to trace."""
    require_tool(name)
    if run([name, "-o", "/dev/null", "/bin/true"]).status != 0:
        raise Skipped(f"{name} may not trace here")
