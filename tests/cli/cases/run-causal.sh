# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# kymo causal leaves the program what it is, says why there is nothing to say, and knows its results again.
cat >app.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv) { printf("%s\n", argc > 1 ? argv[1] : "-"); return argc > 2 ? abort(), 1 : argc; }
END
cc -O1 -g -o app app.c
kymo causal -o out --time-output=off -- ./app 'x  y' 2>message
echo "status $?"
sed -E 's/warning: (no|the program spent no time) .*/warning: no .../' message
ls out out/causal
kymo causal -q -o out2 -- ./app x y
echo "status $?"
kymo causal -q -o out3 --end-to-end -n 2 -s 0,50 -- ./app
echo "status $?"
grep -c '"window"' out3/latest/causal/windows.ndjson
printf 'input\n' >input
kymo causal -q -o out4 -e -n 2 -s 50 -- cat <input
kymo causal --mode line -o out5 -- sh -c 'exit 3' 2>&1 | sed "s/'[^']*sh'/SHELL/g"
kymo report out | head -3
kymo causal --use-temporary-files=off -q -o out6 --time-output=off -- ./app z
ls out6 out6/causal
kymo-causal --no-enabled -- ./app plain
