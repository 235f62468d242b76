#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Calls in threads, children, programs and interpreters of a program, whose numbers are known."""
import _thread
import importlib
import os
import subprocess
import sys
import threading
import time


def leaf(n):
    return n


def work(n):
    return leaf(n)


def again():
    pass


def thread():
    for i in range(1000):
        work(i)


def child():
    for i in range(500):
        work(i)


def main():
    threads = [threading.Thread(target=thread) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    done = []
    _thread.start_new_thread(lambda: (thread(), done.append(1)), ())
    while not done:
        time.sleep(0.01)
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(3)
    print(os.waitpid(pid, 0)[1])
    del sys.modules["_thread"]  # its initialisation is what kymo hooks: calls count once nevertheless
    importlib.import_module("_thread")
    for i in range(5):
        again()
    text = "def executed(): pass\nfor i in range(77): executed()"
    print(subprocess.run([sys.executable, "-c", text], check=False).returncode)
    sys.stdout.flush()
    os.execv(sys.executable, [sys.executable, "-c", "def replaced(): pass\nfor i in range(88): replaced()"])


main()
