# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# A process is stopped, started, flushed and looked at from outside.
answer() {
	kymo ctl "$@" 2>&1 | sed "s/$pid/PID/g; s/[0-9][0-9,.]* [KM]iB/SIZE/; s/[0-9][0-9,]* \(samples\|region\)/N \1/g"
	echo "status $?"
}
kymo sample -q -o result --time-output=off -- sh -c 'echo $$ >pid; sleep 0.3; exec sleep 60' &
until [ -s pid ]; do sleep 0.02; done
pid=$(cat pid)
until kymo ctl $pid >status 2>/dev/null && grep -q sleep status; do sleep 0.02; done
answer $pid
answer $pid stop
answer $pid status
answer $pid flush
answer $pid start
answer --tree $pid
kill -STOP $pid
# All of its threads; kymo answers for them from its helper process, which goes on.
until ! grep -h '^State' /proc/$pid/task/*/status | grep -qv stopped; do sleep 0.02; done
answer $pid stop
kill -CONT $pid
# It goes on before its threads have been told.
for _ in $(seq 100); do
	kymo ctl $pid status 2>/dev/null | grep -q 'not collecting' && break
	sleep 0.05
done
answer $pid status
kill $pid
wait
python3 -c '
import json
data = json.load(open("result/metadata.json"))
print([n["text"] for p in data["processes"] for n in p.get("notices", []) if n["kind"] == "window"])'
