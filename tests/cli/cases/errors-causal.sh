# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Mistakes with kymo causal: one line each, status 125 (127 for what is not there), and nothing is run or left.
try() {
	kymo causal "$@"
	echo "$? : kymo causal $*"
}
cat >app.c <<'END'
__attribute__((noinline)) void handle_request(void) { __asm__ volatile(""); }
int main(void) { handle_request(); return 0; }
END
cc -O1 -g -o app app.c
try
try --
try --mode lines -- touch ran
try --backend pref -- touch ran
try --speedups 10,250 -- touch ran
try --speedups 50-10 -- touch ran
try --speedups 10-50:0 -- touch ran
try --speedups 10:5 -- touch ran
try --speedups fast -- touch ran
try -s 0 10 x -- touch ran
try -s , -- touch ran
try --iterations 0 -- touch ran
try --until-ci 200 -- touch ran
try --until-ci 0.5 -- touch ran
try --seed x -- touch ran
try --causal-file a/b -- touch ran
try --causal-file ../../esc -- touch ran
try --causal-file .. -- touch ran
try --causal-file '' -- touch ran
try --delay soon -- touch ran
try --function-scope 'a(b' -- touch ran
try -F ok -F 'x{2,1}' -- touch ran
try -BE '[z' -- touch ran
try --progress handle_reqest -- ./app
try --progress 'latency:handle_request' -- ./app
try --progress 'app.c:999' -- ./app
try --progress 'app.c:0' -- ./app
try --progress ' ;' -- ./app
try --progress 'handle_request;nothing_like_it_at_all' -- ./app
try --progres handle_request -- ./app
try --freq 100 -- ./app
try -- ./missing
try -- missing
KYMO_CAUSAL_MODE=lin kymo causal -- ./app
echo "$?"
KYMO_CAUSAL_DELAI=3 kymo causal --strict -- ./app
echo "$?"
echo 'causal_fixed_speedup = "10,x"' >kymo.conf
try -c kymo.conf -- ./app
ls
echo "==== lines that do not fit"
kymo causal --help | awk 'length > 100 || NR > 24'
kymo causal --help=all | awk 'length > 100'
