# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# The program gets settings through its environment, and keeps what it had.
kymo sample -q --freq 250 -- sh -c 'echo "$KYMO_SAMPLING_FREQ"; basename "$LD_PRELOAD"; basename "$KYMO_SPOOL_DIRECTORY"'
ROCPROFSYS_SAMPLING_FREQ=77 kymo sample -q --freq 1000 -- sh -c 'echo "$KYMO_SAMPLING_FREQ"'
ROCPROFSYS_SAMPLING_FREQ=77 kymo sample -q -- sh -c 'echo "$KYMO_SAMPLING_FREQ"'
KYMO_SAMPLING_FREQ=5 kymo sample -q --freq 6 -- env | grep -c '^KYMO_SAMPLING_FREQ='
kymo sample -q -- sh -c 'env | grep ^KYMO_' | grep -v -c SPOOL_DIRECTORY
kymo sample -q -- kymo sample -q -- sh -c 'echo nested; exit 3'
echo "$?"
kymo sample -q -- sh -c 'ls -l /proc/self/fd | wc -l' >fds
sh -c 'ls -l /proc/self/fd | wc -l' >bare
cmp fds bare && echo "no descriptor leaks"
kymo sample -q -- sh -c 'ls /proc/self/fd | wc -l; exit 6' <&- 2>&-
echo "$?"
sh -c 'ls /proc/self/fd | wc -l' <&- 2>&-
