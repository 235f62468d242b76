/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that carry their arguments and results in every way there is.
 */
#ifndef KYMO_TESTS_WRAPPED_LIBRARY_H
#define KYMO_TESTS_WRAPPED_LIBRARY_H

#include <setjmp.h>

struct library_big {
	long word[6];
};

typedef long library_wide __attribute__((vector_size(64)));

extern "C" {
double library_many(int a, long b, const char *c, double d, float e, unsigned char f, short g,
		    long h, long i, double j, double k, double l, double m, double n, double o,
		    double p, double q);
int library_sum(int count, ...);
void library_throw(int value);
void library_jump(jmp_buf target);
long double library_extended(long double a, int b, long double c);
struct library_big library_structure(struct library_big big, int x);
float library_single(float value);
int library_depth(int depth);
__attribute__((target("avx512f"))) library_wide library_vectors(library_wide a, library_wide b);
}

#endif
