#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
#
# Assembles sample_functions.S as a library, and the same without symbols; and programs of each
# kind, for where their arenas lie.
# Usage: make_function_samples.sh SOURCE-DIRECTORY OUTPUT-DIRECTORY STAMP
set -eu
source=$(cd "$1" && pwd)
mkdir -p "$2"
stamp=$(pwd)/$3
cd "$2"
rm -rf ./*
gcc -shared -Wl,-soname,functions.so -Wl,--build-id=sha1 -nostdlib -Wl,-Bsymbolic -o functions.so "$source/sample_functions.S"
strip -o stripped.so functions.so
gcc -shared -Wl,--build-id=none -nostdlib -Wl,-Bsymbolic -o nameless.so "$source/sample_functions.S"
echo 'int main(void) { return 0; }' > main.c
gcc -O2 -fPIE -pie -o pie main.c
gcc -O2 -fno-pic -no-pie -o fixed main.c
rm main.c
touch "$stamp"
