/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Progress points, and visits of them.
 */
#include "causal/causal.h"

uint32_t causal_point(const char *name, enum causal_point_kind kind, enum causal_origin origin)
{
	(void)name;
	(void)kind;
	(void)origin;
	return UINT32_MAX;
}

void causal_visit(uint32_t point)
{
	(void)point;
}
