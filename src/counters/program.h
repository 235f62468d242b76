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
struct program_input {
	const struct counter *counter;
	enum counting_rollup rollup;
	enum counting_accumulate accumulate;
	size_t values;
};

enum program_space { PROGRAM_INPUT, PROGRAM_WORK, PROGRAM_CONSTANT };

struct program_operand {
	enum program_space space;
	uint32_t input;
	size_t offset;
	const uint32_t *table; /* of each value of the result: which one it takes; NULL: `stride` */
	uint32_t stride;       /* 1, or 0: the same one always */
};

enum program_operation {
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

struct program_step {
	enum program_operation operation;
	struct program_operand left, right;
	size_t result; /* in the work memory */
	size_t values; /* of the result; of a reduction, of what is reduced */
	size_t groups; /* of a reduction: values of the result */
};

struct program {
	struct shape shape;
	size_t values;
	struct program_operand result;
	struct program_input *inputs;
	struct program_step *steps;
	double *constants;
	uint32_t inputs_count, steps_count, constants_count;
	size_t work; /* doubles of work memory */
};

/* For a counter of any kind whose references are all usable. NULL: problem says why; its offset is
 * in the expression of the counter itself. */
struct program *program_make(struct memory *memory, const struct counter *counter,
			     struct expression_problem *problem);
/* inputs: the values of each, in the order of program->inputs. Returns program->values values,
 * which are in `work`, in an input or in the program. */
const double *program_evaluate(const struct program *program, const double *const *inputs,
			       double *work);

#endif
