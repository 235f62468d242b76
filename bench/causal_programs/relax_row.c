/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The kernel, in a file of its own: compiled without optimisation by mistake, and with it once the
 * profiler has said that this is what is worth something.
 */
#include "relax.h"

void relax_row(double *to, const double *above, const double *row, const double *below)
{
	to[0] = row[0];
	for (int i = 1; i < RELAX_WIDTH - 1; i++)
		to[i] = row[i] + 0.2 * (above[i] + below[i] + row[i - 1] + row[i + 1] - 4 * row[i]);
	to[RELAX_WIDTH - 1] = row[RELAX_WIDTH - 1];
}
