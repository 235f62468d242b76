/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Expressions, a line each, over events whose shapes and values are in expressions.py too: prints
 * the values that have come of each with their positions, or that it was refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/catalogue.h"

#define EVENTS    5
#define LINE_MAX_ 65536

static const struct counting_event_info events[EVENTS] = {
	{.name = "X",
	 .block = "T",
	 .event = "X",
	 .extents = {{COUNTING_DIMENSION_XCC, 2},
		     {COUNTING_DIMENSION_SHADER_ARRAY, 3},
		     {COUNTING_DIMENSION_WGP, 4}},
	 .extents_count = 3},
	{.name = "Y",
	 .block = "T",
	 .event = "Y",
	 .extents = {{COUNTING_DIMENSION_XCC, 2}, {COUNTING_DIMENSION_SHADER_ENGINE, 5}},
	 .extents_count = 2},
	{.name = "W",
	 .block = "T",
	 .event = "W",
	 .extents = {{COUNTING_DIMENSION_WGP, 4}},
	 .extents_count = 1},
	{.name = "S",
	 .block = "T",
	 .event = "S",
	 .extents = {{COUNTING_DIMENSION_INSTANCE, 1}},
	 .extents_count = 1},
	{.name = "E",
	 .block = "T",
	 .event = "E",
	 .extents = {{COUNTING_DIMENSION_SHADER_ENGINE, 5}, {COUNTING_DIMENSION_WGP, 4}},
	 .extents_count = 2},
};

static double value_of(unsigned event, size_t value)
{
	return (double)((event * 31 + value * 17) % 13) - 3;
}

static void print_values(const struct counter_program *program, const double *values)
{
	for (size_t i = 0; i < program->values; i++) {
		size_t rest = i, indices[SHAPE_AXES_MAX];

		for (uint32_t j = program->shape.count; j-- > 0;) {
			indices[j] = rest % program->shape.axes[j].size;
			rest /= program->shape.axes[j].size;
		}
		for (uint32_t j = 0; j < program->shape.count; j++)
			printf("%u:%u,", program->shape.axes[j].dimension,
			       shape_axis_get_position(&program->shape.axes[j],
						       (uint32_t)indices[j]));
		printf("=%.17g ", values[i]);
	}
	printf("\n");
}

static void calculate(const char *text)
{
	static double raw[EVENTS][64];
	struct counter_catalogue *catalogue = calloc(1, sizeof(*catalogue));
	struct expression_problem problem;
	const double *inputs[EVENTS + 1];
	struct counter *derived;
	double *work;

	for (unsigned i = 0; i < EVENTS; i++) {
		catalogue_add_event(catalogue, &events[i]);
		for (size_t j = 0; j < 64; j++)
			raw[i][j] = value_of(i, j);
	}
	derived = catalogue_add_blank_counter(catalogue, "D");
	derived->kind = COUNTER_DERIVED;
	derived->expression_text = text;
	if (catalogue_link_counter(catalogue, derived, &problem)) {
		for (uint32_t i = 0; i < derived->program->inputs_count; i++)
			inputs[i] = raw[derived->program->inputs[i].counter->number];
		work = malloc((derived->program->work_values_count + 1) * sizeof(*work));
		print_values(derived->program,
			     counter_program_evaluate(derived->program, inputs, work));
		free(work);
	} else {
		printf("refused: %s\n", problem.text);
	}
	catalogue_free(catalogue);
	free(catalogue);
}

int main(void)
{
	static char line[LINE_MAX_];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		calculate(line);
	}
	return 0;
}
