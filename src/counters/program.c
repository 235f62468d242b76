/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See program.h. Each counter that an expression refers to is computed once.
 */
#include "counters/program.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counters/catalogue.h"

struct compiled_expression_result {
	struct counter_program_operand operand;
	struct value_shape shape;
	size_t values;
};

struct compiled_counter_entry {
	const struct counter *counter;
	struct compiled_expression_result value;
};

struct compiler {
	struct memory_pool *memory;
	struct expression_problem *problem;
	struct counter_program *program;
	/* Grown with realloc(), copied to the memory at the end. */
	uint32_t steps_capacity, constants_capacity, inputs_capacity;
	uint32_t compiled_count, compiled_capacity;
	struct compiled_counter_entry *compiled_counters;
	const struct counter *within; /* whose expression it is at */
	const struct counter *outermost_counter;
	uint32_t outermost_offset; /* in its expression, where another is entered */
	size_t tables;
	bool failed;
};

static bool compile_expression(struct compiler *compiler, const struct expression *expression,
			       struct compiled_expression_result *value);
static bool compile_counter(struct compiler *compiler, const struct counter *counter,
			    struct compiled_expression_result *value);

__attribute__((format(printf, 3, 4))) static bool
compiler_fail(struct compiler *compiler, uint32_t offset, const char *format, ...)
{
	va_list arguments;

	if (compiler->failed)
		return false;
	compiler->failed = true;
	compiler->problem->offset = compiler->within == compiler->outermost_counter
					    ? offset
					    : compiler->outermost_offset;
	va_start(arguments, format);
	vsnprintf(compiler->problem->text, sizeof(compiler->problem->text), format, arguments);
	va_end(arguments);
	return false;
}

static bool compiler_fail_no_memory(struct compiler *compiler)
{
	return compiler_fail(compiler, 0, "no memory");
}

/* Room for one more. */
static bool reserve_array_element(struct compiler *compiler, void **array, uint32_t count,
				  uint32_t *capacity, size_t size)
{
	uint32_t more = *capacity != 0 ? *capacity * 2 : 8;
	void *grown;

	if (count < *capacity)
		return true;
	grown = realloc(*array, more * size);
	if (grown == NULL)
		return compiler_fail_no_memory(compiler);
	*array = grown;
	*capacity = more;
	return true;
}

/* ---- operands and steps ---- */

static bool compile_constant(struct compiler *compiler, double number,
			     struct compiled_expression_result *value)
{
	struct counter_program *program = compiler->program;

	if (!reserve_array_element(compiler, (void **)&program->constants, program->constants_count,
				   &compiler->constants_capacity, sizeof(double)))
		return false;
	*value = (struct compiled_expression_result){.values = 1};
	value->operand = (struct counter_program_operand){.memory_space = PROGRAM_SPACE_CONSTANT,
							  .offset = program->constants_count,
							  .stride = 1};
	program->constants[program->constants_count++] = number;
	return true;
}

static bool find_or_add_program_input(struct compiler *compiler, const struct counter *counter,
				      enum counting_rollup rollup,
				      enum counting_accumulation_resolution accumulate,
				      struct compiled_expression_result *value)
{
	struct counter_program *program = compiler->program;
	uint32_t number = 0;

	/* The sum is what a plain reference to it stands for. */
	if (counter->has_rollups && rollup == COUNTING_ROLLUP_NONE)
		rollup = COUNTING_ROLLUP_SUM;
	while (number < program->inputs_count &&
	       (program->inputs[number].counter != counter ||
		program->inputs[number].rollup != rollup ||
		program->inputs[number].accumulation_resolution != accumulate))
		number++;
	*value = (struct compiled_expression_result){
		.shape = counter->shape, .values = shape_get_value_count(&counter->shape)};
	value->operand = (struct counter_program_operand){
		.memory_space = PROGRAM_SPACE_INPUT, .input = number, .stride = 1};
	if (number < program->inputs_count)
		return true;
	if (!reserve_array_element(compiler, (void **)&program->inputs, program->inputs_count,
				   &compiler->inputs_capacity,
				   sizeof(struct counter_program_input)))
		return false;
	program->inputs[program->inputs_count++] =
		(struct counter_program_input){counter, rollup, accumulate, value->values};
	return true;
}

/* A step with a result of that shape; *value becomes the result. NULL: failed. */
static struct counter_program_step *
append_program_step(struct compiler *compiler, uint32_t offset,
		    enum counter_program_operation_kind operation, const struct value_shape *shape,
		    struct compiled_expression_result *value)
{
	struct counter_program *program = compiler->program;
	size_t values = shape_get_value_count(shape);
	struct counter_program_step *step;

	if (values > PROGRAM_VALUES_MAX ||
	    program->work_values_count > PROGRAM_VALUES_MAX - values) {
		compiler_fail(compiler, offset, "it has more than %zu values on the way",
			      PROGRAM_VALUES_MAX);
		return NULL;
	}
	if (!reserve_array_element(compiler, (void **)&program->steps, program->steps_count,
				   &compiler->steps_capacity, sizeof(*step)))
		return NULL;
	step = &program->steps[program->steps_count++];
	*step = (struct counter_program_step){
		.operation = operation, .result = program->work_values_count, .values = values};
	program->work_values_count += values;
	*value = (struct compiled_expression_result){.shape = *shape, .values = values};
	value->operand = (struct counter_program_operand){
		.memory_space = PROGRAM_SPACE_WORK, .offset = step->result, .stride = 1};
	return step;
}

static uint32_t *allocate_index_table(struct compiler *compiler, uint32_t offset, size_t values)
{
	uint32_t *table = NULL;

	compiler->tables += values;
	if (compiler->tables > 2 * PROGRAM_VALUES_MAX)
		compiler_fail(compiler, offset, "it has too many values on the way");
	else
		table = memory_pool_allocate_array(compiler->memory, values, sizeof(*table));
	if (table == NULL)
		compiler_fail_no_memory(compiler);
	return table;
}

/* ---- arithmetic ---- */

/* No value at all, whatever is done with it. */
static void set_value_to_empty(struct compiled_expression_result *value)
{
	*value = (struct compiled_expression_result){.shape = {.count = 1}};
	value->shape.axes[0].dimension = COUNTING_DIMENSION_INSTANCE;
	value->operand =
		(struct counter_program_operand){.memory_space = PROGRAM_SPACE_WORK, .stride = 1};
}

/* How `value` is read by a step whose result has that shape. */
static bool compile_broadcast_operand(struct compiler *compiler, uint32_t offset,
				      const struct compiled_expression_result *value,
				      const struct value_shape *shape, size_t values,
				      struct counter_program_operand *operand)
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
	table = allocate_index_table(compiler, offset, values);
	if (table == NULL)
		return false;
	shape_fill_index_map(shape, &value->shape, table);
	operand->table = table;
	return true;
}

static bool compile_binary(struct compiler *compiler, const struct expression *expression,
			   struct compiled_expression_result *value)
{
	static const enum counter_program_operation_kind operations_by_expression_kind[] = {
		[EXPRESSION_ADD] = PROGRAM_ADD,
		[EXPRESSION_SUBTRACT] = PROGRAM_SUBTRACT,
		[EXPRESSION_MULTIPLY] = PROGRAM_MULTIPLY,
		[EXPRESSION_DIVIDE] = PROGRAM_DIVIDE};
	struct compiled_expression_result left, right;
	struct value_shape shape;
	struct counter_program_operand one, other;
	struct counter_program_step *step;
	char shown[2][160];

	if (!compile_expression(compiler, expression->left, &left) ||
	    !compile_expression(compiler, expression->right, &right))
		return false;
	if (left.values == 0 || right.values == 0) {
		set_value_to_empty(value);
		return true;
	}
	/* One value goes with anything, whatever its dimensions are. */
	if (left.values == 1 && right.values != 1) {
		shape = right.shape;
	} else if (right.values == 1) {
		shape = left.shape;
	} else if (!shape_broadcast_pair(&left.shape, &right.shape, &shape)) {
		shape_format_text(&left.shape, shown[0], sizeof(shown[0]));
		shape_format_text(&right.shape, shown[1], sizeof(shown[1]));
		return compiler_fail(compiler, expression->offset,
				     "the two sides have different dimensions: %s and %s", shown[0],
				     shown[1]);
	}
	if (shape_get_value_count(&shape) > PROGRAM_VALUES_MAX)
		return compiler_fail(compiler, expression->offset, "it has too many values");
	if (!compile_broadcast_operand(compiler, expression->offset, &left, &shape,
				       shape_get_value_count(&shape), &one) ||
	    !compile_broadcast_operand(compiler, expression->offset, &right, &shape,
				       shape_get_value_count(&shape), &other))
		return false;
	step = append_program_step(compiler, expression->offset,
				   operations_by_expression_kind[expression->kind], &shape, value);
	if (step == NULL)
		return false;
	step->left = one;
	step->right = other;
	return true;
}

static bool compile_negate(struct compiler *compiler, const struct expression *expression,
			   struct compiled_expression_result *value)
{
	struct compiled_expression_result left;
	struct counter_program_step *step;

	if (!compile_expression(compiler, expression->left, &left))
		return false;
	step = append_program_step(compiler, expression->offset, PROGRAM_NEGATE, &left.shape,
				   value);
	if (step == NULL)
		return false;
	step->left = left.operand;
	return true;
}

/* ---- reduce, select, accumulate ---- */

/* The event that an expression is, by one name or by names of names. */
static const struct counter *find_event_named_by_expression(const struct counter *user,
							    const struct expression *expression)
{
	while (expression != NULL && expression->kind == EXPRESSION_NAME) {
		const struct counter *found = expression->referenced_counter;

		if (found == NULL || found->kind == COUNTER_EVENT)
			return found;
		if (found->kind != COUNTER_DERIVED || found == user)
			return NULL;
		user = found;
		expression = found->expression;
	}
	return NULL;
}

static const enum counting_rollup rollups_by_reduction[] = {
	[REDUCE_SUM] = COUNTING_ROLLUP_SUM,
	[REDUCE_AVERAGE] = COUNTING_ROLLUP_AVERAGE,
	[REDUCE_MIN] = COUNTING_ROLLUP_MIN,
	[REDUCE_MAX] = COUNTING_ROLLUP_MAX,
};

static bool compile_reduction_step(struct compiler *compiler, const struct expression *expression,
				   const struct compiled_expression_result *left,
				   struct compiled_expression_result *value)
{
	enum counter_program_operation_kind operation =
		(enum counter_program_operation_kind)(PROGRAM_REDUCE_SUM + (int)expression->detail);
	struct counter_program_step *step;
	uint32_t *table = NULL;
	struct value_shape rest;

	shape_copy_without_dimensions(&left->shape,
				      expression->dimensions ? expression->dimensions : ~0u, &rest);
	if (rest.count == left->shape.count) {
		*value = *left; /* it has none of these dimensions */
		return true;
	}
	if (left->values == 0) {
		*value = *left;
		return true;
	}
	if (shape_get_value_count(&rest) != 1) {
		table = allocate_index_table(compiler, expression->offset, left->values);
		if (table == NULL)
			return false;
		shape_fill_index_map(&left->shape, &rest, table);
	} else {
		rest.count = 0;
	}
	step = append_program_step(compiler, expression->offset, operation, &rest, value);
	if (step == NULL)
		return false;
	step->left = left->operand;
	step->right.table = table;
	step->groups = step->values;
	step->values = left->values;
	return true;
}

static bool compile_reduce(struct compiler *compiler, const struct expression *expression,
			   struct compiled_expression_result *value)
{
	const struct counter *event =
		find_event_named_by_expression(compiler->within, expression->left);
	struct compiled_expression_result left;

	if (event != NULL && event->has_rollups) {
		if (expression->dimensions != 0)
			return compiler_fail(
				compiler, expression->offset,
				"the hardware gives no instances of %s: it can only be "
				"reduced as a whole",
				event->name);
		if (!find_or_add_program_input(compiler, event,
					       rollups_by_reduction[expression->detail],
					       COUNTING_ACCUMULATE_NONE, value))
			return false;
		value->shape.count = 0;
		return true;
	}
	return compile_expression(compiler, expression->left, &left) &&
	       compile_reduction_step(compiler, expression, &left, value);
}

static bool is_position_selected(const struct expression_dimension_selection *pick,
				 uint32_t position)
{
	for (uint32_t i = 0; i < pick->count; i++) {
		if (position >= pick->ranges[i].first && position <= pick->ranges[i].last)
			return true;
	}
	return false;
}

/* Which indices along the axis are kept. */
static bool compute_selected_axis_indices(struct compiler *compiler,
					  const struct expression_dimension_selection *pick,
					  struct shape_axis *axis, uint32_t **kept)
{
	uint32_t *indices =
		memory_pool_allocate_array(compiler->memory, axis->size, sizeof(*indices));
	uint32_t *positions =
		memory_pool_allocate_array(compiler->memory, axis->size, sizeof(*positions));
	uint32_t count = 0;

	if (indices == NULL || positions == NULL)
		return compiler_fail_no_memory(compiler);
	for (uint32_t i = 0; i < axis->size; i++) {
		if (!is_position_selected(pick, shape_axis_get_position(axis, i)))
			continue;
		indices[count] = i;
		positions[count++] = shape_axis_get_position(axis, i);
	}
	axis->size = count;
	axis->positions = positions;
	*kept = indices;
	return true;
}

/* A dimension that a value does not have is at position 0. */
static bool selection_excludes_absent_dimension(const struct expression *expression,
						const struct value_shape *shape)
{
	const struct expression_dimension_selection *pick = expression->dimension_selections;

	for (; pick != NULL; pick = pick->next) {
		if (shape_find_axis_by_dimension(shape, pick->dimension) == NULL &&
		    !is_position_selected(pick, 0))
			return true;
	}
	return false;
}

static bool compile_select(struct compiler *compiler, const struct expression *expression,
			   struct compiled_expression_result *value)
{
	const struct counter *event =
		find_event_named_by_expression(compiler->within, expression->left);
	uint32_t *kept[SHAPE_AXES_MAX] = {NULL}, *table, singles = 0;
	struct counter_program_step *step;
	struct value_shape shape;
	struct compiled_expression_result left;

	if (event != NULL && event->has_rollups)
		return compiler_fail(compiler, expression->offset,
				     "the hardware gives no instances of %s to select from",
				     event->name);
	if (!compile_expression(compiler, expression->left, &left))
		return false;
	shape = left.shape;
	for (uint32_t i = 0; i < shape.count; i++) {
		const struct expression_dimension_selection *pick =
			expression->dimension_selections;

		while (pick != NULL && pick->dimension != shape.axes[i].dimension)
			pick = pick->next;
		if (pick == NULL)
			continue;
		if (!compute_selected_axis_indices(compiler, pick, &shape.axes[i], &kept[i]))
			return false;
		if (shape.axes[i].size <= 1)
			singles |= 1u << shape.axes[i].dimension;
	}
	*value = left;
	if (left.values == 0 || shape_get_value_count(&shape) == 0 ||
	    selection_excludes_absent_dimension(expression, &shape)) {
		set_value_to_empty(value);
		return true;
	}
	table = allocate_index_table(compiler, expression->offset, shape_get_value_count(&shape));
	if (table == NULL)
		return false;
	shape_fill_selection_table(&shape, &left.shape, kept, table);
	/* A dimension of which one position is left is none any more. */
	shape_copy_without_dimensions(&shape, singles, &shape);
	step = append_program_step(compiler, expression->offset, PROGRAM_GATHER, &shape, value);
	if (step == NULL)
		return false;
	step->left = left.operand;
	step->left.table = table;
	return true;
}

static bool compile_accumulate(struct compiler *compiler, const struct expression *expression,
			       struct compiled_expression_result *value)
{
	const struct counter *event = expression->referenced_counter;

	if (event == NULL || event->kind != COUNTER_EVENT)
		return compiler_fail(compiler, expression->offset,
				     "accumulate() takes a hardware counter, and %s is none",
				     expression->name);
	if (expression->detail != COUNTING_ACCUMULATE_NONE && strcmp(event->block, "SQ") != 0)
		return compiler_fail(
			compiler, expression->offset,
			"only counters of the block SQ are accumulated by the hardware: "
			"%s is of %s",
			event->name, event->block);
	return find_or_add_program_input(compiler, event, COUNTING_ROLLUP_NONE,
					 (enum counting_accumulation_resolution)expression->detail,
					 value);
}

/* ---- counters ---- */

static bool find_compiled_counter(struct compiler *compiler, const struct counter *counter,
				  struct compiled_expression_result *value)
{
	for (uint32_t i = 0; i < compiler->compiled_count; i++) {
		if (compiler->compiled_counters[i].counter == counter) {
			*value = compiler->compiled_counters[i].value;
			return true;
		}
	}
	return false;
}

static bool remember_compiled_counter(struct compiler *compiler, const struct counter *counter,
				      const struct compiled_expression_result *value)
{
	if (!reserve_array_element(compiler, (void **)&compiler->compiled_counters,
				   compiler->compiled_count, &compiler->compiled_capacity,
				   sizeof(struct compiled_counter_entry)))
		return false;
	compiler->compiled_counters[compiler->compiled_count++] =
		(struct compiled_counter_entry){counter, *value};
	return true;
}

static bool compile_counter(struct compiler *compiler, const struct counter *counter,
			    struct compiled_expression_result *value)
{
	const struct counter *within = compiler->within;
	bool made;

	if (counter->kind != COUNTER_DERIVED)
		return find_or_add_program_input(compiler, counter, COUNTING_ROLLUP_NONE,
						 COUNTING_ACCUMULATE_NONE, value);
	if (find_compiled_counter(compiler, counter, value))
		return true;
	compiler->within = counter;
	made = compile_expression(compiler, counter->expression, value);
	compiler->within = within;
	return made && remember_compiled_counter(compiler, counter, value);
}

static bool compile_reference(struct compiler *compiler, const struct expression *expression,
			      struct compiled_expression_result *value)
{
	if (expression->referenced_counter == NULL)
		return compiler_fail(compiler, expression->offset, "there is no counter '%s'",
				     expression->name);
	if (compiler->within == compiler->outermost_counter)
		compiler->outermost_offset = expression->offset;
	return compile_counter(compiler, expression->referenced_counter, value);
}

static bool compile_expression(struct compiler *compiler, const struct expression *expression,
			       struct compiled_expression_result *value)
{
	switch (expression->kind) {
	case EXPRESSION_NUMBER:
		return compile_constant(compiler, expression->number, value);
	case EXPRESSION_NAME:
		return compile_reference(compiler, expression, value);
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

static void *move_array_to_pool(struct compiler *compiler, void *array, size_t count, size_t size)
{
	void *kept = count != 0 ? memory_pool_allocate_array(compiler->memory, count, size) : NULL;

	if (kept != NULL)
		memcpy(kept, array, count * size);
	else if (count != 0)
		compiler_fail_no_memory(compiler);
	free(array);
	return kept;
}

struct counter_program *counter_program_compile(struct memory_pool *memory,
						const struct counter *counter,
						struct expression_problem *problem)
{
	struct counter_program *program = memory_pool_allocate(memory, sizeof(*program));
	struct compiler compiler = {memory, problem, program, .within = counter,
				    .outermost_counter = counter};
	struct compiled_expression_result value = {.values = 0};

	*problem = (struct expression_problem){.offset = 0};
	if (program == NULL) {
		compiler_fail_no_memory(&compiler);
		return NULL;
	}
	compile_counter(&compiler, counter, &value);
	program->shape = value.shape;
	program->values = value.values;
	program->result = value.operand;
	program->steps = move_array_to_pool(&compiler, program->steps, program->steps_count,
					    sizeof(*program->steps));
	program->inputs = move_array_to_pool(&compiler, program->inputs, program->inputs_count,
					     sizeof(*program->inputs));
	program->constants =
		move_array_to_pool(&compiler, program->constants, program->constants_count,
				   sizeof(*program->constants));
	free(compiler.compiled_counters);
	return compiler.failed ? NULL : program;
}
