# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# The program's output and exit status are its own.
kymo -q sample -- true
kymo sample -q -- sh -c 'echo out; echo err >&2; exit 42'
echo "$?"
kymo-sample -q -- sh -c 'exit 3'
echo "$?"
kymo sample -q sh -c 'exit 4'
echo "$?"
kymo sample -q -- sh -c 'kill -TERM $$'
echo "$?"
kymo sample -q -- sh -c 'kill -KILL $$'
echo "$?"
printf 'exit 5\n' >script
chmod +x script
kymo sample -q -- ./script
echo "$?"
kymo sample -q --enabled=off -o disabled -- sh -c 'exit 6'
echo "$?"
[ -e disabled ] || echo "disabled leaves nothing"
echo input | kymo sample -q -- cat
