# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Code of many kinds, some of which runs."""
import asyncio
import contextlib
import sys
import threading


def decorate(function):
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


@decorate
def called(number):
    if number > 3:
        return 1
    else:
        rest = 2

    while rest:
        rest -= 1
        if rest == 5:
            break
    else:
        rest = 7
    return rest


def never(first,
          second=None):
    values = [item for item in range(3)]

    def inside():
        return values
    return inside


class Some:
    attribute = 3

    @staticmethod
    def raises():
        try:
            raise ValueError
        except KeyError:
            return 1
        except ValueError as error:
            del error
        finally:
            value = 4
        return value

    @property
    def never_read(self):
        return self.attribute


def generate():
    try:
        yield 1
        yield 2
        yield 3
    finally:
        yield_ended = True
        del yield_ended


@contextlib.contextmanager
def manage():
    yield (lambda text:
           text.upper())


async def wait(number):
    await asyncio.sleep(0)
    async for value in numbers(number):
        if value == 2:
            return value
    return None


async def numbers(count):
    for number in range(count):
        yield number


def in_thread(results):
    results.append(1 if len(results) == 0 else
                   2)


called(5), called(1)
Some.raises()
for one in generate():
    if one == 2:
        break
with manage() as upper:
    upper("text")
asyncio.run(wait(5))
found = []
thread = threading.Thread(target=in_thread, args=(found,))
thread.start()
thread.join()
exec("def made():\n    return 1\nmade()")
if "more" in sys.argv:
    never(1)
print("done", found)
