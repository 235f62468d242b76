# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Manual pages and completion are well-formed.
for page in kymo.1 kymo-sample.1 kymo-causal.1 kymo-report.1 kymo-ctl.1 kymo-avail.1 kymo-settings.7; do
	kymo help --generate $page >$page || echo "$page: no"
	if command -v man >/dev/null; then
		MANWIDTH=100 man --warnings=all -l $page 2>&1 >/dev/null | grep -v 'cannot adjust line'
	fi
done
kymo help --generate completion-bash >kymo.bash
bash -n kymo.bash && echo "bash completion parses"
bash -c '. ./kymo.bash; COMP_WORDS=(kymo sample --sampling-so); COMP_CWORD=2; _kymo; echo "${COMPREPLY[@]}"
COMP_WORDS=(kymo sample --sampling-source ""); COMP_CWORD=3; _kymo; echo "${COMPREPLY[@]}"
COMP_WORDS=(kymo ctl 1 st); COMP_CWORD=3; _kymo; echo "${COMPREPLY[@]}"
COMP_WORDS=(kymo re); COMP_CWORD=1; _kymo; echo "${COMPREPLY[@]}"'
kymo help --generate completion-zsh | head -2
kymo help --generate completion-fish | head -3
kymo help --generate nothing
