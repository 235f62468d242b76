/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One thread, and visits that come every 100 microseconds: ten times as often as samples.
 */
#include "workload.h"

WORK(half)
WORK(third)
WORK(rest)

int main(int argc, char **argv)
{
	static struct workload_point done = {.name = "done"};
	workload_start(argc, argv);
	double length = workload_number("length", 100);
	while (workload_running()) {
		half(0.5 * length);
		third(0.333 * length);
		rest(0.167 * length);
		workload_visit(&done);
	}
	return workload_finish();
}
