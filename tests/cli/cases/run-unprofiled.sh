# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# What kymo cannot profile runs all the same, unless --strict.
touch file
kymo sample -o file/out -- sh -c 'echo ran; exit 7'
echo "$?"
kymo sample --strict -o file/out -- touch ran
echo "$?"
printf 'int main(void) { return 9; }\n' >static.c
if ! cc -static -o static static.c 2>/dev/null; then
	echo "no static libc here" >&2
fi
kymo instrument -- ./static
echo "$?"
kymo instrument --strict -- ./static
echo "$?"
[ ! -e ran ] && echo "strict runs nothing"
ls
# An environment that just fits, but not with kymo's variables.
python3 - <<'END'
import os, subprocess
def run(size, *options):
    pieces = [100000] * (size // 100000) + [size % 100000]
    padding = {f"V{i}": "x" * length for i, length in enumerate(pieces)}
    command = ["kymo", "sample", *options, "-o", "long", "--", "sh", "-c", "exit 8"]
    try:
        return subprocess.run(command, env={**os.environ, **padding}, capture_output=True, check=False)
    except OSError:
        return None
low, high = 0, os.sysconf("SC_ARG_MAX") * 4
while high - low > 1:
    middle = (low + high) // 2
    done = run(middle, "--enabled=off")
    low, high = (middle, high) if done and done.returncode == 8 else (low, middle)
done = run(low)
print(done.returncode, done.stderr.decode().strip())
END
ls
ls long
