# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Wrong values are errors, unknown variables a warning, or an error under --strict, wherever that is
# said; other tools' variables are not ours to judge; empty ones count as unset.
KYMO_SAMPLING_FREK=5 KYMO_SITE=x kymo sample -o results -- sh -c 'echo "$KYMO_SITE"; exit 3' 2>&1 | grep -e warning -e '^x' | LC_ALL=C sort
KYMO_SAMPLING_FREK=5 kymo sample --strict -- touch ran
echo "$?"
KYMO_STRICT=on KYMO_SAMPLING_FREK=5 kymo sample -- touch ran
echo "$?"
echo 'STRICT = on' >strict.conf
KYMO_SAMPLING_FREK=5 kymo sample --config strict.conf -- touch ran
echo "$?"
KYMO_SAMPLING_FREK=5 kymo avail '^sampling_freq$'
echo "$?"
KYMO_SAMPLING_FREQ=many kymo sample -- touch ran
echo "$?"
KYMO_TRACE=on,off kymo -- touch ran
echo "$?"
KYMO_CONFIG_FILE=missing.conf kymo avail sampling_freq
echo "$?"
KYMO_SAMPLING_FREQ= kymo avail '^sampling_freq$'
ROCPROFSYS_SAMPLING_FREQ=77 OMNITRACE_SAMPLING_FREQ=78 ROCPROFSYS_NO_SUCH=1 kymo avail '^sampling_freq$'
KYMO_SAMPLING_FREQ=99 ROCPROFSYS_SAMPLING_FREQ=77 kymo avail '^sampling_freq$'
ROCPROFSYS_SAMPLING_FREQ=-1 kymo avail '^sampling_freq$'
[ ! -e ran ] && echo "nothing was run"
