# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Names and contents of files do not reach the terminal as commands to it.
escape=$(printf '\033[31mred\233')
kymo sample --no-such-"$escape" -- true
kymo sample --config-file "$escape" -- true
printf 'SAMPLING_FREQ = %s\n' "$escape" > kymo.conf
kymo sample --config-file kymo.conf -- true
kymo sample --freq "1
kymo: error: not mine" -- true
printf 'A\303\251: { "a\\x1b[2Jb\\nc": 1 }\nB: 1\n' > "$escape.yaml"
kymo counters check "$escape.yaml"
printf 'pmc: A\njunk %s\n' "$escape" > "$escape.txt"
kymo run -i "$escape.txt" -- true
printf 'jobs: [ { "pm\\e[2Jc": [A] } ]\n' > jobs.yaml
kymo run -i jobs.yaml -- true
KYMO_OUTPUT_PREFIX="$escape" kymo avail OUTPUT_PREFIX
true
