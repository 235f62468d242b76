/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One function with all others expanded in it: who looks at functions of the symbol table sees one
 * that has everything; lines and inlined functions tell what is worth what.
 */
#include "workload.h"

WORK_INLINED(decode)
WORK_INLINED(filter)
WORK_INLINED(encode)

void convert(double length);
__attribute__((noinline)) void convert(double length)
{
	decode(0.2 * length);
	filter(0.3 * length);
	decode(0.3 * length);
	encode(0.2 * length);
}

int main(int argc, char **argv)
{
	static struct workload_point done = {.name = "done"};
	workload_start(argc, argv);
	double length = workload_number("length", 1000);
	while (workload_running()) {
		convert(length);
		workload_visit(&done);
	}
	return workload_finish();
}
