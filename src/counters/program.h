/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs: what an expression becomes once the shapes of all counters in it are known. A list of
 * steps over arrays, without branches; which value goes where is in tables that are made with it.
 * Evaluation takes nothing but the memory it is given.
 */
#ifndef KYMO_COUNTERS_PROGRAM_H
#define KYMO_COUNTERS_PROGRAM_H

#include "counters/shape.h"

#define PROGRAM_VALUES_MAX ((size_t)1 << 24)

struct counter;
struct expression_problem;

/* What is needed from outside: an event, as it is to be counted, or a property of the agent. */
struct counter_program_input {
	const struct counter *counter;
	enum counting_rollup rollup;
	enum counting_accumulation_resolution accumulation_resolution;
	size_t values;
};

enum counter_operand_space { PROGRAM_SPACE_INPUT, PROGRAM_SPACE_WORK, PROGRAM_SPACE_CONSTANT };

struct counter_program_operand {
	enum counter_operand_space memory_space;
	uint32_t input;
	size_t offset;
	const uint32_t *table; /* of each value of the result: which one it takes; NULL: `stride` */
	uint32_t stride;       /* 1, or 0: the same one always */
};

enum counter_program_operation_kind {
	PROGRAM_NEGATE,
	PROGRAM_ADD,
	PROGRAM_SUBTRACT,
	PROGRAM_MULTIPLY,
	PROGRAM_DIVIDE, /* by 0: 0 */
	PROGRAM_GATHER,
	PROGRAM_REDUCE_SUM, /* right.table: the group of each value, NULL: one group */
	PROGRAM_REDUCE_AVERAGE,
	PROGRAM_REDUCE_MIN,
	PROGRAM_REDUCE_MAX
};

struct counter_program_step {
	enum counter_program_operation_kind operation;
	struct counter_program_operand left, right;
	size_t result; /* in the work memory */
	size_t values; /* of the result; of a reduction, of what is reduced */
	size_t groups; /* of a reduction: values of the result */
};

struct counter_program {
	struct value_shape shape;
	size_t values;
	struct counter_program_operand result;
	struct counter_program_input *inputs;
	struct counter_program_step *steps;
	double *constants;
	uint32_t inputs_count, steps_count, constants_count;
	size_t work_values_count; /* doubles of work memory */
};

/* For a counter of any kind whose references are all usable. NULL: problem says why; its offset is
 * in the expression of the counter itself. */
struct counter_program *counter_program_compile(struct memory_pool *memory,
						const struct counter *counter,
						struct expression_problem *problem);
/* inputs: the values of each, in the order of program->inputs. Returns program->values values,
 * which are in `work`, in an input or in the program. */
const double *counter_program_evaluate(const struct counter_program *program,
				       const double *const *inputs, double *work);

#endif
