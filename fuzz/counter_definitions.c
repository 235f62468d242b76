/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes what reads files of counters: YAML, definitions, expressions; and, with the input as an
 * expression over events of known shapes, the compiler of expressions and what it makes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "counters/definitions.h"
#include "counters/properties.h"

#define VALUES_MAX ((size_t)1 << 16) /* of an evaluation: larger ones are only compiled */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore(void *context, const char *path, unsigned line, unsigned column,
		   const char *text)
{
	*(size_t *)context += strlen(path) + strlen(text) + line + column;
}

static void add_event(struct counter_catalogue *catalogue, const char *name, const char *block,
		      uint32_t first, uint32_t first_size, uint32_t second, uint32_t second_size,
		      bool has_rollups)
{
	struct counting_event_info event = {
		.name = name,
		.block = block,
		.event = name,
		.extents = {{(enum counting_dimension_kind)first, first_size},
			    {(enum counting_dimension_kind)second, second_size}},
		.extents_count = second != 0 ? 2 : 1,
		.has_rollups = has_rollups};

	catalogue_add_event(catalogue, &event);
}

static double evaluate(const struct counter_program *program)
{
	size_t most = 1, inputs = program->inputs_count;
	const double **values = calloc(inputs + 1, sizeof(*values));
	double *work = malloc((program->work_values_count + 1) * sizeof(*work)), *raw, sum = 0;
	const double *results;

	for (size_t i = 0; i < inputs; i++)
		most = program->inputs[i].values > most ? program->inputs[i].values : most;
	raw = malloc(most * sizeof(*raw));
	if (values != NULL && work != NULL && raw != NULL) {
		for (size_t i = 0; i < most; i++)
			raw[i] = (double)i - 1;
		for (size_t i = 0; i < inputs; i++)
			values[i] = raw;
		results = counter_program_evaluate(program, values, work);
		for (size_t i = 0; i < program->values; i++)
			sum += results[i];
	}
	free((void *)values);
	free(work);
	free(raw);
	return sum;
}

static double as_expression(const char *text)
{
	struct counter_catalogue *catalogue = calloc(1, sizeof(*catalogue));
	struct expression_problem problem;
	struct counter *counter;
	double result = 0;

	if (catalogue == NULL)
		return 0;
	catalogue_add_properties(catalogue);
	add_event(catalogue, "X", "TEST", COUNTING_DIMENSION_XCC, 2, COUNTING_DIMENSION_WGP, 4,
		  false);
	add_event(catalogue, "Y", "SQ", COUNTING_DIMENSION_AID, 3, COUNTING_DIMENSION_WGP, 4,
		  false);
	add_event(catalogue, "Z", "TEST", COUNTING_DIMENSION_INSTANCE, 1, 0, 0, false);
	add_event(catalogue, "R", "TEST", COUNTING_DIMENSION_INSTANCE, 1, 0, 0, true);
	counter = catalogue_add_blank_counter(catalogue, "D");
	if (counter != NULL) {
		counter->kind = COUNTER_DERIVED;
		counter->expression_text = text;
		if (catalogue_link_counter(catalogue, counter, &problem) &&
		    counter->program->work_values_count < VALUES_MAX)
			result = evaluate(counter->program);
	}
	catalogue_free(catalogue);
	free(catalogue);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static volatile double result;
	char *copy = malloc(size + 1);
	size_t told = 0;

	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	copy[size] = '\0';
	result = result + as_expression(copy);
	free(copy);
	copy = malloc(size + !size); /* no larger than said */
	if (copy == NULL)
		return 0;
	memcpy(copy, data, size);
	result = result + counter_file_report_mistakes(copy, size, "f", ignore, &told);
	free(copy);
	return 0;
}
