# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Listings, configuration files made from them, and that these say the same when read again.
kymo avail formats | awk 'NR > 1 {print $1, $2}'
kymo avail '^use_'
kymo avail -G kymo.conf && head -12 kymo.conf
kymo avail -G kymo.conf
echo "$?"
kymo avail --force -G kymo.conf
ln -s kymo.conf link && kymo avail --force -G link && [ -L link ] && echo "through a link"
kymo avail --all -G kymo.json
for file in kymo.conf kymo.json; do
	kymo avail -c $file --json --all settings | python3 -c '
import json, sys
for setting in json.load(sys.stdin)["settings"]:
    if setting["value"] != setting["default"] and setting["name"] != "CONFIG_FILE":
        print(setting)
    if setting["origin"] == "config" and setting["name"] == "SAMPLING_FREQ":
        print(setting["source"])'
done
kymo avail --json | python3 -c '
import json, sys
all = json.load(sys.stdin)
print(all["schema"], sorted(all))
print(all["settings"][0])
print([s["name"] for s in all["sources"]])
print(all["events"][0]["name"])'
kymo avail --json --all settings | python3 -c '
import json, sys
names = [s["name"] for s in json.load(sys.stdin)["settings"]]
print("SPOOL_DIRECTORY" in names, "STRICT" in names, len(names) == len(set(names)))'
kymo-avail formats >/dev/null && echo "kymo-avail works"
kymo help --generate settings.md | cmp - "$SOURCE/docs/reference/settings.md" && echo "docs/reference/settings.md is current"
