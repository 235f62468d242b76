/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Devices. Runtimes of OpenMP 5.1 report begin and end of everything ("emi"); older ones only that
 * data operations and kernel launches happen, which then are marks.
 */
#include "libkymo-dl/ompt.h"

static enum ompt_region_name target_kind_to_region_name(int kind)
{
	switch (kind > OMPT_TARGET_NOWAIT ? kind - OMPT_TARGET_NOWAIT : kind) {
	case OMPT_TARGET_REGION:
		return OMPT_NAME_TARGET;
	case OMPT_TARGET_ENTER_DATA:
		return OMPT_NAME_TARGET_ENTER_DATA;
	case OMPT_TARGET_EXIT_DATA:
		return OMPT_NAME_TARGET_EXIT_DATA;
	case OMPT_TARGET_UPDATE:
		return OMPT_NAME_TARGET_UPDATE;
	default:
		return OMPT_NAME_NONE;
	}
}

static enum ompt_region_name target_data_op_to_region_name(int operation)
{
	switch (operation > OMPT_DATA_ASYNC ? operation - OMPT_DATA_ASYNC : operation) {
	case OMPT_DATA_ALLOC:
		return OMPT_NAME_TARGET_ALLOC;
	case OMPT_DATA_TO_DEVICE:
		return OMPT_NAME_TARGET_TO_DEVICE;
	case OMPT_DATA_FROM_DEVICE:
		return OMPT_NAME_TARGET_FROM_DEVICE;
	case OMPT_DATA_DELETE:
		return OMPT_NAME_TARGET_DELETE;
	case OMPT_DATA_ASSOCIATE:
		return OMPT_NAME_TARGET_ASSOCIATE;
	case OMPT_DATA_DISASSOCIATE:
		return OMPT_NAME_TARGET_DISASSOCIATE;
	default:
		return OMPT_NAME_NONE;
	}
}

static void target_begin_or_end_region(int kind, int endpoint, int device, const void *code)
{
	struct region_value values[] = {ompt_address_to_value("code", code),
					ompt_signed_to_value("device", device)};

	if (endpoint & OMPT_BEGIN)
		ompt_begin_region(target_kind_to_region_name(kind), 0, values, 2);
	if (endpoint & OMPT_END)
		ompt_end_region(target_kind_to_region_name(kind), 0);
}

static void target_on_region_emi(int kind, int endpoint, int device, union ompt_data *task,
				 union ompt_data *target_task, union ompt_data *target,
				 const void *code)
{
	(void)task;
	(void)target_task;
	(void)target;
	target_begin_or_end_region(kind, endpoint, device, code);
}

static void target_on_region(int kind, int endpoint, int device, union ompt_data *task, uint64_t id,
			     const void *code)
{
	(void)task;
	(void)id;
	target_begin_or_end_region(kind, endpoint, device, code);
}

/* ---- data ---- */

enum { TARGET_DATA_VALUE_COUNT = 6 };

static void fill_target_data_values(struct region_value values[TARGET_DATA_VALUE_COUNT],
				    const void *from, int from_device, const void *to,
				    int to_device, size_t bytes, const void *code)
{
	values[0] = ompt_address_to_value("code", code);
	values[1] = ompt_number_to_value("bytes", bytes);
	values[2] = ompt_signed_to_value("from_device", from_device);
	values[3] = ompt_address_to_value("from", from);
	values[4] = ompt_signed_to_value("to_device", to_device);
	values[5] = ompt_address_to_value("to", to);
}

static void target_on_data_op_emi(int endpoint, union ompt_data *task, union ompt_data *target,
				  uint64_t *id, int operation, void *from, int from_device,
				  void *to, int to_device, size_t bytes, const void *code)
{
	struct region_value values[TARGET_DATA_VALUE_COUNT];

	(void)task;
	(void)target;
	(void)id;
	fill_target_data_values(values, from, from_device, to, to_device, bytes, code);
	if (endpoint & OMPT_BEGIN)
		ompt_begin_region(target_data_op_to_region_name(operation), 0, values,
				  TARGET_DATA_VALUE_COUNT);
	if (endpoint & OMPT_END)
		ompt_end_region(target_data_op_to_region_name(operation), 0);
}

static void target_on_data_op(uint64_t target, uint64_t id, int operation, void *from,
			      int from_device, void *to, int to_device, size_t bytes,
			      const void *code)
{
	struct region_value values[TARGET_DATA_VALUE_COUNT];

	(void)target;
	(void)id;
	fill_target_data_values(values, from, from_device, to, to_device, bytes, code);
	ompt_record_mark(target_data_op_to_region_name(operation), values, TARGET_DATA_VALUE_COUNT);
}

/* ---- kernels ---- */

static void target_on_submit_emi(int endpoint, union ompt_data *target, uint64_t *id,
				 unsigned teams)
{
	struct region_value values[] = {ompt_number_to_value("requested_teams", teams)};

	(void)target;
	(void)id;
	if (endpoint & OMPT_BEGIN)
		ompt_begin_region(OMPT_NAME_TARGET_SUBMIT, 0, values, 1);
	if (endpoint & OMPT_END)
		ompt_end_region(OMPT_NAME_TARGET_SUBMIT, 0);
}

static void target_on_submit(uint64_t target, uint64_t id, unsigned teams)
{
	struct region_value values[] = {ompt_number_to_value("requested_teams", teams)};

	(void)target;
	(void)id;
	ompt_record_mark(OMPT_NAME_TARGET_SUBMIT, values, 1);
}

static void set_emi_or_plain_target_callback(ompt_set_callback set, int emi_event,
					     ompt_function emi, int event, ompt_function plain)
{
	if (set(emi_event, emi) < OMPT_SET_SOMETIMES)
		set(event, plain);
}

void ompt_set_target_callbacks(ompt_set_callback set)
{
	set_emi_or_plain_target_callback(set, OMPT_TARGET_EMI, (ompt_function)target_on_region_emi,
					 OMPT_TARGET, (ompt_function)target_on_region);
	set_emi_or_plain_target_callback(set, OMPT_TARGET_DATA_OP_EMI,
					 (ompt_function)target_on_data_op_emi, OMPT_TARGET_DATA_OP,
					 (ompt_function)target_on_data_op);
	set_emi_or_plain_target_callback(set, OMPT_TARGET_SUBMIT_EMI,
					 (ompt_function)target_on_submit_emi, OMPT_TARGET_SUBMIT,
					 (ompt_function)target_on_submit);
}
