/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The steps of a program, one after the other; see program.h. In a signal handler or under a lock
 * it would be at home too: it takes no memory and calls nothing.
 */
#include "counters/program.h"

static const double *get_operand_values(const struct counter_program *program,
					const struct counter_program_operand *operand,
					const double *const *inputs, const double *work)
{
	switch (operand->memory_space) {
	case PROGRAM_SPACE_INPUT:
		return inputs[operand->input] + operand->offset;
	case PROGRAM_SPACE_WORK:
		return work + operand->offset;
	case PROGRAM_SPACE_CONSTANT:
		break;
	}
	return program->constants + operand->offset;
}

static inline double get_operand_value_at(const double *values,
					  const struct counter_program_operand *operand, size_t at)
{
	return values[operand->table ? operand->table[at] : at * operand->stride];
}

static inline double apply_arithmetic_operation(enum counter_program_operation_kind operation,
						double left, double right)
{
	switch (operation) {
	case PROGRAM_ADD:
		return left + right;
	case PROGRAM_SUBTRACT:
		return left - right;
	case PROGRAM_MULTIPLY:
		return left * right;
	default:
		return right == 0.0 ? 0.0 : left / right;
	}
}

/* One loop for each operation and kind of operand: the compiler makes them of this. */
static inline __attribute__((always_inline)) void
apply_arithmetic_to_arrays(enum counter_program_operation_kind operation,
			   const struct counter_program_step *step, const double *left,
			   const double *right, double *result)
{
	if (step->left.table || step->right.table) {
		for (size_t i = 0; i < step->values; i++)
			result[i] = apply_arithmetic_operation(
				operation, get_operand_value_at(left, &step->left, i),
				get_operand_value_at(right, &step->right, i));
	} else if (step->left.stride && step->right.stride) {
		for (size_t i = 0; i < step->values; i++)
			result[i] = apply_arithmetic_operation(operation, left[i], right[i]);
	} else if (step->right.stride) {
		for (size_t i = 0; i < step->values; i++)
			result[i] = apply_arithmetic_operation(operation, left[0], right[i]);
	} else {
		for (size_t i = 0; i < step->values; i++)
			result[i] = apply_arithmetic_operation(
				operation, left[i * step->left.stride], right[0]);
	}
}

static void evaluate_binary_step(const struct counter_program_step *step, const double *left,
				 const double *right, double *result)
{
	switch (step->operation) {
	case PROGRAM_ADD:
		apply_arithmetic_to_arrays(PROGRAM_ADD, step, left, right, result);
		break;
	case PROGRAM_SUBTRACT:
		apply_arithmetic_to_arrays(PROGRAM_SUBTRACT, step, left, right, result);
		break;
	case PROGRAM_MULTIPLY:
		apply_arithmetic_to_arrays(PROGRAM_MULTIPLY, step, left, right, result);
		break;
	default:
		apply_arithmetic_to_arrays(PROGRAM_DIVIDE, step, left, right, result);
	}
}

static double reduce_all_values(const struct counter_program_step *step, const double *values)
{
	double result = values[0];

	if (step->operation == PROGRAM_REDUCE_MIN) {
		for (size_t i = 1; i < step->values; i++)
			result = values[i] < result ? values[i] : result;
	} else if (step->operation == PROGRAM_REDUCE_MAX) {
		for (size_t i = 1; i < step->values; i++)
			result = values[i] > result ? values[i] : result;
	} else {
		for (size_t i = 1; i < step->values; i++)
			result += values[i];
		if (step->operation == PROGRAM_REDUCE_AVERAGE)
			result /= (double)step->values;
	}
	return result;
}

static void reduce_groups(const struct counter_program_step *step, const double *values,
			  double *result)
{
	const uint32_t *table = step->right.table;
	bool smallest = step->operation == PROGRAM_REDUCE_MIN;
	bool largest = step->operation == PROGRAM_REDUCE_MAX;
	size_t each = step->values / step->groups;

	for (size_t i = 0; i < step->groups; i++)
		result[i] = smallest ? __builtin_inf() : largest ? -__builtin_inf() : 0.0;
	for (size_t i = 0; i < step->values; i++) {
		double *group = &result[table[i]];

		if (smallest)
			*group = values[i] < *group ? values[i] : *group;
		else if (largest)
			*group = values[i] > *group ? values[i] : *group;
		else
			*group += values[i];
	}
	for (size_t i = 0; step->operation == PROGRAM_REDUCE_AVERAGE && i < step->groups; i++)
		result[i] /= (double)each;
}

static void evaluate_step(const struct counter_program *program,
			  const struct counter_program_step *step, const double *const *inputs,
			  double *work)
{
	const double *left = get_operand_values(program, &step->left, inputs, work);
	double *result = work + step->result;

	switch (step->operation) {
	case PROGRAM_NEGATE:
		for (size_t i = 0; i < step->values; i++)
			result[i] = -left[i];
		break;
	case PROGRAM_GATHER:
		for (size_t i = 0; i < step->values; i++)
			result[i] = left[step->left.table[i]];
		break;
	case PROGRAM_REDUCE_SUM:
	case PROGRAM_REDUCE_AVERAGE:
	case PROGRAM_REDUCE_MIN:
	case PROGRAM_REDUCE_MAX:
		if (step->right.table)
			reduce_groups(step, left, result);
		else
			result[0] = reduce_all_values(step, left);
		break;
	default:
		evaluate_binary_step(step, left,
				     get_operand_values(program, &step->right, inputs, work),
				     result);
	}
}

const double *counter_program_evaluate(const struct counter_program *program,
				       const double *const *inputs, double *work)
{
	for (uint32_t i = 0; i < program->steps_count; i++)
		evaluate_step(program, &program->steps[i], inputs, work);
	return get_operand_values(program, &program->result, inputs, work);
}
