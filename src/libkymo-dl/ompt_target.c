/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Devices. Runtimes of OpenMP 5.1 report begin and end of everything ("emi"); older ones only that
 * data operations and kernel launches happen, which then are marks.
 */
#include "libkymo-dl/ompt.h"

static enum ompt_name target_name(int kind)
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

static enum ompt_name target_data_name(int operation)
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

static void target_record(int kind, int endpoint, int device, const void *code)
{
	struct region_value values[] = {ompt_address("code", code), ompt_signed("device", device)};

	if (endpoint & OMPT_BEGIN)
		ompt_begin(target_name(kind), 0, values, 2);
	if (endpoint & OMPT_END)
		ompt_end(target_name(kind), 0);
}

static void target_region_emi(int kind, int endpoint, int device, union ompt_data *task,
			      union ompt_data *target_task, union ompt_data *target,
			      const void *code)
{
	(void)task;
	(void)target_task;
	(void)target;
	target_record(kind, endpoint, device, code);
}

static void target_region(int kind, int endpoint, int device, union ompt_data *task, uint64_t id,
			  const void *code)
{
	(void)task;
	(void)id;
	target_record(kind, endpoint, device, code);
}

/* ---- data ---- */

enum { TARGET_DATA_VALUES = 6 };

static void target_data_values(struct region_value values[TARGET_DATA_VALUES], const void *from,
			       int from_device, const void *to, int to_device, size_t bytes,
			       const void *code)
{
	values[0] = ompt_address("code", code);
	values[1] = ompt_number("bytes", bytes);
	values[2] = ompt_signed("from_device", from_device);
	values[3] = ompt_address("from", from);
	values[4] = ompt_signed("to_device", to_device);
	values[5] = ompt_address("to", to);
}

static void target_data_emi(int endpoint, union ompt_data *task, union ompt_data *target,
			    uint64_t *id, int operation, void *from, int from_device, void *to,
			    int to_device, size_t bytes, const void *code)
{
	struct region_value values[TARGET_DATA_VALUES];

	(void)task;
	(void)target;
	(void)id;
	target_data_values(values, from, from_device, to, to_device, bytes, code);
	if (endpoint & OMPT_BEGIN)
		ompt_begin(target_data_name(operation), 0, values, TARGET_DATA_VALUES);
	if (endpoint & OMPT_END)
		ompt_end(target_data_name(operation), 0);
}

static void target_data(uint64_t target, uint64_t id, int operation, void *from, int from_device,
			void *to, int to_device, size_t bytes, const void *code)
{
	struct region_value values[TARGET_DATA_VALUES];

	(void)target;
	(void)id;
	target_data_values(values, from, from_device, to, to_device, bytes, code);
	ompt_mark(target_data_name(operation), values, TARGET_DATA_VALUES);
}

/* ---- kernels ---- */

static void target_submit_emi(int endpoint, union ompt_data *target, uint64_t *id, unsigned teams)
{
	struct region_value values[] = {ompt_number("requested_teams", teams)};

	(void)target;
	(void)id;
	if (endpoint & OMPT_BEGIN)
		ompt_begin(OMPT_NAME_TARGET_SUBMIT, 0, values, 1);
	if (endpoint & OMPT_END)
		ompt_end(OMPT_NAME_TARGET_SUBMIT, 0);
}

static void target_submit(uint64_t target, uint64_t id, unsigned teams)
{
	struct region_value values[] = {ompt_number("requested_teams", teams)};

	(void)target;
	(void)id;
	ompt_mark(OMPT_NAME_TARGET_SUBMIT, values, 1);
}

static void target_set(ompt_set_callback set, int emi_event, ompt_function emi, int event,
		       ompt_function plain)
{
	if (set(emi_event, emi) < OMPT_SET_SOMETIMES)
		set(event, plain);
}

void ompt_target_set(ompt_set_callback set)
{
	target_set(set, OMPT_TARGET_EMI, (ompt_function)target_region_emi, OMPT_TARGET,
		   (ompt_function)target_region);
	target_set(set, OMPT_TARGET_DATA_OP_EMI, (ompt_function)target_data_emi,
		   OMPT_TARGET_DATA_OP, (ompt_function)target_data);
	target_set(set, OMPT_TARGET_SUBMIT_EMI, (ompt_function)target_submit_emi,
		   OMPT_TARGET_SUBMIT, (ompt_function)target_submit);
}
