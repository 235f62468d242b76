#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""A program that profiles and traces itself, recurses deeply and has interpreters of its own: it prints what it sees."""
import cProfile
import sys
import threading


def work(n):
    return n


class Recorder:
    def __init__(self):
        self.events = 0

    def __call__(self, frame, event, argument):
        self.events += 1
        return self


def deep(n):
    return n if n == 0 else deep(n - 1) + 1


def recurse(n):
    try:
        return deep(n)
    except RecursionError as error:
        return str(error)


def profile_itself():
    recorder = Recorder()
    sys.setprofile(recorder)
    for i in range(10):
        work(i)
    print(sys.getprofile() is recorder)
    sys.setprofile(None)
    print("profile", recorder.events, sys.getprofile())
    recorder = Recorder()
    sys.settrace(recorder)
    for i in range(10):
        work(i)
    sys.settrace(None)
    print("trace", recorder.events)
    profile = cProfile.Profile()
    profile.runcall(lambda: [work(i) for i in range(10)])
    profile.create_stats()
    print(sorted((where[2], counts[1]) for where, counts in profile.stats.items()))


def recurse_deeply():
    print(sys.getrecursionlimit(), recurse(2000))
    sys.setrecursionlimit(60000)
    print(recurse(900))
    if sys.version_info >= (3, 11):  # which needs no C stack for it
        print(recurse(50000))
    threading.stack_size(64 * 1024 * 1024)
    thread = threading.Thread(target=lambda: print(recurse(30000)))
    thread.start()
    thread.join()


def use_interpreter():
    try:
        import _xxsubinterpreters as interpreters
    except ImportError:
        return
    number = interpreters.create()
    interpreters.run_string(number, "def inside(): pass\nfor i in range(33): inside()\n")
    interpreters.destroy(number)


profile_itself()
recurse_deeply()
use_interpreter()
