/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A parallel loop whose first half of iterations is dearer than the second, divided in two equal
 * halves, and a serial part between loops. Threads of libgomp wait spinning, then by futex calls
 * that no wrapper of libc sees.
 */
#include <omp.h>

#include "workload.h"

WORK(dear_iterations)
WORK(cheap_iterations)
WORK(between_loops)

int main(int argc, char **argv)
{
	static struct workload_point step = {.name = "step"};
	workload_start(argc, argv);
	double length = workload_number("length", 2000);
	omp_set_num_threads(2);
	while (workload_running()) {
#pragma omp parallel for schedule(static)
		for (int i = 0; i < 16; i++) {
			if (i < 8)
				dear_iterations(0.7 * length / 8);
			else
				cheap_iterations(0.4 * length / 8);
		}
		between_loops(0.3 * length);
		workload_visit(&step);
	}
	return workload_finish();
}
