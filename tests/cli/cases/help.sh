# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Pages fit a screen, and every topic answers.
kymo
for command in sample instrument causal report ctl avail help; do
	echo "==== $command"
	kymo $command --help
done
echo "==== lines that do not fit"
kymo | awk 'length > 100'
kymo sample --help | awk 'length > 100 || NR > 24'
for topic in settings sampling causal windows regions wrappers process output memory general config keys exit all; do
	kymo help $topic >page || echo "$topic fails"
	[ -s page ] || echo "$topic is empty"
	awk -v topic=$topic 'length > 100 {print topic ": " $0}' page
done
kymo help windows
kymo --help=keys
kymo --version
kymo help smaple
echo "status $?"
kymo help settngs
