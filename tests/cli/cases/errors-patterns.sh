# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Expressions that would take all memory are refused before anything runs, wherever they are given.
large='((a{1,255}){1,255}){1,255}'
deep=$(printf '%0200d' 0 | tr 0 '(')
kymo run --counters A --kernel-include "$large" -- echo ran
kymo run --counters A --kernel-exclude 'a|((((b{99}){99}){99}){99})' -- echo ran
KYMO_KERNEL_INCLUDE="$large" kymo sample -- echo ran
printf 'jobs: [{pmc: [A], kernel_include_regex: "%s"}]\n' "$large" >jobs.yaml
kymo run -i jobs.yaml -- echo ran
kymo instrument --function-include "$large" -- echo ran
kymo causal --function-scope "$large" -- echo ran
kymo causal --source-scope "$deep" -- echo ran
kymo avail --advanced '(a*)(a*)\2b'
kymo avail "$large"
echo "status $?"
