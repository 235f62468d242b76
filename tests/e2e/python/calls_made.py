# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
"""Code that is made, runs once and goes, so that thousands of code objects have few addresses; prints how many."""
COUNT = 2000


def note():
    pass


for i in range(COUNT):
    code = compile(f"def made{i}():\n    note()\nmade{i}()\n", f"made{i}.py", "exec")
    exec(code, {"note": note})
    del code
print(COUNT)
