# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
# What kymo cannot profile runs all the same, unless --strict.
touch file
kymo sample -o file/out -- sh -c 'echo ran; exit 7'
echo "$?"
kymo sample --strict -o file/out -- touch ran
echo "$?"
printf 'int main(void) { return 9; }\n' >static.c
if ! cc -static -o static static.c 2>/dev/null; then
	echo "no static libc here" >&2
fi
kymo sample -- ./static
echo "$?"
kymo sample --strict -- ./static
echo "$?"
[ ! -e ran ] && echo "strict runs nothing"
ls
