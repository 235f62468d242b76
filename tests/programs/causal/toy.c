/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One thread, one after another: a speedup gains its share, 60, 30 and 10 percent.
 */
#include "workload.h"

WORK(large)
WORK(middle)
WORK(small)

int main(int argc, char **argv)
{
	static struct workload_point done = {.name = "done"};
	workload_start(argc, argv);
	double length = workload_number("length", 1000);
	while (workload_running()) {
		large(0.6 * length);
		middle(0.3 * length);
		small(0.1 * length);
		workload_visit(&done);
	}
	return workload_finish();
}
