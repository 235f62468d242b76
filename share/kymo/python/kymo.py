# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Regions, marks, counters and progress points of a Python program, for the kymo profiler.

    import kymo

    with kymo.region("load", files=12):
        ...

    @kymo.region
    def step():
        ...

Where the program does not run under kymo, or kymo is not installed, nothing is done. This is one file that needs
nothing but Python 3.6: it may be copied into a program. Reference: docs/reference/python-module.md.
"""
import contextlib
import ctypes
import functools
import inspect
import os
import threading

__all__ = ["annotate", "begin", "counter", "end", "flush", "is_active", "mark", "pop", "progress", "push", "range_pop",
           "range_push", "region", "start", "start_thread", "stop", "stop_thread", "stopped", "work"]

_LIBRARY = "libkymo-user.so.0"
_TEXT, _INT64, _UINT64, _DOUBLE = 1, 3, 4, 5  # enum kymo_type


class _Annotation(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_int), ("value", ctypes.c_void_p)]


def _library_paths():
    """Where the library may be: in the program itself (None), where the loader looks, beside the kymo that is in this
    process, beside this file."""
    yield None
    yield _LIBRARY
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            loaded = next((line.split(None, 5)[5].rstrip("\n") for line in maps if "/libkymo.so" in line), None)
    except OSError:
        loaded = None
    if loaded:
        above = os.path.dirname(os.path.dirname(loaded))
        yield os.path.join(above, _LIBRARY)
        yield os.path.join(above, "libkymo-user", _LIBRARY)
    prefix = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
    for folder in ("lib", "lib64", os.path.join("lib", "x86_64-linux-gnu")):
        yield os.path.join(prefix, folder, _LIBRARY)


def _open_library():
    """(the functions, the variable that says whether kymo listens); (None, None) without the library.

    Calls keep Python's lock (PyDLL): they are shorter than giving it away. Those that may wait do not.
    """
    for path in _library_paths():
        if path and path != _LIBRARY and not os.path.exists(path):
            continue
        try:
            library = ctypes.PyDLL(path)
            bound = ctypes.c_int.in_dll(library, "kymo_user_bound")
        except (OSError, ValueError):
            continue
        text, annotations = ctypes.c_char_p, ctypes.POINTER(_Annotation)
        library.kymo_push_category_region.argtypes = [text, text, annotations, ctypes.c_size_t]
        library.kymo_pop_category_region.argtypes = [text, text, annotations, ctypes.c_size_t]
        library.kymo_annotated_mark.argtypes = [text, annotations, ctypes.c_size_t]
        library.kymo_counter.argtypes = [text, ctypes.c_double]
        for name in ("kymo_progress", "kymo_begin", "kymo_end"):
            getattr(library, name).argtypes = [text]
        return library, bound
    return None, None


_functions, _bound = _open_library()
_waiting = ctypes.CDLL(_functions._name) if _functions else None
_names = {}  # kymo knows a name by its address first: each text has one
_NAMES_MAX = 65536
_open_ranges = threading.local()


def is_active():
    """Does kymo listen?"""
    return _bound is not None and _bound.value != 0


def _encode(text):
    known = _names.get(text)
    if known is None:
        known = str(text).encode("utf-8", "replace").replace(b"\0", b" ")
        if len(_names) < _NAMES_MAX:
            _names[text] = known
    return known


def _annotations(values):
    """An array of values, and what must live as long as it."""
    array, kept = (_Annotation * len(values))(), []
    for i, (name, value) in enumerate(values.items()):
        array[i].name = _encode(name)
        if isinstance(value, int) and -1 << 63 <= value < 1 << 63:
            array[i].type, number = _INT64, ctypes.c_int64(value)
        elif isinstance(value, int) and 0 <= value < 1 << 64:
            array[i].type, number = _UINT64, ctypes.c_uint64(value)
        elif isinstance(value, float):
            array[i].type, number = _DOUBLE, ctypes.c_double(value)
        else:
            array[i].type = _TEXT
            number = ctypes.create_string_buffer(str(value).encode("utf-8", "replace"))
        kept.append(number)
        array[i].value = ctypes.addressof(number)
    return array, kept


# ---- regions ----

def _call_of_region(function, name, category, values):
    if not is_active():
        return
    array, kept = _annotations(values) if values else (None, None)
    function(None if category is None else _encode(category), _encode(name), array, len(values))
    del kept


def push(name, category=None, **values):
    """A region of this thread begins. Returns nothing; a region that kymo does not see costs nothing either."""
    _call_of_region(_functions and _functions.kymo_push_category_region, name, category, values)


def pop(name, category=None, **values):
    """The innermost open region of that name ends; the values belong to its end."""
    _call_of_region(_functions and _functions.kymo_pop_category_region, name, category, values)


def _wrap_function(function, begin_call, end_call):
    """The function with two calls around each of its own: also around the whole of a coroutine or generator."""
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*arguments, **named):
            begin_call()
            try:
                return await function(*arguments, **named)
            finally:
                end_call()
    elif inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def wrapper(*arguments, **named):
            begin_call()
            try:
                return (yield from function(*arguments, **named))
            finally:
                end_call()
    else:
        @functools.wraps(function)
        def wrapper(*arguments, **named):
            begin_call()
            try:
                return function(*arguments, **named)
            finally:
                end_call()
    return wrapper


class _Span:
    """What begins and ends: `with` it, or decorate a function with it."""

    def __init__(self, begin_call, end_call):
        self._begin, self._end = begin_call, end_call

    def __enter__(self):
        self._begin()
        return self

    def __exit__(self, *_):
        self._end()
        return False

    def __call__(self, function):
        return _wrap_function(function, self._begin, self._end)


def region(name=None, category=None, **values):
    """with kymo.region("load"): ...      @kymo.region("load")      @kymo.region (named after the function)"""
    if callable(name):
        return region(name.__qualname__, category, **values)(name)
    if name is None:
        return lambda function: region(function.__qualname__, category, **values)(function)
    return _Span(lambda: push(name, category, **values), lambda: pop(name, category))


annotate = region  # as in the package nvtx


def range_push(name, category=None, **values):
    """A region that range_pop() ends, as in NVTX and torch.cuda.nvtx."""
    if not hasattr(_open_ranges, "names"):
        _open_ranges.names = []
    _open_ranges.names.append((name, category))
    push(name, category, **values)


def range_pop():
    """Ends what this thread's last range_push() began."""
    if getattr(_open_ranges, "names", None):
        pop(*_open_ranges.names.pop())


# ---- marks, counters, progress ----

def mark(name, **values):
    """An instant."""
    if not is_active():
        return
    array, kept = _annotations(values)
    _functions.kymo_annotated_mark(_encode(name), array, len(values))
    del kept


def counter(name, value):
    """A value over time: kymo.counter("queue", len(queue))."""
    if is_active():
        _functions.kymo_counter(_encode(name), float(value))


def progress(name):
    """A unit of work is done; kymo causal says what would make more of them."""
    if is_active():
        _functions.kymo_progress(_encode(name))


def begin(name):
    """A unit of work begins; it may end on another thread."""
    if is_active():
        _functions.kymo_begin(_encode(name))


def end(name):
    """A unit of work ends."""
    if is_active():
        _functions.kymo_end(_encode(name))


def work(name):
    """begin() and end() around a block or a function."""
    return _Span(lambda: begin(name), lambda: end(name))


# ---- what is recorded ----

def start():
    """Recording goes on; with --init-enabled=off it begins. Waits until it does, 100 ms at most."""
    if is_active():
        _waiting.kymo_start_trace()


def stop():
    """Nothing is recorded from here on, except the program's own regions."""
    if is_active():
        _waiting.kymo_stop_trace()


def start_thread():
    """The same for the calling thread."""
    if is_active():
        _waiting.kymo_start_thread_trace()


def stop_thread():
    """The same for the calling thread."""
    if is_active():
        _waiting.kymo_stop_thread_trace()


@contextlib.contextmanager
def stopped():
    """with kymo.stopped(): what is not to be recorded"""
    stop()
    try:
        yield
    finally:
        start()


def flush():
    """Makes what was recorded so far part of the results."""
    if is_active():
        _waiting.kymo_flush()
