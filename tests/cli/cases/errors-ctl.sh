# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Mistakes in what is asked of running processes.
try() {
	kymo "$@"
	[ "$?" = 125 ] || echo "status $? of $*"
}
try ctl
try ctl x
try ctl 0 status
try ctl -- -5 status
try ctl 99999999 stop
try ctl 1 2 3
sleep 60 &
kymo ctl $! stop 2>&1 | sed "s/$!/PID/g"
kymo ctl $! stpo 2>&1
kymo ctl --tree $! 2>&1 | sed "s/$!/PID/g"
kill $!
