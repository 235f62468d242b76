# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Every mistake on the command line: one line, the nearest name, status 125, and the program is not run.
try() {
	kymo "$@"
	echo "$? : kymo $*"
}
try smaple -- touch ran
try --freq 5 -- touch ran
try sample
try sample --
try sample --fred 5 -- touch ran
try sample --no-freq -- touch ran
try sample -z -- touch ran
try sample --freq
try sample --freq= -- touch ran
try sample --freq abc -- touch ran
try sample --freq 0 -- touch ran
try sample --freq -100 -- touch ran
try sample --freq 10001 -- touch ran
try sample --freq 1e99999 -- touch ran
try sample --realtime=fast -- touch ran
try sample --trace=maybe -- touch ran
try sample --format text,jsn -- touch ran
try sample --sampling-source pref -- touch ran
try sample --duration 1d -- touch ran
try sample --duration -1 -- touch ran
try sample --periods realtme:1:2 -- touch ran
try sample --periods 1:2:3:4 -- touch ran
try sample --tids 3-1 -- touch ran
try sample --spool-limit 5X -- touch ran
try sample --sampling-overflow-event page-fualts -- touch ran
try sample --sampling-overflow-event page-faults,cycles -- touch ran
try sample --sampling-counters cycles,instrutions -- touch ran
try sample --sampling-counters software/none=1/ -- touch ran
try sample --sampling-counters sched:no_such_event -- touch ran
try sample --components wall_clok -- touch ran
try sample --components wall_clock,page-fautls -- touch ran
try sample --components page-faults,minor-faults,major-faults,task-clock,cpu-clock,cycles,instructions,r1,r2,r3 -- touch ran
try sample --enable-categories mpi --disable-categories io -- touch ran
try sample --mpip-permit-list MPI_Send --mpip-reject-list "MPI_I*" -- touch ran
try sample --control-signal SIGUSR9 -- touch ran
try sample --control-signal SIGUSR1 --sampling-signal SIGUSR1 -- touch ran
try sample --sampling-max-depth 5000 -- touch ran
try sample --spool-directory=/tmp -- touch ran
try sample -o 'out-%z' -- touch ran
try sample -o '%env{X' -- touch ran
try sample -c missing.conf -- touch ran
try report --pid x
try report --from 5 --to 4
try report --measure gpu
try report --format txt
try report a b
try avail '('
try avail sampling_frek
try avail settings a b
[ ! -e ran ] && echo "nothing was run"
