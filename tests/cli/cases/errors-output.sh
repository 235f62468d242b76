# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Answers that cannot be written.
# Whether the last write fails or an earlier one, whose reason is gone then, depends on the length of
# the answer.
try() {
	kymo "$@" >/dev/full 2>said
	[ "$?" = 125 ] || echo "status $? of $*"
	sed 's/: No space left on device$//' said >&2
}
[ -c /dev/full ] || exit 1
printf 'WRONG: 1\n' >wrong.yaml
try --version
try help
try sample --help
try help --generate kymo.1
try avail
try avail --json
try avail --counters
try avail --counters --json
try counters check wrong.yaml
try instrument --simulate --print-available functions -- /bin/true
# Nor where standard output is closed.
kymo --version >&-
[ "$?" = 125 ] || echo "status $? with standard output closed"
kymo avail --json >&-
[ "$?" = 125 ] || echo "status $? with standard output closed"
