/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The OpenMP tool: who sets which callbacks.
 */
#ifndef KYMO_LIBKYMO_DL_OMPT_H
#define KYMO_LIBKYMO_DL_OMPT_H

#include "libkymo-dl/ompt_interface.h"
#include "libkymo-dl/ompt_thread.h"

/* Threads, parallel regions, worksharing, synchronisation. */
void ompt_set_host_callbacks(ompt_set_callback set);
/* Explicit tasks. */
void ompt_set_task_callbacks(ompt_set_callback set);
/* Devices. */
void ompt_set_target_callbacks(ompt_set_callback set);

static inline struct region_value ompt_address_to_value(const char *name, const void *address)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_ADDRESS, .number = (uint64_t)(uintptr_t)address};
}

static inline struct region_value ompt_number_to_value(const char *name, uint64_t number)
{
	return (struct region_value){.name = name, .type = SPOOL_VALUE_UNSIGNED, .number = number};
}

static inline struct region_value ompt_signed_to_value(const char *name, int64_t number)
{
	return (struct region_value){
		.name = name, .type = SPOOL_VALUE_SIGNED, .number = (uint64_t)number};
}

static inline struct region_value ompt_text_to_value(const char *name, const char *text)
{
	return (struct region_value){.name = name, .type = SPOOL_VALUE_TEXT, .text = text};
}

#endif
