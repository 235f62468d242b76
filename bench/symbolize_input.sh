#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
#
# Makes a program with 35 MB of .debug_info (65 MB in all) for bench/symbolize: one object with
# templates, copied under other symbol names and linked as often as needed. It cannot run; it need
# not. Usage: symbolize_input.sh SOURCE-DIRECTORY OUTPUT
set -eu
source=$1/symbolize_heavy.cc
output=$2
copies=14
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
g++ -std=c++17 -g -O2 -c "$source" -o "$work/one.o"
set --
i=0
while [ $i -lt $copies ]; do
	objcopy --prefix-symbols="copy${i}_" "$work/one.o" "$work/$i.o"
	set -- "$@" "$work/$i.o" "-Wl,--defsym=copy${i}___dso_handle=0"
	i=$((i + 1))
done
g++ -no-pie -nostdlib -static -Wl,--unresolved-symbols=ignore-all -Wl,-e,0 -Wl,--build-id \
	-o "$output.new" "$@"
mv "$output.new" "$output"
