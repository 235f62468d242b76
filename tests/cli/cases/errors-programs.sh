# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# Programs that cannot be executed: 127 not found, 126 not executable, with the reason.
kymo sample -- no-such-program
echo "$?"
kymo sample -- ./no-such-program
echo "$?"
echo text >file
kymo sample -- ./file
echo "$?"
kymo sample -- .
echo "$?"
kymo sample -- ''
echo "$?"
printf '#!/no/such/interpreter\n' >script
chmod +x script
kymo sample -- ./script
echo "$?"
[ -z "$(ls -d kymo-* 2>/dev/null)" ] && echo "no results are made"
