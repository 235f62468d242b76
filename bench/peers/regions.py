#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Begin and end of a region: kymo beside LTTng-UST and uftrace, one after the other, some rounds.

usage: regions.py BUILD-DIRECTORY [PAIRS [ROUNDS]]

BUILD-DIRECTORY/bench has regions, and lttng_loop and calls_loop_traced where the peers' packages are
installed. Prints ns a pair, the least of the rounds, with one thread (real time) and eight (CPU time of each).
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

THREADS = (1, 8)


def run(command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def kymo(build, pairs):
    figures = {}
    for line in run([os.path.join(build, "bench", "regions"), str(pairs)]).splitlines():
        match = re.match(r"(.+?)\s{2,}([\d.]+)\s+([\d.]+)\s+lost (\d+)", line)
        if match:
            figures["kymo: " + match[1]] = [float(match[2]), float(match[3])]
    return figures


def lttng(build, pairs):
    program = os.path.join(build, "bench", "lttng_loop")
    if not os.path.exists(program) or not shutil.which("lttng"):
        return {}
    directory = tempfile.mkdtemp()
    environment = dict(os.environ, LTTNG_HOME=directory)
    daemon = subprocess.Popen(["lttng-sessiond", "--quiet", "--no-kernel"], env=environment)
    try:
        import time
        time.sleep(2)
        for command in (["create", "bench", "--output=" + os.path.join(directory, "trace")],
                        ["enable-channel", "--userspace", "c", "--subbuf-size=8M", "--num-subbuf=8",
                         "--blocking-timeout=inf"],
                        ["enable-event", "--userspace", "--channel=c", "kymo_bench:*"], ["start"]):
            run(["lttng", *command], env=environment)
        blocking = dict(environment, LTTNG_UST_ALLOW_BLOCKING="1")
        figures = [float(run([program, str(pairs), str(n)], env=blocking)) for n in THREADS]
        run(["lttng", "destroy", "bench"], env=environment)
    finally:
        daemon.terminate()
        daemon.wait()
        shutil.rmtree(directory, ignore_errors=True)
    return {"LTTng-UST: two tracepoints with a name (nothing lost: blocking)": figures}


def uftrace(build, pairs):
    program = os.path.join(build, "bench", "calls_loop_traced")
    if not os.path.exists(program) or not shutil.which("uftrace"):
        return {}
    directory = tempfile.mkdtemp()
    try:
        figures = [float(run(["uftrace", "record", "--no-libcall", "-d",
                              os.path.join(directory, str(n)), program, str(pairs), str(n)])
                         .split()[-1]) for n in THREADS]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return {"uftrace record: a function's entry and exit (-pg)": figures}


def main():
    build = sys.argv[1]
    pairs = int(sys.argv[2]) if len(sys.argv) > 2 else 2000000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 3
    best = {}
    for _ in range(rounds):
        for peer in (kymo, lttng, uftrace):
            for name, figures in peer(build, pairs).items():
                old = best.get(name, figures)
                best[name] = [min(a, b) for a, b in zip(old, figures)]
    print(f"ns a pair (8 threads: of CPU time each); least of {rounds} rounds; {os.cpu_count()} CPUs")
    print(f"{'':66} 1 thread        8")
    for name, figures in best.items():
        print(f"{name:66} {figures[0]:8.1f} {figures[1]:8.1f}")


if __name__ == "__main__":
    main()
