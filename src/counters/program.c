/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From a tree to a program; see program.h. Each counter that an expression refers to, directly or
 * by others, is computed once.
 */
#include "counters/program.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/catalogue.h"

struct value {
	struct program_operand operand;
	struct shape shape;
	size_t values;
};

struct done {
	const struct counter *counter;
	struct value value;
};

struct compiler {
	struct memory *memory;
	struct expression_problem *problem;
	struct program *program;
	/* Grown with realloc(), copied to the memory at the end. */
	uint32_t steps_capacity, constants_capacity, inputs_capacity, done_count, done_capacity;
	struct done *done;
	const struct counter *within; /* whose expression it is at */
	const struct counter *whole;
	uint32_t outer_offset; /* in the expression of the whole, where it left that */
	size_t tables;
	bool failed;
};

static bool compile(struct compiler *compiler, const struct expression *expression,
		    struct value *value);
static bool compile_counter(struct compiler *compiler, const struct counter *counter,
			    struct value *value);

__attribute__((format(printf, 3, 4))) static bool
compile_fail(struct compiler *compiler, uint32_t offset, const char *format, ...)
{
	va_list arguments;

	if (compiler->failed)
		return false;
	compiler->failed = true;
	compiler->problem->offset =
		compiler->within == compiler->whole ? offset : compiler->outer_offset;
	va_start(arguments, format);
	vsnprintf(compiler->problem->text, sizeof(compiler->problem->text), format, arguments);
	va_end(arguments);
	return false;
}

static bool compile_no_memory(struct compiler *compiler)
{
	return compile_fail(compiler, 0, "no memory");
}

/* Room for one more. */
static bool compile_grow(struct compiler *compiler, void **array, uint32_t count,
			 uint32_t *capacity, size_t size)
{
	uint32_t more = *capacity != 0 ? *capacity * 2 : 8;
	void *grown;

	if (count < *capacity)
		return true;
	grown = realloc(*array, more * size);
	if (grown == NULL)
		return compile_no_memory(compiler);
	*array = grown;
	*capacity = more;
	return true;
}

/* ---- operands and steps ---- */

static bool compile_constant(struct compiler *compiler, double number, struct value *value)
{
	struct program *program = compiler->program;

	if (!compile_grow(compiler, (void **)&program->constants, program->constants_count,
			  &compiler->constants_capacity, sizeof(double)))
		return false;
	*value = (struct value){.values = 1};
	value->operand = (struct program_operand){
		.space = PROGRAM_CONSTANT, .offset = program->constants_count, .stride = 1};
	program->constants[program->constants_count++] = number;
	return true;
}

static bool compile_input(struct compiler *compiler, const struct counter *counter,
			  enum counting_rollup rollup, enum counting_accumulate accumulate,
			  struct value *value)
{
	struct program *program = compiler->program;
	uint32_t number = 0;

	/* The sum is what a plain reference to it stands for. */
	if (counter->has_rollups && rollup == COUNTING_ROLLUP_NONE)
		rollup = COUNTING_ROLLUP_SUM;
	while (number < program->inputs_count && (program->inputs[number].counter != counter ||
						  program->inputs[number].rollup != rollup ||
						  program->inputs[number].accumulate != accumulate))
		number++;
	*value = (struct value){.shape = counter->shape, .values = shape_values(&counter->shape)};
	value->operand =
		(struct program_operand){.space = PROGRAM_INPUT, .input = number, .stride = 1};
	if (number < program->inputs_count)
		return true;
	if (!compile_grow(compiler, (void **)&program->inputs, program->inputs_count,
			  &compiler->inputs_capacity, sizeof(struct program_input)))
		return false;
	program->inputs[program->inputs_count++] =
		(struct program_input){counter, rollup, accumulate, value->values};
	return true;
}

/* A step with a result of that shape; *value becomes the result. NULL: failed. */
static struct program_step *compile_step(struct compiler *compiler, uint32_t offset,
					 enum program_operation operation,
					 const struct shape *shape, struct value *value)
{
	struct program *program = compiler->program;
	size_t values = shape_values(shape);
	struct program_step *step;

	if (values > PROGRAM_VALUES_MAX || program->work > PROGRAM_VALUES_MAX - values) {
		compile_fail(compiler, offset, "it has more than %zu values on the way",
			     PROGRAM_VALUES_MAX);
		return NULL;
	}
	if (!compile_grow(compiler, (void **)&program->steps, program->steps_count,
			  &compiler->steps_capacity, sizeof(*step)))
		return NULL;
	step = &program->steps[program->steps_count++];
	*step = (struct program_step){
		.operation = operation, .result = program->work, .values = values};
	program->work += values;
	*value = (struct value){.shape = *shape, .values = values};
	value->operand = (struct program_operand){
		.space = PROGRAM_WORK, .offset = step->result, .stride = 1};
	return step;
}

static uint32_t *compile_table(struct compiler *compiler, uint32_t offset, size_t values)
{
	uint32_t *table = NULL;

	compiler->tables += values;
	if (compiler->tables > 2 * PROGRAM_VALUES_MAX)
		compile_fail(compiler, offset, "it has too many values on the way");
	else
		table = memory_array(compiler->memory, values, sizeof(*table));
	if (table == NULL)
		compile_no_memory(compiler);
	return table;
}

/* ---- arithmetic ---- */

/* No value at all, whatever is done with it. */
static void select_nothing(struct value *value)
{
	*value = (struct value){.shape = {.count = 1}};
	value->shape.axes[0].dimension = COUNTING_DIMENSION_INSTANCE;
	value->operand = (struct program_operand){.space = PROGRAM_WORK, .stride = 1};
}

/* How `value` is read by a step whose result has that shape. */
static bool compile_spread(struct compiler *compiler, uint32_t offset, const struct value *value,
			   const struct shape *shape, size_t values,
			   struct program_operand *operand)
{
	uint32_t *table;

	*operand = value->operand;
	operand->stride = 1;
	/* With the same number of values they are the same ones: the axes agree, or are of size 1.
	 */
	if (value->values == values)
		return true;
	if (value->values == 1) {
		operand->stride = 0;
		return true;
	}
	table = compile_table(compiler, offset, values);
	if (table == NULL)
		return false;
	shape_map(shape, &value->shape, table);
	operand->table = table;
	return true;
}

static bool compile_binary(struct compiler *compiler, const struct expression *expression,
			   struct value *value)
{
	static const enum program_operation operations[] = {
		[EXPRESSION_ADD] = PROGRAM_ADD,
		[EXPRESSION_SUBTRACT] = PROGRAM_SUBTRACT,
		[EXPRESSION_MULTIPLY] = PROGRAM_MULTIPLY,
		[EXPRESSION_DIVIDE] = PROGRAM_DIVIDE};
	struct value left, right;
	struct shape shape;
	struct program_operand one, other;
	struct program_step *step;
	char shown[2][160];

	if (!compile(compiler, expression->left, &left) ||
	    !compile(compiler, expression->right, &right))
		return false;
	if (left.values == 0 || right.values == 0) {
		select_nothing(value);
		return true;
	}
	/* One value goes with anything, whatever its dimensions are. */
	if (left.values == 1 && right.values != 1) {
		shape = right.shape;
	} else if (right.values == 1) {
		shape = left.shape;
	} else if (!shape_join(&left.shape, &right.shape, &shape)) {
		shape_text(&left.shape, shown[0], sizeof(shown[0]));
		shape_text(&right.shape, shown[1], sizeof(shown[1]));
		return compile_fail(compiler, expression->offset,
				    "the two sides have different dimensions: %s and %s", shown[0],
				    shown[1]);
	}
	if (shape_values(&shape) > PROGRAM_VALUES_MAX)
		return compile_fail(compiler, expression->offset, "it has too many values");
	if (!compile_spread(compiler, expression->offset, &left, &shape, shape_values(&shape),
			    &one) ||
	    !compile_spread(compiler, expression->offset, &right, &shape, shape_values(&shape),
			    &other))
		return false;
	step = compile_step(compiler, expression->offset, operations[expression->kind], &shape,
			    value);
	if (step == NULL)
		return false;
	step->left = one;
	step->right = other;
	return true;
}

static bool compile_negate(struct compiler *compiler, const struct expression *expression,
			   struct value *value)
{
	struct value left;
	struct program_step *step;

	if (!compile(compiler, expression->left, &left))
		return false;
	step = compile_step(compiler, expression->offset, PROGRAM_NEGATE, &left.shape, value);
	if (step == NULL)
		return false;
	step->left = left.operand;
	return true;
}

/* ---- reduce, select, accumulate ---- */

/* The event that an expression is, by one name or by names of names. */
static const struct counter *plain_event(const struct counter *user,
					 const struct expression *expression)
{
	while (expression != NULL && expression->kind == EXPRESSION_NAME) {
		const struct counter *found = expression->reference;

		if (found == NULL || found->kind == COUNTER_EVENT)
			return found;
		if (found->kind != COUNTER_DERIVED || found == user)
			return NULL;
		user = found;
		expression = found->expression;
	}
	return NULL;
}

static const enum counting_rollup rollups[] = {[REDUCE_SUM] = COUNTING_ROLLUP_SUM,
					       [REDUCE_AVERAGE] = COUNTING_ROLLUP_AVERAGE,
					       [REDUCE_MIN] = COUNTING_ROLLUP_MIN,
					       [REDUCE_MAX] = COUNTING_ROLLUP_MAX};

static bool compile_groups(struct compiler *compiler, const struct expression *expression,
			   const struct value *left, struct value *value)
{
	enum program_operation operation =
		(enum program_operation)(PROGRAM_REDUCE_SUM + (int)expression->detail);
	struct program_step *step;
	uint32_t *table = NULL;
	struct shape rest;

	shape_without(&left->shape, expression->dimensions ? expression->dimensions : ~0u, &rest);
	if (rest.count == left->shape.count) {
		*value = *left; /* it has none of these dimensions */
		return true;
	}
	if (left->values == 0) {
		*value = *left;
		return true;
	}
	if (shape_values(&rest) != 1) {
		table = compile_table(compiler, expression->offset, left->values);
		if (table == NULL)
			return false;
		shape_map(&left->shape, &rest, table);
	} else {
		rest.count = 0;
	}
	step = compile_step(compiler, expression->offset, operation, &rest, value);
	if (step == NULL)
		return false;
	step->left = left->operand;
	step->right.table = table;
	step->groups = step->values;
	step->values = left->values;
	return true;
}

static bool compile_reduce(struct compiler *compiler, const struct expression *expression,
			   struct value *value)
{
	const struct counter *event = plain_event(compiler->within, expression->left);
	struct value left;

	if (event != NULL && event->has_rollups) {
		if (expression->dimensions != 0)
			return compile_fail(compiler, expression->offset,
					    "the hardware gives no instances of %s: it can only be "
					    "reduced as a whole",
					    event->name);
		if (!compile_input(compiler, event, rollups[expression->detail],
				   COUNTING_ACCUMULATE_NONE, value))
			return false;
		value->shape.count = 0;
		return true;
	}
	return compile(compiler, expression->left, &left) &&
	       compile_groups(compiler, expression, &left, value);
}

static bool pick_has(const struct expression_pick *pick, uint32_t position)
{
	for (uint32_t i = 0; i < pick->count; i++) {
		if (position >= pick->ranges[i].first && position <= pick->ranges[i].last)
			return true;
	}
	return false;
}

/* Which indices along the axis are kept. */
static bool pick_axis(struct compiler *compiler, const struct expression_pick *pick,
		      struct shape_axis *axis, uint32_t **kept)
{
	uint32_t *indices = memory_array(compiler->memory, axis->size, sizeof(*indices));
	uint32_t *positions = memory_array(compiler->memory, axis->size, sizeof(*positions));
	uint32_t count = 0;

	if (indices == NULL || positions == NULL)
		return compile_no_memory(compiler);
	for (uint32_t i = 0; i < axis->size; i++) {
		if (!pick_has(pick, shape_position(axis, i)))
			continue;
		indices[count] = i;
		positions[count++] = shape_position(axis, i);
	}
	axis->size = count;
	axis->positions = positions;
	*kept = indices;
	return true;
}

/* table: of each value of `shape`, which one of `from` it is. kept: by axis, NULL: all. */
static void select_map(const struct shape *shape, const struct shape *from, uint32_t *const *kept,
		       uint32_t *table)
{
	uint32_t indices[SHAPE_AXES_MAX] = {0};
	size_t values = shape_values(shape);

	for (size_t value = 0; value < values; value++) {
		uint32_t at = 0;

		for (uint32_t i = 0; i < shape->count; i++)
			at = at * from->axes[i].size + (kept[i] ? kept[i][indices[i]] : indices[i]);
		table[value] = at;
		for (uint32_t i = shape->count; i-- > 0;) {
			if (++indices[i] < shape->axes[i].size)
				break;
			indices[i] = 0;
		}
	}
}

/* A dimension that a value does not have is at position 0. */
static bool select_misses(const struct expression *expression, const struct shape *shape)
{
	const struct expression_pick *pick = expression->picks;

	for (; pick != NULL; pick = pick->next) {
		if (shape_axis(shape, pick->dimension) == NULL && !pick_has(pick, 0))
			return true;
	}
	return false;
}

static bool compile_select(struct compiler *compiler, const struct expression *expression,
			   struct value *value)
{
	const struct counter *event = plain_event(compiler->within, expression->left);
	uint32_t *kept[SHAPE_AXES_MAX] = {NULL}, *table, singles = 0;
	struct program_step *step;
	struct shape shape;
	struct value left;

	if (event != NULL && event->has_rollups)
		return compile_fail(compiler, expression->offset,
				    "the hardware gives no instances of %s to select from",
				    event->name);
	if (!compile(compiler, expression->left, &left))
		return false;
	shape = left.shape;
	for (uint32_t i = 0; i < shape.count; i++) {
		const struct expression_pick *pick = expression->picks;

		while (pick != NULL && pick->dimension != shape.axes[i].dimension)
			pick = pick->next;
		if (pick == NULL)
			continue;
		if (!pick_axis(compiler, pick, &shape.axes[i], &kept[i]))
			return false;
		if (shape.axes[i].size <= 1)
			singles |= 1u << shape.axes[i].dimension;
	}
	*value = left;
	if (left.values == 0 || shape_values(&shape) == 0 || select_misses(expression, &shape)) {
		select_nothing(value);
		return true;
	}
	table = compile_table(compiler, expression->offset, shape_values(&shape));
	if (table == NULL)
		return false;
	select_map(&shape, &left.shape, kept, table);
	/* A dimension of which one position is left is none any more. */
	shape_without(&shape, singles, &shape);
	step = compile_step(compiler, expression->offset, PROGRAM_GATHER, &shape, value);
	if (step == NULL)
		return false;
	step->left = left.operand;
	step->left.table = table;
	return true;
}

static bool compile_accumulate(struct compiler *compiler, const struct expression *expression,
			       struct value *value)
{
	const struct counter *event = expression->reference;

	if (event == NULL || event->kind != COUNTER_EVENT)
		return compile_fail(compiler, expression->offset,
				    "accumulate() takes a hardware counter, and %s is none",
				    expression->name);
	if (expression->detail != COUNTING_ACCUMULATE_NONE && strcmp(event->block, "SQ") != 0)
		return compile_fail(
			compiler, expression->offset,
			"only counters of the block SQ are accumulated by the hardware: "
			"%s is of %s",
			event->name, event->block);
	return compile_input(compiler, event, COUNTING_ROLLUP_NONE,
			     (enum counting_accumulate)expression->detail, value);
}

/* ---- counters ---- */

static bool compile_known(struct compiler *compiler, const struct counter *counter,
			  struct value *value)
{
	for (uint32_t i = 0; i < compiler->done_count; i++) {
		if (compiler->done[i].counter == counter) {
			*value = compiler->done[i].value;
			return true;
		}
	}
	return false;
}

static bool compile_remember(struct compiler *compiler, const struct counter *counter,
			     const struct value *value)
{
	if (!compile_grow(compiler, (void **)&compiler->done, compiler->done_count,
			  &compiler->done_capacity, sizeof(struct done)))
		return false;
	compiler->done[compiler->done_count++] = (struct done){counter, *value};
	return true;
}

static bool compile_counter(struct compiler *compiler, const struct counter *counter,
			    struct value *value)
{
	const struct counter *within = compiler->within;
	bool made;

	if (counter->kind != COUNTER_DERIVED)
		return compile_input(compiler, counter, COUNTING_ROLLUP_NONE,
				     COUNTING_ACCUMULATE_NONE, value);
	if (compile_known(compiler, counter, value))
		return true;
	compiler->within = counter;
	made = compile(compiler, counter->expression, value);
	compiler->within = within;
	return made && compile_remember(compiler, counter, value);
}

static bool compile_name(struct compiler *compiler, const struct expression *expression,
			 struct value *value)
{
	if (expression->reference == NULL)
		return compile_fail(compiler, expression->offset, "there is no counter '%s'",
				    expression->name);
	if (compiler->within == compiler->whole)
		compiler->outer_offset = expression->offset;
	return compile_counter(compiler, expression->reference, value);
}

static bool compile(struct compiler *compiler, const struct expression *expression,
		    struct value *value)
{
	switch (expression->kind) {
	case EXPRESSION_NUMBER:
		return compile_constant(compiler, expression->number, value);
	case EXPRESSION_NAME:
		return compile_name(compiler, expression, value);
	case EXPRESSION_NEGATE:
		return compile_negate(compiler, expression, value);
	case EXPRESSION_REDUCE:
		return compile_reduce(compiler, expression, value);
	case EXPRESSION_SELECT:
		return compile_select(compiler, expression, value);
	case EXPRESSION_ACCUMULATE:
		return compile_accumulate(compiler, expression, value);
	default:
		return compile_binary(compiler, expression, value);
	}
}

static void *compile_keep(struct compiler *compiler, void *array, size_t count, size_t size)
{
	void *kept = count != 0 ? memory_array(compiler->memory, count, size) : NULL;

	if (count != 0 && kept != NULL)
		memcpy(kept, array, count * size);
	else if (count != 0)
		compile_no_memory(compiler);
	free(array);
	return kept;
}

struct program *program_make(struct memory *memory, const struct counter *counter,
			     struct expression_problem *problem)
{
	struct program *program = memory_take(memory, sizeof(*program));
	struct compiler compiler = {.memory = memory,
				    .problem = problem,
				    .program = program,
				    .within = counter,
				    .whole = counter};
	struct value value = {.values = 0};

	problem->offset = 0;
	problem->text[0] = '\0';
	if (program == NULL) {
		compile_no_memory(&compiler);
		return NULL;
	}
	compile_counter(&compiler, counter, &value);
	program->shape = value.shape;
	program->values = value.values;
	program->result = value.operand;
	program->steps = compile_keep(&compiler, program->steps, program->steps_count,
				      sizeof(*program->steps));
	program->inputs = compile_keep(&compiler, program->inputs, program->inputs_count,
				       sizeof(*program->inputs));
	program->constants = compile_keep(&compiler, program->constants, program->constants_count,
					  sizeof(*program->constants));
	free(compiler.done);
	return compiler.failed ? NULL : program;
}
