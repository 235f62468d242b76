# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Listings of what regions are measured by and where they come from.
kymo avail components
kymo avail components fault
kymo avail categories
kymo avail wrappers
kymo avail --no-such
kymo avail wrappers --json | python3 -c '
import json, sys
wrappers = json.load(sys.stdin)["wrappers"]
print([w["setting"] for w in wrappers if w["on"]])'
kymo avail components --json | python3 -c '
import json, sys
components = json.load(sys.stdin)["components"]
print(len(components) == len({c["name"] for c in components}), components[0])'
kymo avail categories --json | python3 -c '
import json, sys
print([c["name"] for c in json.load(sys.stdin)["categories"]])'
# What counts here depends on the machine: names, not verdicts.
kymo avail counters --json | python3 -c '
import json, sys
counters = json.load(sys.stdin)["counters"]
print([c["name"] for c in counters if c["origin"] == "kernel"][:3])
print({c["origin"] for c in counters} <= {"kernel", "sysfs", "libpfm4"})'
kymo avail counters '^page-faults$' | awk 'NR < 4 {print $1}'
kymo avail presets
kymo avail --preset python -G -
kymo avail --preset light,gpu sampling_freq
kymo avail --preset serve presets
