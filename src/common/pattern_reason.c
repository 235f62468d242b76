/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Why an expression is refused, in words; see pattern.h.
 */
#include <stdio.h>

#include "common/pattern.h"

int pattern_compile(regex_t *ret, const char *text, int flags, char *why, size_t size)
{
	const char *excess;
	int error = pattern_compile_silently(ret, text, flags, &excess);

	if (error && why) {
		if (excess)
			snprintf(why, size, "%s", excess);
		else
			regerror(error, ret, why, size);
	}
	return error;
}
