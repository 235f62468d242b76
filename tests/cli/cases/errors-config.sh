# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Configuration files: errors have file, line and column.
try() {
	printf "$1" >file.conf
	kymo avail -c file.conf '^sampling_freq$'
	echo "$?"
}
try 'sampling_freq = 250 # fine\n'
try '\n\nsampling_frek = 250\n'
try 'sampling_freq 250\n'
try 'sampling_freq = many\n'
try 'output_path = "open\n'
try '= 5\n'
try '{"SAMPLING_FREQ": 300}\n'
try '{"SAMPLING_FREQ": }\n'
try '{\n "SAMPLING_FREK": 3}\n'
try '{"SAMPLING_FREQ": {}}\n'
try 'TRACE = on\0off\n'
try 'strict_config = off\nno_such_setting = 1\nsampling_freq = 33\n'
kymo avail -c . trace
echo "$?"
printf 'sampling_freq = 1\n' >a.conf
printf 'sampling_freq = 2\n' >b.conf
kymo avail -c a.conf:b.conf '^sampling_freq$'
KYMO_CONFIG_FILE=b.conf kymo avail '^sampling_freq$'
mkdir -p ../config/kymo
printf 'sampling_freq = 3\n' >../config/kymo/config
kymo avail '^sampling_freq$'
