/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Phases that are longer than a measurement takes: what is worth much in one is not there in the
 * other. Half of all visits are of the first kind; --visits is to be a multiple of two phases.
 */
#include "workload.h"

WORK(first_phase)
WORK(second_phase)
WORK(both_phases)

int main(int argc, char **argv)
{
	static struct workload_point step = {.name = "step"};
	workload_start(argc, argv);
	double length = workload_number("length", 1000);
	unsigned phase = (unsigned)workload_number("phase", 700);
	for (unsigned i = 0; workload_running(); i++) {
		if (i / phase % 2)
			second_phase(0.4 * length);
		else
			first_phase(0.8 * length);
		both_phases(0.2 * length);
		workload_visit(&step);
	}
	return workload_finish();
}
