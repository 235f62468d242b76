/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of all shapes for wrapped_functions.cc.
 */
#include "wrapped_library.h"

#include <stdarg.h>

double library_many(int a, long b, const char *c, double d, float e, unsigned char f, short g,
		    long h, long i, double j, double k, double l, double m, double n, double o,
		    double p, double q)
{
	return a + b + c[0] + d + e + f + g + h * 3 + i * 7 + j + k + l + m + n + o + p * 11 +
	       q * 13;
}

int library_sum(int count, ...)
{
	va_list list;
	int sum = 0;

	va_start(list, count);
	for (int i = 0; i < count; i++)
		sum += va_arg(list, int);
	va_end(list);
	return sum;
}

void library_throw(int value)
{
	if (value)
		throw value;
}

void library_jump(jmp_buf target)
{
	longjmp(target, 5);
}

long double library_extended(long double a, int b, long double c)
{
	return a * b - c;
}

struct library_big library_structure(struct library_big big, int x)
{
	big.word[0] += x;
	return big;
}

float library_single(float value)
{
	return value / 2;
}

int library_depth(int depth)
{
	return depth ? 1 + library_depth(depth - 1) : 0;
}

library_wide library_vectors(library_wide a, library_wide b)
{
	return a - b;
}
