# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Before a program in Python starts: setup code that is not recorded, and the builtins that mark what is.

kymo puts this directory in front of PYTHONPATH where one of the two was asked for (KYMO_PYTHON_SETUP,
KYMO_PYTHON_DECORATORS). The module `site` imports sitecustomize before the program's first line; the one of the
program, if it has one, takes its place here.
"""
import builtins
import ctypes
import functools
import os
import sys

_OFF, _ON, _EVERYWHERE = 0, 1, 2
try:
    _set_recording = ctypes.PyDLL(None).kymo_python_set_recording
except AttributeError:  # kymo is not in this process
    def _set_recording(_value):
        return _OFF


def _drive(recording, iterator):
    """Runs a generator or coroutine; what runs while it waits is not in its section."""
    step, value = iterator.send, None
    while True:
        before = _set_recording(recording)
        try:
            result = step(value)
        except StopIteration as end:
            return end.value
        finally:
            _set_recording(before)
        try:
            step, value = iterator.send, (yield result)
        except GeneratorExit:
            iterator.close()
            raise
        except BaseException as error:  # pylint: disable=broad-exception-caught
            step, value = iterator.throw, error


class _Awaitable:
    def __init__(self, recording, coroutine):
        self._recording, self._coroutine = recording, coroutine

    def __await__(self):
        return _drive(self._recording, self._coroutine.__await__())


class _Section:
    """`with profile:` and `@profile`, or those that leave out."""

    def __init__(self, recording):
        self._recording, self._before = recording, []

    def __enter__(self):
        self._before.append(_set_recording(_OFF))
        _set_recording(self._recording)
        return self

    def __exit__(self, *_error):
        _set_recording(self._before.pop())

    def __call__(self, function):
        recording, flags = self._recording, getattr(getattr(function, "__code__", None), "co_flags", 0)
        if flags & 0x80:  # a coroutine
            @functools.wraps(function)
            async def wrapper(*arguments, **named):
                return await _Awaitable(recording, function(*arguments, **named))
        elif flags & 0x20:  # a generator
            @functools.wraps(function)
            def wrapper(*arguments, **named):
                return (yield from _drive(recording, function(*arguments, **named)))
        else:
            @functools.wraps(function)
            def wrapper(*arguments, **named):
                before = _set_recording(recording)
                try:
                    return function(*arguments, **named)
                finally:
                    _set_recording(before)
        return wrapper


def _leave_search_path(keeps_environment):
    """The program's sys.path is what it would be; the environment is that of its children, too."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    if keeps_environment:
        return
    rest = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != here]
    if any(rest) or len(rest) > 1:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        os.environ.pop("PYTHONPATH", None)
    os.environ.pop("KYMO_PYTHON_SETUP", None)


def _run_setup(path):
    """As a script: with its directory in front of the search path. What fails ends the program before it begins."""
    directory = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, directory)
    try:
        with open(path, "rb") as stream:
            code = compile(stream.read(), path, "exec")
        exec(code, {"__name__": "__main__", "__file__": path, "__builtins__": builtins})  # pylint: disable=exec-used
    except SystemExit:
        raise
    except BaseException:  # pylint: disable=broad-exception-caught
        import traceback  # pylint: disable=import-outside-toplevel
        traceback.print_exc()
        sys.stderr.write(f"kymo: the setup file '{path}' failed, the program was not started\n")
        sys.stderr.flush()
        os._exit(1)
    finally:
        if directory in sys.path:
            sys.path.remove(directory)


def _import_next():
    """The sitecustomize that the program would have had."""
    own = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # pylint: disable=import-outside-toplevel,import-self,unused-import  # noqa: F401
    except ImportError:
        sys.modules["sitecustomize"] = own


def _start():
    decorates = os.environ.get("KYMO_PYTHON_DECORATORS", "").lower() in ("on", "1", "true", "yes")
    setup = os.environ.get("KYMO_PYTHON_SETUP", "")
    _leave_search_path(decorates)
    _import_next()
    if decorates:
        builtins.profile = builtins.trace = _Section(_ON)
        builtins.noprofile = builtins.notrace = _Section(_OFF)
    if setup:
        _run_setup(setup)
    if not decorates:
        _set_recording(_EVERYWHERE)


_start()
