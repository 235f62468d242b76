#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Runs one hazard program bare and under `kymo sample` with every source; what a user sees of it
(standard output, exit status or signal, standard error) must be the same, and the results readable.

usage: hazards.py --list [long]
       hazards.py KYMO PROGRAM-DIRECTORY NAME
"""
import json
import os
import re
import resource
import shutil
import sys

from harness import (SOURCES, Failed, Kymo, Result, Scratch, Skipped, Tap, expect, run)


class Hazard:
    """One way to run one program and what to expect beyond equality."""

    def __init__(self, command, status=0, check=None, options=(), long=False, samples=True,
                 same_output=True, same_errors=True, stdin=b"", sources=SOURCES, wrapper=(),
                 root=False, preexec=None, timeout=100):
        self.command, self.status, self.check = command.split(), status, check
        self.options, self.long, self.samples = list(options), long, samples
        self.same_output, self.same_errors, self.stdin = same_output, same_errors, stdin
        self.sources, self.wrapper, self.root = sources, list(wrapper), root
        self.preexec, self.timeout = preexec, timeout


class Unlikely(Failed):
    """A share of time out of its bounds, which hold with high probability, not always: some hundred
    samples tell it, and a busy machine makes it what it is."""


def expect_share(holds, text):
    if not holds:
        raise Unlikely(text)


# --- checks of results: each takes (result, ended, bare) --------------------------------------

def share_of(function, at_least):
    def check(result, _ended, _bare):
        share = result.inclusive_shares().get(function, 0.0)
        expect_share(share >= at_least, f"{function} has {share:.1%} of the samples, not {at_least:.0%}")
    return check


def no_seccomp_loss(result, _ended, _bare):
    losses = result.metadata()["losses"]
    expect(not losses.get("seccomp"), f"losses: {losses}")


def one_thread_left_alone(result, _ended, _bare):
    losses = result.metadata()["losses"]
    expect(losses.get("seccomp") == 1, f"losses: {losses}")


def process_count(at_least):
    def check(result, _ended, _bare):
        count = len(result.processes())
        expect(count >= at_least, f"{count} processes recorded, not {at_least}")
    return check


def thread_count(at_least, at_most=None):
    def check(result, _ended, _bare):
        count = sum(process["threads_total"] for process in result.processes())
        expect(count >= at_least, f"{count} threads recorded, not {at_least}")
        expect(at_most is None or count <= at_most, f"{count} threads recorded, not {at_most} at most")
    return check


def message(pattern):
    """kymo says so on standard error."""
    def check(_result, ended, _bare):
        expect(re.search(pattern, ended.stderr, re.IGNORECASE),
               f"no message like /{pattern}/ in: {ended.stderr!r}")
    return check


def all_of(*checks):
    def check(*arguments):
        for one in checks:
            one(*arguments)
    return check


def jit_names(result, _ended, _bare):
    names = result.inclusive_shares()
    wanted = [name for name in names if name.startswith("jit_loop_")]
    expect(len(wanted) >= 3, f"JIT functions by name: {sorted(wanted)}")


def blocked_time(result, ended, _bare):
    """The program waits 40 % in poll, 30 % asleep, 20 % for a lock, works 10 %, by design; on a busy machine
    it tells what it really was."""
    times = json.loads(ended.stdout)
    profile = result.profile()
    expect("wall" in profile.types, f"no wall-clock values among {profile.types}")
    profile.samples = [sample for sample in profile.samples
                       if sample.labels["thread"] == "blocking"]
    shares = profile.shares(lambda sample: {frame.function for frame in sample.stack}, "wall")
    for function in ("wait_in_poll", "wait_in_sleep", "wait_in_lock"):
        seen, truth = shares.get(function, 0.0), times[function] / sum(times.values())
        expect_share(abs(seen - truth) < 0.06, f"{function}: {seen:.1%} of real time, really {truth:.0%}")


def environment_only_documented(_result, ended, bare):
    """The environment differs by what docs/reference/fidelity.md names only."""
    documented = ("LD_PRELOAD=", "KYMO_", "OMP_TOOL_LIBRARIES=", "KOKKOS_TOOLS_LIBS=",
                  "CUDA_INJECTION64_PATH=", "NVTX_INJECTION64_PATH=", "OPENCL_LAYERS=",
                  "ROCP_TOOL_LIBRARIES=", "NCCL_PROFILER_PLUGIN=")

    def lines(text):
        return {line for line in text.decode().splitlines() if not line.startswith(documented)}
    difference = lines(ended.stdout) ^ lines(bare.stdout)
    expect(not difference, f"other variables differ: {sorted(difference)}")


def descriptors_high(_result, ended, bare):
    """Extra descriptors lie above 99, out of select()'s and the shell's way."""
    def numbers(text):
        return {int(line.split()[0]) for line in text.decode().splitlines()}
    low = [fd for fd in numbers(ended.stdout) - numbers(bare.stdout) if fd < 100]
    expect(not low, f"extra low descriptors: {low}")


def low_limit(which, value):
    def apply():
        resource.setrlimit(which, (value, value))
    return apply


def become_nobody():
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


# Everything that can be wrapped and recorded.
EVERYTHING = ["--realtime", "--sampling-cputime=on"] + [
    f"--trace-{name}=on" for name in (
        "thread-locks", "thread-rw-locks", "thread-spin-locks", "thread-barriers", "thread-join",
        "thread-conditions", "threads", "processes", "sleep", "io", "loader", "memory")]

H = Hazard
HAZARDS = {
    "blocking": H("blocking", sources=("auto", "timer")),
    "blocking-realtime": H("blocking times", same_output=False, options=["--realtime", "--sampling-cputime=off"], check=blocked_time,
                           sources=("auto",)),
    "close-fds": H("close_fds"),
    "coroutines": H("coroutines", check=share_of("coroutine_main", 0.3)),
    "daemonize": H("daemonize", check=share_of("daemon_work", 0.5)),
    "deep-recursion": H("deep_recursion"),
    "directories": H("directories"),
    "eintr": H("eintr"),
    "eintr-10khz": H("eintr", options=["--freq=10000"]),
    "eintr-realtime": H("eintr", options=["--realtime"], sources=("auto", "timer")),
    "errno-kept": H("errno_kept", options=["--freq=10000"]),
    "environments": H("environments", check=all_of(process_count(15), share_of("child_work", 0.7))),
    "exec-chain": H("exec_chain 6 20", check=process_count(60)),
    "exec-chain-60": H("exec_chain 60 20", long=True, timeout=300),
    "exec-chain-10khz": H("exec_chain 6 20", options=["--freq=10000"]),
    "executes-10khz": H("executes 10 @libexecutes_plugin.so", options=["--freq=10000"]),
    "fork": H("fork", check=all_of(process_count(13), share_of("child_work", 0.2))),
    "fork-locks": H("fork_locks 60", options=EVERYTHING, check=process_count(20)),
    "data-stack": H("data_stack sigaction", check=share_of("count_on_data_stack", 0.7)),
    "data-stack-other-name": H("data_stack __sigaction", check=share_of("count_on_data_stack", 0.7)),
    "data-stack-realtime": H("data_stack sigaction", options=["--realtime"]),
    "forbidden-calls": H("forbidden calls", check=all_of(share_of("after_forbidden", 0.35), share_of("in_child", 0.2),
                                                         one_thread_left_alone)),
    "forbidden-calls-at-once": H("forbidden calls-at-once", options=["--realtime"]),
    "forbidden-cpuid": H("forbidden cpuid", check=share_of("while_forbidden", 0.35)),
    "forbidden-time": H("forbidden time", check=all_of(share_of("while_forbidden", 0.35), share_of("in_child", 0.25))),
    "forbidden-unaligned": H("forbidden unaligned", check=share_of("while_forbidden", 0.35)),
    "fork-locks-1000": H("fork_locks 1000", options=EVERYTHING, check=process_count(300), long=True,
                         timeout=400),
    "jit": H("jit", check=jit_names),
    "late-code": H("late_code @liblate_code_plugin.so", check=share_of("plugin_hot", 0.8)),
    "longjmp": H("longjmp"),
    "no-stdio": H("no_stdio"),
    "passthrough": H("passthrough", status=19, stdin=bytes(range(256)) * 4000),
    "pristine": H("pristine"),
    "privileges": H("privileges"),
    # The tracer swallows SIGTRAP, so a source that uses it finds nothing.
    "ptrace": H("ptrace", samples=False),
    "registers-kept": H("registers_kept", options=["--freq=10000"]),
    # With enough CPU time for what the kernel's tick sees of it, four milliseconds apart.
    "seccomp-deny-perf": H("seccomp deny-perf @truth random 2 0.5 1.5", same_output=False,
                           check=share_of("work_a", 0.3)),
    "seccomp-ask": H("seccomp ask", check=all_of(share_of("after_asking", 0.8), no_seccomp_loss)),
    "seccomp-at-once": H("seccomp at-once", samples=False),
    "seccomp-at-once-memory": H("seccomp at-once", samples=False, options=["--trace-memory"]),
    "seccomp-at-once-realtime": H("seccomp at-once", samples=False, options=["--realtime"]),
    "seccomp-strict": H("seccomp strict"),
    "self-view-env": H("self_view env", same_output=False, check=environment_only_documented),
    "self-view-fds": H("self_view fds", same_output=False, check=descriptors_high),
    "self-view-threads": H("self_view threads"),
    "signal-altstack": H("signal_altstack"),
    "signal-blocked": H("signal_blocked", check=share_of("hidden", 0.8)),
    "signal-handlers": H("signal_handlers"),
    "signal-readback": H("signal_readback"),
    "signal-signalfd": H("signal_signalfd"),
    "signal-sigwait": H("signal_sigwait"),
    "spawn": H("spawn"),
    "static": H("static", status=11, samples=False, check=message("static|^$"), same_errors=False),
    "static-pie": H("static_pie", status=11, samples=False, check=message("static|^$"),
                    same_errors=False),
    "storm": H("storm 2", options=["--freq=2000"]),
    "storm-10khz": H("storm 20", options=["--freq=10000"], long=True, timeout=200),
    "thread-raw-clone": H("thread_raw_clone", check=share_of("raw_work", 0.5)),
    "thread-pointer": H("thread_pointer"),
    "thread-pointer-everything": H("thread_pointer", options=EVERYTHING),
    "threads-parked": H("threads_parked 10000", check=thread_count(10000)),
    "threads-churn": H("threads_churn 20000", check=thread_count(20000, 20001), samples=False),
    # one that is on its way out is no second thread
    "threads-linger": H("threads_linger 100", check=thread_count(101, 101), samples=False),
    "threads-churn-100k": H("threads_churn 100000", check=thread_count(100000), long=True,
                            timeout=300),
    "threads-few-signals": H("threads_parked 5000", check=thread_count(5000),
                             preexec=low_limit(resource.RLIMIT_SIGPENDING, 3000)),
    "threads-few-files": H("threads_parked 2000", check=thread_count(2000),
                           preexec=low_limit(resource.RLIMIT_NOFILE, 256)),
    "timers": H("timers"),
    "vdso": H("vdso"),
    "wrong-cfi": H("wrong_cfi"),
    "missing": H("/nonexistent/program", status=127, samples=False, same_errors=False),
    "not-executable": H("/etc/passwd", status=126, samples=False, same_errors=False),
    "setuid": H("setuid-copy", status=3, samples=False, same_errors=False, root=True,
                check=message("set-user-id|setuid|privilege"), preexec=become_nobody),
}
for _mode in ("main_exit", "detached", "c11", "cancel", "keys"):
    HAZARDS["thread-" + _mode.replace("_", "-")] = H("thread_ends " + _mode)
HAZARDS["thread-exit-process"] = H("thread_ends exit_process", status=7)
for _mode, _status in (("return", 6), ("exit", 3), ("_exit", 4), ("quick_exit", 5), ("abort", -6),
                       ("segv", -11), ("fpe", -8), ("kill", -9), ("term", -15), ("pipe", -13),
                       ("xcpu", -24), ("trap", -5), ("quit", -3), ("urg", 6), ("alarm", -14)):
    HAZARDS["end-" + _mode.strip("_").replace("_", "-") + ("-raw" if _mode == "_exit" else "")] = H(
        "ends " + _mode, status=_status)
for _mode in ("nofile", "fsize", "as", "sigpending", "memlock"):
    HAZARDS["limit-" + _mode] = H("limits " + _mode)


class Trial:
    """One hazard: the bare run, then one under each source."""

    def __init__(self, kymo, programs, hazard, scratch):
        self.kymo, self.hazard, self.scratch = kymo, hazard, scratch
        self.command = [os.path.join(programs, word.lstrip("@"))
                        if index == 0 and not word.startswith("/") or word.startswith("@") else word
                        for index, word in enumerate(hazard.command)]
        self.bare, self.runs = None, 0
        if hazard.root:
            self.command = self.setuid_copy(programs)

    def setuid_copy(self, programs):
        """A set-user-id program of root's, to be run by nobody."""
        if os.getuid() != 0:
            raise Skipped("needs root")
        probe = run([self.kymo.path, "--version"], preexec=become_nobody)
        if probe.status != 0:
            raise Skipped("nobody may not run kymo where it lies")
        path = self.scratch.path("setuid")
        shutil.copy(os.path.join(programs, "ends"), path)
        os.chmod(path, 0o4755)
        os.chmod(self.scratch.directory, 0o777)
        return [path, "exit"]

    def execute(self, launch):
        hazard = self.hazard
        return launch(stdin=hazard.stdin, timeout=hazard.timeout, preexec=hazard.preexec)

    def run_bare(self):
        if self.hazard.status in (126, 127):
            return
        self.bare = self.execute(lambda **how: run(self.command, **how))
        expect(self.bare.status == self.hazard.status,
               f"bare run: status {self.bare.status}, not {self.hazard.status}\n{self.bare.stderr}")

    def run_source(self, source):
        self.runs += 1
        hazard, directory = self.hazard, self.scratch.path(f"{source}-{self.runs}")
        ended = self.execute(lambda **how: self.kymo.sample(
            self.command, directory, f"--sampling-source={source}", *hazard.options, **how))
        expect(ended.status == hazard.status,
               f"status {ended.status}, bare {hazard.status}\n{ended.stderr[-2000:]}")
        if self.bare:
            self.compare(ended)
        result = Result(directory)
        if hazard.samples:
            expect(result.has("metadata.json"), f"no metadata.json\n{ended.stderr[-2000:]}")
            expect(result.samples() > 0, f"no samples\n{ended.stderr[-2000:]}")
        if hazard.check:
            hazard.check(result, ended, self.bare)

    def compare(self, ended):
        if self.hazard.same_output:
            expect(ended.stdout == self.bare.stdout,
                   f"output differs: {ended.stdout[-300:]!r}, bare {self.bare.stdout[-300:]!r}")
        if self.hazard.same_errors:
            own = [line for line in ended.stderr.splitlines() if not line.startswith("kymo:")]
            expect(own == self.bare.stderr.splitlines(),
                   f"standard error differs: {own[-5:]}, bare {self.bare.stderr[-300:]!r}")


def main():
    if sys.argv[1] == "--list":
        long = sys.argv[2:] == ["long"]
        print("\n".join(name for name, hazard in HAZARDS.items() if hazard.long == long))
        return
    kymo, programs, name = Kymo(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
    hazard, tap = HAZARDS[name], Tap()
    with Scratch() as scratch:
        try:
            trial = Trial(kymo, programs, hazard, scratch)
        except Skipped as reason:
            text = str(reason)

            def skip():
                raise Skipped(text)
            tap.point(name, skip)
            tap.finish()
        if tap.point(f"{name} bare", trial.run_bare):
            for source in hazard.sources:
                tap.point(f"{name} {source}", lambda chosen=source: trial.run_source(chosen),
                          retries=2, retried=Unlikely)
    tap.finish()


if __name__ == "__main__":
    try:
        main()
    except Failed as error:
        print(f"Bail out! {error}")
