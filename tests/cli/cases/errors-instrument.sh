# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Mistakes with kymo instrument: one line each, status 125 (127 for what is not there), and nothing is run or left.
try() {
	kymo instrument "$@"
	echo "$? : kymo instrument $*"
}
printf '#! /usr/bin/env sh\ntouch ran\n' >script
printf 'int main;' >text
chmod +x script text
head -c 18 /bin/true >short
printf '\003' >arm
{ head -c 18 /bin/true; printf '\267\000'; tail -c +21 /bin/true; } >arm
chmod +x short arm
try
try --
try -I 'a(b' -- touch ran
try --function-exclude 'x{2,1}' -- touch ran
try -MR 'ok[z' -- touch ran
try -MX lib -- touch ran
try -M
try -M sample -- touch ran
try -i few -- touch ran
try -i -1 -- touch ran
try --linkage globl -- touch ran
try --visibility hiden -- touch ran
try --coverage blocks -- touch ran
try --label arguments -- touch ran
try --demote 1000 -- touch ran
try --demote 1000,fast -- touch ran
try --demote 1,2,3 -- touch ran
try --load-instr missing.json -- touch ran
try --print-excluded function -- touch ran
try -p 1 -o copy
try -p 1 -- touch ran
try -p 1 --simulate
try -o copy
try -o copy -- touch ran
try -o copy -- ./script
try -o copy -- ./text
try -o copy -- ./short
try -o copy -- ./arm
try -o copy -- ./missing
try -o copy -- missing
try --simulate -- ./script
try --simulate -- /
KYMO_REGEX_EXCLUDE='a\' kymo instrument -- touch ran
echo "$?"
echo 'regex_include = "(x"' >kymo.conf
try -c kymo.conf -- touch ran
ls
echo "==== lines that do not fit"
kymo instrument --help | awk 'length > 100 || NR > 24'
kymo instrument --help=all | awk 'length > 100'
