#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""kymo under a shell's job control, on a terminal of its own: this script is the shell.

    job_control.py KYMO

^C reaches the program once, kymo writes the results and dies of SIGINT as the program did; ^Z stops both and a
continued job goes on; a program that stops itself takes kymo with it.
"""
import os
import pathlib
import pty
import select
import signal
import sys
import tempfile
import time

SECONDS = 30


class Job:
    """kymo in a process group of its own in the foreground of a new terminal."""

    def __init__(self, kymo, *program):
        self.shell, self.terminal = pty.fork()
        if self.shell == 0:
            self.be_the_shell([kymo, "sample", "-q", "-o", "results", "--", *program])

    @staticmethod
    def be_the_shell(command):
        """Starts the job, prints what happens to it, continues it whenever it stops."""
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # this may run in the background of a shell
            os.execv(command[0], command)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.write(1, b"<stopped>")
                time.sleep(0.2)
                os.killpg(job, signal.SIGCONT)
            elif os.WIFSIGNALED(status):
                os.write(1, b"<signal %d>" % os.WTERMSIG(status))
                os._exit(0)
            else:
                os.write(1, b"<status %d>" % os.WEXITSTATUS(status))
                os._exit(0)

    def read_until(self, text):
        output, end = b"", time.monotonic() + SECONDS
        while text not in output and time.monotonic() < end:
            if select.select([self.terminal], [], [], 0.1)[0]:
                try:
                    output += os.read(self.terminal, 4096)
                except OSError:
                    break
        return text in output, output

    def type(self, keys):
        os.write(self.terminal, keys)

    def end(self):
        os.close(self.terminal)
        os.kill(self.shell, signal.SIGKILL)
        os.waitpid(self.shell, 0)


def interrupt(kymo):
    job = Job(kymo, "sh", "-c", "echo ready; while :; do :; done")
    ready, _ = job.read_until(b"ready")
    job.type(b"\x03")
    died, output = job.read_until(b"<signal 2>")
    job.end()
    return ready and died and pathlib.Path("results/latest/metadata.json").exists(), output


def stop_and_continue(kymo):
    job = Job(kymo, "sh", "-c", "echo ready; read line; echo \"got $line\"; exit 5")
    ready, _ = job.read_until(b"ready")
    job.type(b"\x1a")
    stopped, _ = job.read_until(b"<stopped>")
    time.sleep(0.5)
    job.type(b"word\n")
    ended, output = job.read_until(b"<status 5>")
    job.end()
    return ready and stopped and ended and b"got word" in output, output


def stops_itself(kymo):
    job = Job(kymo, "sh", "-c", "kill -STOP $$; exit 6")
    stopped, _ = job.read_until(b"<stopped>")
    ended, output = job.read_until(b"<status 6>")
    job.end()
    return stopped and ended, output


def main():
    kymo = str(pathlib.Path(sys.argv[1]).resolve())
    tests = [interrupt, stop_and_continue, stops_itself]
    failed = 0
    print(f"1..{len(tests)}")
    for number, test in enumerate(tests, 1):
        with tempfile.TemporaryDirectory(prefix="kymo-job-") as scratch:
            os.chdir(scratch)
            good, output = test(kymo)
            os.chdir("/")
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {test.__name__}")
        if not good:
            print(f"# the terminal ended with {output[-300:]!r}")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
