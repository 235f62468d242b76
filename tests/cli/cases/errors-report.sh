# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Results that are not there, or not readable.
kymo report
echo "$?"
kymo report missing
echo "$?"
echo text >file
kymo report file
echo "$?"
mkdir empty
kymo report empty
echo "$?"
mkdir -p bare/spool
kymo report bare
echo "$?"
kymo annotate --measure time x
kymo annotate --context 65 x
kymo annotate --format txt x
kymo annotate a b c
kymo annotate x
echo "$?"
kymo top --interval 0 -- /bin/true
kymo top -p 1 -- /bin/true
kymo top -- ./nothing
echo "$?"
