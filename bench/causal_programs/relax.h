/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 */
#ifndef KYMO_BENCH_RELAX_H
#define KYMO_BENCH_RELAX_H

#define RELAX_WIDTH 1024

/* One row of the heat equation, from the row and its neighbours. */
void relax_row(double *to, const double *above, const double *row, const double *below);
/* How much a row has changed. */
double row_difference(const double *one, const double *other);

#endif
