# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Answers that cannot be written.
try() {
	kymo "$@" >/dev/full
	[ "$?" = 125 ] || echo "status $? of $*"
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
