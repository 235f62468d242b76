# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Where results go.
kymo sample -q -- true
ls
ls kymo-true-output | sed 's/^[^l].*/DATE/'
ls kymo-true-output/latest | grep -v '^spool$'
kymo sample -q -o 'a-%n-%q{WHO}' --time-output=off --format text -- true
ls a-true-
kymo sample -q -o 'a-%n-%q{WHO}' --time-output=off --format text -- true
ls -d a-*
kymo sample -q -o 'a-%n-%q{WHO}' --time-output=off --force --format json -- true
ls a-true-
kymo sample -q -o prefixed --time-output=off --output-prefix 'x/%n-' --format text -- true
ls prefixed/x
kymo sample -q -o no-trace --time-output=off --no-trace -- true
ls no-trace | grep -c pftrace
kymo sample -q -o memory --time-output=off --use-temporary-files=off --format text -- \
	sh -c 'dirname "$KYMO_SPOOL_DIRECTORY"' >where
ls memory
grep -q '^/dev/shm/kymo-' where && [ ! -e "$(cat where)" ] && echo "nothing is left in memory"
