# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""What `kymo python -b` records: functions with @profile, and sections, with all that they call."""
import asyncio
import threading


def leaf(number):
    return 2 * number


@profile  # noqa: F821 pylint: disable=undefined-variable
def decorated(count):
    """Documented."""
    return [leaf(number) for number in range(count)]


def plain(count):
    for number in range(count):
        leaf(number)


@profile  # noqa: F821 pylint: disable=undefined-variable
async def coroutine():
    leaf(1)
    await asyncio.sleep(0)
    leaf(2)


async def beside():
    plain(100)
    await asyncio.sleep(0)
    plain(100)


@profile  # noqa: F821 pylint: disable=undefined-variable
def generator():
    received = yield leaf(1)
    leaf(2)
    try:
        yield received
    except KeyError:
        leaf(3)
    return "end"


def use_generator():
    values = generator()
    seen = [next(values)]
    plain(100)
    seen.append(values.send("sent"))
    plain(100)
    try:
        values.throw(KeyError())
    except StopIteration as end:
        seen.append(end.value)
    return seen


@profile  # noqa: F821 pylint: disable=undefined-variable
def fail():
    raise ValueError("failed")


async def both():
    await asyncio.gather(coroutine(), beside())


plain(100)
decorated(10)
with profile:  # noqa: F821 pylint: disable=undefined-variable
    plain(5)
    with noprofile:  # noqa: F821 pylint: disable=undefined-variable
        plain(100)
    plain(5)
plain(100)
asyncio.run(both())
try:
    fail()
except ValueError as error:
    plain(100)
    print(error, decorated.__name__, decorated.__doc__)
print(use_generator())
thread = threading.Thread(target=plain, args=(100,))
with profile:  # noqa: F821 pylint: disable=undefined-variable
    thread.start()
    thread.join()
