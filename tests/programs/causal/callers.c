/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that call each other: a function is worth what it and all that it calls take, and one
 * that is called from two places is worth what it takes in both.
 */
#include "workload.h"

WORK_SCALE(parse)
WORK_SCALE(check)
WORK(lex)
WORK(resolve)

void parse(double length);
void check(double length);

__attribute__((noinline)) void parse(double length)
{
	lex(0.4 * length * workload_scale(&work_of_parse));
	resolve(0.2 * length * workload_scale(&work_of_parse));
	__asm__ volatile(""); /* no tail call: this function stays on the stack */
}

__attribute__((noinline)) void check(double length)
{
	resolve(0.3 * length * workload_scale(&work_of_check));
	lex(0.1 * length * workload_scale(&work_of_check));
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	static struct workload_point done = {.name = "done"};
	workload_start(argc, argv);
	double length = workload_number("length", 1000);
	while (workload_running()) {
		parse(length);
		check(length);
		workload_visit(&done);
	}
	return workload_finish();
}
