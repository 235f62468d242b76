#!/bin/sh
# SPDX-License-Identifier: MIT
# SPDX-FileCopyrightText: the kymo authors
#
# Compiles sample_blocks.c as programs and as libraries, by gcc and clang, at every level.
# Usage: make_block_samples.sh SOURCE-DIRECTORY OUTPUT-DIRECTORY STAMP
set -eu
source=$(cd "$1" && pwd)
mkdir -p "$2"
stamp=$(pwd)/$3
cd "$2"
rm -rf ./*
for compiler in gcc clang; do
	command -v $compiler >/dev/null 2>&1 || continue
	for level in O0 O1 O2 O3 Os; do
		$compiler -$level -fno-unroll-loops -fPIC -shared -nostdlib -o $compiler-$level.so "$source/sample_blocks.c"
		$compiler -$level -fno-unroll-loops -fno-pic -no-pie -nostdlib -Wl,-e,cases_0_loops_0 \
			-o $compiler-$level "$source/sample_blocks.c"
		$compiler -$level -fno-unroll-loops -fcf-protection=full -fPIC -shared -nostdlib \
			-o $compiler-$level-cet.so "$source/sample_blocks.c"
	done
done
touch "$stamp"
