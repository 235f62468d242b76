# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Reports on the last run, and of what is left of a damaged one.
kymo sample -q -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'
kymo report >summary && [ -s summary ] && echo "a summary"
kymo report --format json | python3 -c 'import json, sys; print(json.load(sys.stdin)["schema"])'
kymo report --format profile.txt kymo-sh-output >profile && [ -s profile ] && echo "a profile"
kymo report --format text,json
echo "$?"
kymo report --format text,json -o two && ls two
kymo report --format text -o two
echo "$?"
kymo report --format text -o one.txt && kymo report --format text -o one.txt
echo "$?"
kymo report --format text -o one.txt --force && echo forced
ln -s one.txt link && kymo report --format text -o link --force && [ -L link ] && echo "through a link"
mkfifo pipe && cat pipe >piped &
until [ -p pipe ]; do :; done
kymo report --format text -o pipe --force && wait && [ -p pipe ] && [ -s piped ] && echo "into a pipe"
kymo report --pid 1
kymo report --tid 1
echo "$?"
kymo sample -q --use-temporary-files=off -o memory --time-output=off -- true
kymo report memory
echo "$?"
for spool in kymo-sh-output/latest/spool/*; do
	truncate -s -100 "$spool"
done
kymo report -q >/dev/null && echo "a cut file is read"
for spool in kymo-sh-output/latest/spool/*; do
	truncate -s 8192 "$spool"
done
kymo report 2>/dev/null | grep -o "samples are lost: the recording was cut short"
for spool in kymo-sh-output/latest/spool/*; do
	echo garbage >"$spool"
done
kymo report 2>message
echo "$?"
wc -l <message
