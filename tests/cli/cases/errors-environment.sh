# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Wrong variables are errors; other tools' variables are not ours to judge; empty ones count as unset.
KYMO_SAMPLING_FREK=5 kymo sample -- touch ran
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
