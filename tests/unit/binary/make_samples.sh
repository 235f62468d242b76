#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
#
# Builds the sample programs that the tests look at, in every form that debug information comes in.
# Usage: make_samples.sh SOURCE-DIRECTORY OUTPUT-DIRECTORY STAMP
set -eu
source=$(cd "$1" && pwd)
mkdir -p "$2"
stamp=$(pwd)/$3
cd "$2"
rm -rf ./*

compile() { # OUTPUT OPTION…
	output=$1
	shift
	gcc -O1 -no-pie -Wl,-z,noexecstack,--build-id "$@" -o "$output" "$source/sample.c" 2>messages || {
		cat messages >&2
		exit 1
	}
}

compile sample -g -gdwarf-5
compile dwarf4 -g -gdwarf-4
compile gabi -g -gdwarf-4 -gz=zlib
compile zdebug -g -gdwarf-4 -gz=zlib-gnu
compile split -g -gdwarf-5 -gsplit-dwarf

# Stripped, with its debug information in a file of its own: alone, beside it, by build-id.
objcopy --only-keep-debug sample sample.debug
mkdir -p alone beside by-id
objcopy --strip-all --add-gnu-debuglink=sample.debug sample alone/program
cp alone/program beside/program
cp sample.debug beside/sample.debug
id=$(readelf -n sample | sed -n 's/.*Build ID: //p')
rest=${id#??}
mkdir -p "by-id/.build-id/${id%"$rest"}"
cp sample.debug "by-id/.build-id/${id%"$rest"}/$rest.debug"
mkdir -p "fetched/$id"
cp sample.debug "fetched/$id/debuginfo"

# Without a build-id the checksum in the link decides.
gcc -O1 -g -no-pie -Wl,-z,noexecstack,--build-id=none -o no-id "$source/sample.c"
objcopy --only-keep-debug no-id no-id.debug
mkdir -p crc-good crc-bad
objcopy --strip-all --add-gnu-debuglink=no-id.debug no-id crc-good/program
cp crc-good/program crc-bad/program
cp no-id.debug crc-good/no-id.debug
{ cat no-id.debug; echo changed; } >crc-bad/no-id.debug

# A mini symbol table as Fedora ships it.
if command -v xz >/dev/null; then
	objcopy --strip-all sample mini
	strip -g -o mini.symbols sample
	xz -f mini.symbols
	objcopy --add-section .gnu_debugdata=mini.symbols.xz mini
fi

if command -v g++ >/dev/null; then
	g++ -O2 -g -o cplusplus "$source/sample.cc" -pthread
fi
rm -f messages
touch "$stamp"
