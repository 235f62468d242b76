/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What derived counters cost: evaluation of each kind of expression at 1, 132 and 4,096 instances,
 * and the time to read and link a file of definitions.
 *
 *   bench/counters [FILE]      default: the shipped counter_defs.yaml
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "counters/definitions.h"
#include "counters/properties.h"

#define REPEAT_NS 50000000.0

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void add_event(struct counter_catalogue *catalogue, const char *name, uint32_t instances)
{
	struct counting_event_info event = {
		.name = name,
		.block = "SQ",
		.event = name,
		.extents = {{COUNTING_DIMENSION_INSTANCE, instances}},
		.extents_count = 1,
	};

	catalogue_add_event(catalogue, &event);
}

static double time_program(const struct counter_program *program)
{
	const double *inputs[16];
	double *work = calloc(program->work_values_count + 1, sizeof(*work));
	double *raw = calloc(4096, sizeof(*raw)), begin, passed;
	static volatile double sink;
	long rounds = 0;

	for (size_t i = 0; i < 4096; i++)
		raw[i] = (double)i + 1;
	for (uint32_t i = 0; i < program->inputs_count; i++)
		inputs[i] = raw;
	begin = now_ns();
	do {
		for (int i = 0; i < 64; i++)
			sink = counter_program_evaluate(program, inputs, work)[0];
		rounds += 64;
		passed = now_ns() - begin;
	} while (passed < REPEAT_NS);
	free(work);
	free(raw);
	(void)sink;
	return passed / (double)rounds;
}

static void evaluation(const char *text)
{
	static const uint32_t instances[] = {1, 132, 4096};

	printf("%-52s", text);
	for (int i = 0; i < 3; i++) {
		struct counter_catalogue *catalogue = calloc(1, sizeof(*catalogue));
		struct expression_problem problem;
		struct counter *derived;

		catalogue_add_properties(catalogue);
		add_event(catalogue, "A", instances[i]);
		add_event(catalogue, "B", instances[i]);
		derived = catalogue_add_blank_counter(catalogue, "D");
		derived->kind = COUNTER_DERIVED;
		derived->expression_text = text;
		if (catalogue_link_counter(catalogue, derived, &problem))
			printf(" %10.1f", time_program(derived->program));
		else
			printf(" %10s", problem.text);
		catalogue_free(catalogue);
		free(catalogue);
	}
	printf("\n");
}

static void told(void *context, const char *path, unsigned line, unsigned column, const char *text)
{
	(void)context;
	printf("%s:%u:%u: %s\n", path, line, column, text);
}

static void loading(const char *path)
{
	static char text[8 << 20];
	int file = open(path, O_RDONLY);
	ssize_t size = file >= 0 ? read(file, text, sizeof(text)) : -1;
	double best_read = 1e18, best_check = 1e18;
	uint32_t count = 0;

	if (file >= 0)
		close(file);
	if (size < 0) {
		printf("%s: cannot be read\n", path);
		return;
	}
	for (int i = 0; i < 5; i++) {
		struct counter_definitions *definitions = calloc(1, sizeof(*definitions));
		double begin = now_ns(), read_ns, check_ns;

		definitions_add_file_text(definitions, path, text, (size_t)size, told, NULL);
		read_ns = now_ns() - begin;
		definitions_report_last_file_mistakes(definitions, told, NULL);
		check_ns = now_ns() - begin - read_ns;
		count = definitions->count;
		best_read = read_ns < best_read ? read_ns : best_read;
		best_check = check_ns < best_check ? check_ns : best_check;
		definitions_free(definitions);
		free(definitions);
	}
	printf("\n%s: %zd bytes, %u definitions: read in %.2f ms, checked on every architecture in "
	       "%.2f ms\n",
	       path, size, count, best_read / 1e6, best_check / 1e6);
}

int main(int argc, char **argv)
{
	printf("%-52s %10s %10s %10s\n", "ns per evaluation, with so many instances:", "1", "132",
	       "4096");
	evaluation("A");
	evaluation("reduce(A,sum)");
	evaluation("100*A/B");
	evaluation("100*reduce(A,sum)/(reduce(A,sum)+reduce(B,sum))");
	evaluation("reduce(accumulate(A,HIGH_RES),sum)/reduce(B,max)/cu_count");
	evaluation("select(A,[DIMENSION_INSTANCE=[0]])");
	loading(argc > 1 ? argv[1] : BENCH_DEFINITIONS);
	return 0;
}
