#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo attach: processes that were not prepared, profiled for a while and left as they were.

usage: attach.py KYMO PROGRAM-DIRECTORY GROUP     (TAP)
       attach.py --list                           the groups
"""
import ctypes
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

from harness import (Failed, Kymo, Result, Scratch, Skipped, Tap, clean_environment, cpu_seconds, expect, is_alive,
                     require_tool, run, wait_until)


class Target:
    """A process that runs by itself; the end of the block ends it."""

    def __init__(self, command, **how):
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.STDOUT)
        self.process = subprocess.Popen(command, env=clean_environment(),
                                        start_new_session=True, **how)
        self.pid = self.process.pid

    def __enter__(self):
        """Once it waits for something or has worked for a while: it has begun, then."""
        time.sleep(0.2)
        wait_until(self._has_begun, "it does not begin")
        return self

    def _has_begun(self):
        if not is_alive(self.pid):
            return True
        return status_of(self.pid)["State"][0] in "STt" or cpu_seconds(self.pid) > 0.1

    def __exit__(self, kind, error, _):
        ended = self.process.poll()
        if ended is None:
            os.killpg(self.pid, signal.SIGKILL)
            self.process.wait()
        if self.process.stdout:
            output = b"" if self.process.stdout.closed else self.process.stdout.read()
            self.process.stdout.close()
            if kind is Failed and ended is not None:
                raise Failed(f"{error}\nit ended with {ended}: {output}") from error

    def end(self, how=signal.SIGTERM, timeout=40):
        """Asks it to end; (status, output)."""
        self.process.send_signal(how)
        output, _ = self.process.communicate(timeout=timeout)
        return self.process.returncode, (output or b"").decode(errors="replace")


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as stream:
        return dict(line.rstrip("\n").split(":\t", 1) for line in stream if ":\t" in line)


def threads_of(pid):
    """Their names; but jemalloc makes threads of its own, when others allocate for the first time."""
    names = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8", errors="replace") as stream:
            names.append(stream.read().strip())
    return sorted(name for name in names if name != "jemalloc_bg_thd")


def trace_of(pid):
    """What an attach could leave behind, but for the library and anonymous memory."""
    status = status_of(pid)
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as stream:
        maps = stream.read()
    return {"handlers": status["SigCgt"], "ignored": status["SigIgn"], "blocked": status["SigBlk"],
            "pending": status["SigPnd"] + status["ShdPnd"], "tracer": status["TracerPid"],
            "descriptors": sorted(os.listdir(f"/proc/{pid}/fd")),
            "threads": threads_of(pid),
            "spool": ".spool" in maps}


def is_recording(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as stream:
        return ".spool" in stream.read()


def resident_kb(pid):
    status = status_of(pid)
    expect("VmRSS" in status, f"process {pid} is no more: {status['State']}")
    return int(status["VmRSS"].split()[0])


def child_of(pid):
    def children():
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as stream:
            return stream.read().split()
    return int(wait_until(children, f"process {pid} has no child")[0])


def wait_for_cpu(pid, seconds):
    """Until the process has used that much more."""
    enough = cpu_seconds(pid) + seconds
    wait_until(lambda: cpu_seconds(pid) > enough, f"process {pid} does not work")


class Attach:
    """What the groups share."""

    def __init__(self, kymo, programs, scratch):
        self.kymo, self.programs, self.scratch = kymo, programs, scratch
        self.count = 0

    def program(self, *words):
        return [os.path.join(self.programs, words[0]), *words[1:]]

    def line(self, pid, *options):
        self.count += 1
        directory = self.scratch.path(f"result-{self.count}")
        return directory, [self.kymo.path, "attach", "-q", "-p", str(pid), "-o", directory,
                           "--time-output=off", *options]

    def attach(self, pid, seconds=0.2, *options, status=0, **how):
        directory, line = self.line(pid, "-d", str(seconds), *options)
        ended = run(line, **how)
        expect(ended.status == status, f"status {ended.status}: {ended.stderr}")
        return Result(directory) if not status else ended.stderr

    def attached(self, pid, *options):
        """kymo, once it has attached; and where its results will be."""
        directory, line = self.line(pid, *options)
        kymo = subprocess.Popen(line)
        # and has let go of the thread that it borrowed
        wait_until(lambda: kymo.poll() is not None or is_recording(pid) and status_of(pid)["TracerPid"] == "0",
                   "it is not recording")
        expect(kymo.poll() is None, f"kymo ended with {kymo.returncode}")
        return kymo, Result(directory)

    def leave(self, kymo):
        kymo.send_signal(signal.SIGINT)
        expect(kymo.wait(60) == 0, f"status {kymo.returncode}")

    def attach_for(self, pid, cpu, *options):
        """For as long as it takes the process to use that many seconds of CPU time."""
        kymo, result = self.attached(pid, *options)
        wait_for_cpu(pid, cpu)
        self.leave(kymo)
        return result

    def cycles(self, pid, count, *options, settle=True, wanted=0):
        """Attaches and leaves; nothing is left behind, and memory does not grow with each time. More often
        than that until there are the `wanted` samples, since a busy machine gives few."""
        before, samples, resident = trace_of(pid), 0, []
        while len(resident) < count or samples < wanted and len(resident) < 20 * count:
            samples += self.attach(pid, 0.1, *options).samples()
            resident.append(resident_kb(pid))
        after = trace_of(pid)
        for _ in range(50 if settle else 0):  # what the program itself has open for a moment
            if after == before:
                break
            time.sleep(0.02)
            after = trace_of(pid)
        if settle:
            expect(after == before, f"before: {before}\nafter: {after}")
        growth = resident[-1] - resident[len(resident) // 2]
        expect(growth < 2048 or not settle, f"resident memory grows: {resident} kB")
        return samples


    def has_waited(self, ended, kind):
        """Every wait came to its end, and no later than a moment after it."""
        status, output = ended
        told = re.fullmatch(rf"longest wait: (\d+) ms\n{kind}: OK\n", output)
        expect(status == 0 and told, f"{status}: {output}")
        expect(int(told[1]) < 150 + 1500, output)


class Programs(Attach):
    """Programs of all kinds, 20 times each."""

    def sleeper(self):
        with Target(self.program("attach_waits", "nanosleep")) as target:
            self.cycles(target.pid, 20)
            ended = target.end()
        self.has_waited(ended, "nanosleep")

    def busy_threads(self):
        with Target(self.program("truth", "random", "4", "asked")) as target:
            samples = self.cycles(target.pid, 20, wanted=101)
            expect(samples > 100, f"{samples} samples")
            status, output = target.end()
        expect(status == 0 and "work_a" in output, f"{status}: {output}")

    def python(self):
        code = ("import time, threading, sys\n"
                "go = True\n"
                "def work():\n"
                "    while go: sum(i * i for i in range(1000))\n"
                "threads = [threading.Thread(target=work) for _ in range(2)]\n"
                "[t.start() for t in threads]\n"
                "sys.stdin.readline()\n"
                "go = False\n"
                "[t.join() for t in threads]\n"
                "print('done')\n")
        with Target(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE) as target:
            samples = self.cycles(target.pid, 20, wanted=201)
            expect(samples > 200, f"{samples} samples")
            output, _ = target.process.communicate(b"\n", timeout=40)
        expect((target.process.returncode, output) == (0, b"done\n"), f"{output}")

    def redis(self):
        require_tool("redis-server", "redis-benchmark")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        with Target(["redis-server", "--port", port, "--save", "", "--bind", "127.0.0.1"]) as server:
            with Target(["redis-benchmark", "-p", port, "-n", "100000000", "-c", "20", "-q", "-t",
                         "set,get"], stdout=subprocess.DEVNULL) as load:
                time.sleep(0.3)
                before = trace_of(server.pid)
                samples = self.cycles(server.pid, 20, settle=False, wanted=101)
                expect(load.process.poll() is None, "the load ended")
            time.sleep(0.3)
            after = trace_of(server.pid)
            for key in ("handlers", "ignored", "blocked", "threads", "spool"):
                expect(before[key] == after[key], f"{key}: {before[key]}, {after[key]}")
            answer = run(["redis-cli", "-p", port, "ping"])
            expect(answer.stdout == b"PONG\n", f"{answer}")
            status, output = server.end()
        expect(samples > 100, f"{samples} samples")
        expect(status == 0, f"status {status}: {output[-500:]}")

    def nginx(self):
        """The worker: another user's process, in epoll_wait."""
        require_tool("nginx")
        if os.geteuid():
            raise Skipped("needs root, for a worker of another user")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        configuration = self.scratch.path("nginx.conf")
        with open(configuration, "w", encoding="ascii") as stream:
            stream.write(f"daemon off; master_process on; worker_processes 1; user nobody nogroup;\n"
                         f"pid {self.scratch.path('nginx.pid')}; error_log stderr;\n"
                         f"events {{ worker_connections 64; }}\n"
                         f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; "
                         f"location / {{ return 200 'hello'; }} }} }}\n")
        with Target(["nginx", "-c", configuration]) as server:
            worker = child_of(server.pid)
            probe = self.attach(worker, 0.1)
            expect(probe.processes()[0]["pid"] == worker, "not the worker")
            for _ in range(20):
                directory, line = self.line(worker, "-d", "0.1", "--realtime")
                kymo = subprocess.Popen(line, stderr=subprocess.PIPE)
                while kymo.poll() is None:
                    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
                        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
                        answer = b""
                        while part := client.recv(4096):
                            answer += part
                    expect(answer.endswith(b"hello"), f"{answer}")
                text = kymo.stderr.read().decode()
                kymo.stderr.close()
                expect(kymo.returncode == 0, text)
                expect(Result(directory).samples() > 0, "no samples")
            expect(not trace_of(worker)["spool"], "it is still recording")
            status, output = server.end(signal.SIGQUIT)
        expect(status == 0, f"status {status}: {output[-500:]}")


class Waits(Attach):
    """System calls under way go on."""

    def _kind(self, kind, times=8):
        with Target(self.program("attach_waits", kind)) as target:
            self.cycles(target.pid, times)
            ended = target.end()
        self.has_waited(ended, kind)

    def nanosleep(self):
        self._kind("nanosleep")

    def absolute(self):
        self._kind("absolute")

    def poll(self):
        self._kind("poll")

    def select(self):
        self._kind("select")

    def pselect(self):
        self._kind("pselect")

    def epoll(self):
        self._kind("epoll")

    def semop(self):
        self._kind("semop")

    def sigtimedwait(self):
        self._kind("sigtimedwait")

    def condition(self):
        self._kind("condition")

    def receive(self):
        self._kind("receive")

    def read(self):
        self._kind("read")

    def work(self):
        self._kind("work")


class Life(Attach):
    """Ends of all kinds, children, and settings that differ."""

    def shares_as_sampled(self):
        """The same program under kymo sample and attached to: the same shares."""
        names = ("work_a", "work_b", "work_c")
        sampled = self.scratch.path("sampled")
        self.kymo.sample(self.program("truth", "random", "1", "4", "4"), sampled)
        with Target(self.program("truth", "random", "1", "asked")) as target:
            attached = self.attach_for(target.pid, 4)
        one, other = Result(sampled).inclusive_shares(), attached.inclusive_shares()
        for name in names:
            expect(abs(one[name] - other[name]) < 0.05, f"{name}: {one[name]}, {other[name]}")

    def names_and_threads(self):
        with Target(self.program("truth", "random", "3", "asked")) as target:
            wait_until(lambda: len(threads_of(target.pid)) == 3, "not three threads")
            threads = self.attach(target.pid, 1).json("profile.json")["threads"]
            tids = {int(tid) for tid in os.listdir(f"/proc/{target.pid}/task")}
        seen = {thread["tid"]: thread for thread in threads if thread["found"] != "kymo"}
        expect(set(seen) == tids, f"{set(seen)}, not {tids}")
        expect(seen[target.pid]["found"] == "main" and seen[target.pid]["sequent_id"] == 0,
               f"{seen[target.pid]}")
        expect(all(thread["name"] == "truth" for thread in seen.values()), f"{seen}")

    def other_settings(self):
        with Target(self.program("attach_waits", "poll")) as target:
            cpu = self.attach(target.pid, 0.3)
            wall = self.attach(target.pid, 0.5, "--realtime", "200")
            deep = self.attach(target.pid, 0.3, "--sampling-max-depth", "2000", "-f", "5000")
            cpu_again = self.attach(target.pid, 0.3, "--cputime")
            ended = target.end()
        expect(wall.samples() > 0, "no samples of real time")
        for result in (cpu, deep, cpu_again):
            expect(len(result.processes()) == 1, "not one process")
        self.has_waited(ended, "poll")

    def regions_asked_for(self):
        """There will be none, which is said; switching them off is nothing to talk about."""
        with Target(self.program("attach_waits", "poll")) as target:
            _, line = self.line(target.pid, "-d", "0.2", "--verbose=0", "--trace-io", "--no-openmp")
            ended = run(line)
            target.end()
        expect(ended.status == 0, f"status {ended.status}: {ended.stderr}")
        warned = [text for text in ended.stderr.splitlines() if "no effect" in text]
        expect(len(warned) == 1 and "--trace-io" in warned[0], f"{ended.stderr}")

    def process_ends(self):
        with Target(self.program("truth", "random", "1", "2", "2")) as target:
            result = self.attach(target.pid, 100)
            expect(target.process.wait(60) == 0, f"status {target.process.returncode}")
        expect(result.samples() > 100, f"{result.samples()} samples")

    def killed_while_attached(self):
        with Target(self.program("truth", "random", "1", "asked")) as target:
            kymo, result = self.attached(target.pid, "-d", "100")
            wait_for_cpu(target.pid, 1)
            os.kill(target.pid, signal.SIGKILL)
            expect(kymo.wait(60) == 0, f"status {kymo.returncode}")
        expect(result.samples() > 100, "no samples")

    def interrupted(self):
        with Target(self.program("truth", "random", "1", "asked")) as target:
            result = self.attach_for(target.pid, 1)
            expect(not trace_of(target.pid)["spool"], "it is still recording")
            expect(target.process.poll() is None, "it ended")
        expect(result.samples() > 100, "no samples")

    def kymo_killed(self):
        """The process notices and leaves by itself; then kymo can come again."""
        with Target(self.program("truth", "random", "2", "asked")) as target:
            before = trace_of(target.pid)
            kymo, result = self.attached(target.pid)
            wait_for_cpu(target.pid, 1)
            kymo.kill()
            kymo.wait()
            deadline = time.monotonic() + 60
            while trace_of(target.pid) != before and time.monotonic() < deadline:
                time.sleep(0.05)
            expect(trace_of(target.pid) == before, f"{before}\n{trace_of(target.pid)}")
            report = self.kymo.report(result.directory, "--format=text")
            expect(report.status == 0 and b"work_a" in report.stdout, report.stderr)
            expect(self.attach_for(target.pid, 0.5).samples() > 10, "no samples")

    def kymo_killed_anywhere(self):
        """SIGKILL at any moment of attaching and detaching: the process goes on."""
        with Target(self.program("attach_waits", "poll")) as target:
            for i in range(30):
                _, line = self.line(target.pid, "-d", "0.05")
                kymo = subprocess.Popen(line, stderr=subprocess.DEVNULL)
                time.sleep(0.004 * i)
                kymo.kill()
                kymo.wait()
                time.sleep(0.02)
            time.sleep(2.5)
            wait_until(lambda: not trace_of(target.pid)["spool"] and len(threads_of(target.pid)) == 1,
                       "it is still recording")
            self.attach(target.pid)
            ended = target.end()
        self.has_waited(ended, "poll")

    def children(self):
        """Forked while kymo is there: in the results. Left with their parent."""
        code = ("import os, sys\n"
                "sys.stdin.readline()\n"
                "os.fork()\n"
                "while True: pass\n")
        with Target(["/usr/bin/python3", "-c", code], stdin=subprocess.PIPE) as target:
            kymo, result = self.attached(target.pid)
            target.process.stdin.write(b"\n")
            target.process.stdin.close()
            child = child_of(target.pid)
            wait_until(lambda: is_recording(child), "the child is not recording")
            wait_for_cpu(child, 0.3)
            self.leave(kymo)
            expect(not trace_of(child)["spool"], "the child is still recording")
            self.attach(child, 0.3)
        pids = {process["pid"] for process in result.processes()}
        expect(pids == {target.pid, child}, f"{pids}, not {target.pid} and {child}")

    def execs(self):
        """A process that becomes another program while it is sampled at a high rate."""
        code = ("import os, time\n"
                "while '.spool' not in open('/proc/self/maps').read(): pass\n"
                "end = time.process_time() + 0.3\n"
                "while time.process_time() < end: pass\n"
                "os.execv('/bin/sh', ['sh', '-c', 'sleep 0.5; echo other; exit 3'])\n")
        for _ in range(5):
            with Target(["/usr/bin/python3", "-c", code]) as target:
                _, line = self.line(target.pid, "-d", "60", "-f", "10000")
                kymo = subprocess.Popen(line, stderr=subprocess.PIPE)
                output, _ = target.process.communicate(timeout=60)
                _, text = kymo.communicate(timeout=30)
                expect((target.process.returncode, output) == (3, b"other\n"),
                       f"{target.process.returncode}: {output}")
                expect(kymo.returncode == 0, f"{kymo.returncode}: {text}")

    def executes(self):
        """A process that starts others all the time, sampled at a high rate again and again, also by a
        signal that ends what does not handle it; none of them is ended by a sample."""
        with Target(self.program("executes", "asked"), stdin=subprocess.DEVNULL) as target:
            for signal_name in ("SIGURG", "SIGPROF", "SIGURG"):
                self.attach(target.pid, 1, "-f", "10000", "--sampling-signal", signal_name)
            status, output = target.end()
        expect((status, output) == (0, "executes: OK\n"), f"{status}: {output}")

    def calls(self):
        """The program's calls lead to libkymo only while it is there."""
        with Target(self.program("executes", "asked"), stdin=subprocess.PIPE) as target:
            def lead_to():
                target.process.stdin.write(b"?\n")
                target.process.stdin.flush()
                return target.process.stdout.readline().decode()
            before = lead_to()
            expect(before.count("libc.so.6") == 3, before)
            for _ in range(3):
                kymo, _ = self.attached(target.pid)
                during = lead_to()
                expect(during.count("libkymo.so") == 3, during)
                self.leave(kymo)
                after = lead_to()
                expect(after == before, after)
            status, output = target.end()
        expect((status, output) == (0, "executes: OK\n"), f"{status}: {output}")

    def sandbox(self):
        """A thread that goes into a seccomp sandbox while it is sampled."""
        with Target(self.program("attach_sandbox"), stdin=subprocess.PIPE) as target:
            kymo, _ = self.attached(target.pid, "-d", "100", "-f", "5000")
            wait_for_cpu(target.pid, 0.5)
            output, _ = target.process.communicate(b"\n", timeout=60)
            expect(kymo.wait(60) == 0, f"{kymo.returncode}")
            expect((target.process.returncode, output) == (0, b"ok\n"),
                   f"{target.process.returncode}: {output}")

    def stopped(self):
        """A stopped process: kymo waits until it goes on."""
        with Target(self.program("truth", "random", "1", "asked")) as target:
            os.kill(target.pid, signal.SIGSTOP)
            directory, line = self.line(target.pid)
            kymo = subprocess.Popen(line)
            time.sleep(1)
            expect(kymo.poll() is None, "kymo did not wait")
            os.kill(target.pid, signal.SIGCONT)
            wait_until(lambda: is_recording(target.pid), "it is not recording")
            wait_for_cpu(target.pid, 1)
            self.leave(kymo)
        expect(Result(directory).samples() > 50, "no samples")

    def registers(self):
        with Target(self.program("registers_kept")) as target:
            done = 0
            while target.process.poll() is None and done < 10:
                _, line = self.line(target.pid, "-d", "0.05")
                run(line)
                done += 1
            output, _ = target.process.communicate(timeout=60)
        expect(target.process.returncode == 0, f"{output}")

    def own_signals(self):
        """A program that blocks and handles the signal that kymo takes."""
        code = ("import signal, time\n"
                "count = 0\n"
                "def handler(*_):\n"
                "    global count\n"
                "    count += 1\n"
                "signal.signal(signal.SIGURG, handler)\n"
                "print('ready', flush=True)\n"
                "for number in range(1, 4):\n"
                "    while count < number: time.sleep(0.001); sum(range(1000))\n"
                "    print(number, flush=True)\n"
                "time.sleep(60)\n")
        with Target(["/usr/bin/python3", "-c", code]) as target:
            output = target.process.stdout.readline()
            before = trace_of(target.pid)
            self.attach(target.pid, 0.5, "-f", "2000")
            expect(trace_of(target.pid) == before, f"{before}\n{trace_of(target.pid)}")
            kymo, _ = self.attached(target.pid)
            wait_for_cpu(target.pid, 0.05)
            for _ in range(3):  # sent at once, they might be one
                os.kill(target.pid, signal.SIGURG)
                ready, _, _ = select.select([target.process.stdout], [], [], 60)
                expect(ready, f"{output}")
                output += target.process.stdout.readline()
            self.leave(kymo)
            os.set_blocking(target.process.stdout.fileno(), False)
            output += target.process.stdout.read() or b""
        expect(output == b"ready\n1\n2\n3\n", f"{output}")


class Storm(Attach):
    """Threads that are always in the loader or the allocator."""

    def storm(self):
        with Target(self.program("attach_storm", "4", "all")) as target:
            self.cycles(target.pid, 40)
            status, output = target.end()
        expect((status, output) == (0, "ok\n"), f"{status}: {output}")


class StormLong(Attach):
    """The same, 200 times."""

    def storm_200(self):
        with Target(self.program("attach_storm", "4", "all")) as target:
            self.cycles(target.pid, 200)
            status, output = target.end()
        expect((status, output) == (0, "ok\n"), f"{status}: {output}")


def trace_me():
    """In a child: PTRACE_TRACEME."""
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)


class Refusals(Attach):
    """What cannot be is said, with the reason; the process goes on."""

    def _refused(self, pid, *words, line=None, preexec=None):
        ended = run(line or self.line(pid, "-d", "0.1")[1], preexec=preexec)
        expect(ended.status == 125, f"status {ended.status}: {ended.stderr}")
        expect(all(word in ended.stderr for word in words), ended.stderr)
        expect(ended.stderr.count("\n") == 1, ended.stderr)

    def _from_outside(self, pid, *words):
        """Nothing can be loaded into it, so it is sampled from outside, or both reasons are given."""
        ended = run([word for word in self.line(pid, "-d", "0.1")[1] if word != "-q"])
        expect(all(word in ended.stderr for word in words), ended.stderr)
        if "and from outside: perf events are not permitted" in ended.stderr:
            expect(ended.status == 125, f"status {ended.status}: {ended.stderr}")
        else:
            expect(ended.status == 0 and "samples it from outside" in ended.stderr, f"status {ended.status}: {ended.stderr}")

    def which(self):
        self._refused(0, "which process", line=[self.kymo.path, "attach"])
        self._refused(0, "is not a process ID", line=[self.kymo.path, "attach", "-p", "x1"])
        self._refused(0, "which process", line=[self.kymo.path, "attach", "1"])

    def no_such_process(self):
        child = os.fork()
        if not child:
            os._exit(0)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        self._refused(child, f"process {child} has already ended")
        os.waitpid(child, 0)
        self._refused(child, f"there is no process {child}")

    def thread(self):
        with Target(self.program("truth", "random", "2", "asked")) as target:
            wait_until(lambda: len(threads_of(target.pid)) == 2, "not two threads")
            tid = max(int(name) for name in os.listdir(f"/proc/{target.pid}/task"))
            self._refused(tid, f"a thread of process {target.pid}")

    def kernel_thread(self):
        if status_of(2).get("PPid") != "0":
            raise Skipped("no kernel thread to be seen here")
        self._refused(2, "thread of the kernel")

    def static(self):
        if not os.path.exists("/usr/bin/gcc"):
            raise Skipped("no compiler")
        source, program = self.scratch.path("s.c"), self.scratch.path("s")
        with open(source, "w", encoding="ascii") as stream:
            stream.write("#include <unistd.h>\nint main(void) { sleep(30); }\n")
        for kind in ("-static", "-static-pie"):
            if run(["gcc", kind, "-o", program, source]).status:
                raise Skipped("no static libc")
            with Target([program]) as target:
                self._from_outside(target.pid, "statically linked")

    def thread_sanitizer(self):
        source, program = self.scratch.path("t.c"), self.scratch.path("t")
        with open(source, "w", encoding="ascii") as stream:
            stream.write("#include <unistd.h>\nint main(void) { sleep(30); }\n")
        compilers = [name for name in ("gcc", "clang") if shutil.which(name)]
        for compiler in compilers:
            if run([compiler, "-fsanitize=thread", "-o", program, source]).status:
                raise Skipped(f"no ThreadSanitizer of {compiler}")
            with Target([program]) as target:
                time.sleep(1)  # its run time may begin the program anew, without randomised addresses
                self._refused(target.pid, "runs under ThreadSanitizer")

    def musl(self):
        if not shutil.which("musl-gcc"):
            raise Skipped("no musl")
        source, program = self.scratch.path("m.c"), self.scratch.path("m")
        with open(source, "w", encoding="ascii") as stream:
            stream.write("#include <unistd.h>\nint main(void) { sleep(30); }\n")
        expect(run(["musl-gcc", "-o", program, source]).status == 0, "does not compile")
        with Target([program]) as target:
            self._from_outside(target.pid, "uses musl")

    def other_machine(self):
        source, program = self.scratch.path("i.c"), self.scratch.path("i")
        with open(source, "w", encoding="ascii") as stream:
            stream.write("void _start(void) { for (;;) __asm__(\"pause\"); }\n")
        if run(["gcc", "-m32", "-nostdlib", "-static", "-o", program, source]).status:
            raise Skipped("no 32-bit compiler")
        try:
            target = Target([program])
        except OSError as error:
            raise Skipped(f"32-bit programs do not run here: {error.strerror}") from error
        with target:
            self._refused(target.pid, "another kind of machine")

    def traced(self):
        with Target(["/bin/sleep", "30"], preexec_fn=trace_me) as target:
            # stopped at its exec, by us
            os.waitpid(target.pid, 0)
            self._refused(target.pid, f"traced by process {os.getpid()}")
            ctypes.CDLL(None).ptrace(17, target.pid, 0, 0)  # PTRACE_DETACH

    def sampled(self):
        directory = self.scratch.path("busy")
        with Target([self.kymo.path, "sample", "-q", "-o", directory, "--time-output=off", "--",
                     *self.program("truth", "random", "1", "asked")]) as target:
            child = child_of(target.pid)
            wait_until(lambda: is_recording(child), "it is not recording")
            self._refused(child, "already being profiled", directory)

    def attached_to(self):
        with Target(self.program("truth", "random", "1", "asked")) as target:
            kymo, result = self.attached(target.pid)
            self._refused(target.pid, "already being profiled", result.directory)
            self.leave(kymo)

    def sandboxed(self):
        code = ("import ctypes, time\n"
                "libc = ctypes.CDLL(None)\n"
                "libc.prctl(38, 1, 0, 0, 0)\n"
                "program = (ctypes.c_uint64 * 1)(0x7fff000000000006)\n"
                "class Filter(ctypes.Structure):\n"
                "    _fields_ = [('length', ctypes.c_ushort), ('code', ctypes.c_void_p)]\n"
                "rule = Filter(1, ctypes.addressof(program))\n"
                "assert libc.prctl(22, 2, ctypes.byref(rule), 0, 0) == 0\n"
                "time.sleep(30)\n")
        with Target(["/usr/bin/python3", "-c", code]) as target:
            wait_until(lambda: target.process.poll() is not None or status_of(target.pid).get("Seccomp") == "2",
                       "it does not begin")
            expect(target.process.poll() is None, "the sandbox could not be made")
            self._from_outside(target.pid, "seccomp sandbox")

    def dispatching(self):
        code = ("import ctypes, time\n"
                "libc = ctypes.CDLL(None)\n"
                "selector = ctypes.c_char(0)\n"
                "on = libc.prctl(59, 1, 4096, 4096, ctypes.byref(selector))\n"
                "print(on, flush=True)\n"
                "time.sleep(30)\n")
        with Target(["/usr/bin/python3", "-c", code]) as target:
            if target.process.stdout.readline().strip() != b"0":
                raise Skipped("no system call user dispatch here")
            self._refused(target.pid, "its own system calls")

    def other_user(self):
        if os.geteuid():
            raise Skipped("needs root, to become another user")

        def become_nobody():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)

        with Target(self.program("truth", "random", "1", "asked")) as target:
            copy = self.scratch.path("kymo")
            shutil.copy(self.kymo.path, copy)
            line = [copy, "attach", "-p", str(target.pid), "-d", "0.1", "-o",
                    self.scratch.path("nowhere")]
            self._refused(target.pid, "belongs to user 0", line=line, preexec=become_nobody)

    def other_file_system(self):
        """In a mount namespace that has another /tmp: the results cannot be reached."""
        if os.geteuid():
            raise Skipped("needs root, to mount")
        with Target(["unshare", "-m", "sh", "-c",
                     "mount -t tmpfs none /tmp && exec sleep 30"]) as target:
            wait_until(lambda: status_of(target.pid)["Name"] == "sleep", "it does not begin")
            self._from_outside(target.pid, "cannot see")


GROUPS = {"programs": Programs, "waits": Waits, "life": Life, "storm": Storm,
          "refusals": Refusals}
LONG = {"storm-long": StormLong}


def main():
    if sys.argv[1] == "--list":
        print("\n".join(LONG if sys.argv[2:] == ["long"] else GROUPS))
        return
    kymo, tap = Kymo(sys.argv[1]), Tap()
    group = {**GROUPS, **LONG}[sys.argv[3]]
    only = sys.argv[4:]
    with Scratch() as scratch:
        tests = group(kymo, os.path.abspath(sys.argv[2]), scratch)
        for name in vars(group):
            if not name.startswith("_") and (not only or name in only):
                tap.point(name.replace("_", " "), getattr(tests, name))
    tap.finish()


if __name__ == "__main__":
    main()
