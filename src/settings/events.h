/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * perf events by whatever name they are given: the kernel's generic names, `pmu/event/`, names of
 * libpfm4, tracepoints. The command finds them; the profiled process gets codes.
 */
#ifndef KYMO_SETTINGS_EVENTS_H
#define KYMO_SETTINGS_EVENTS_H

#include "common/perf_events.h"
#include "common/settings_value.h"
#include "settings/effective.h"

/* The next item of a list; commas between slashes belong to an item. */
bool events_next_list_item(struct text_slice *rest, struct text_slice *item);
/* 0, or -EINVAL with the nearest name. `source` says where the name stands. */
int events_find_by_name(struct text_slice name, const char *source, struct perf_event_code *ret,
			struct problem *problem);
/* Are all of these events, or components? */
int events_check_list(const char *list, const char *source, struct problem *problem);
int events_check_component_list(const char *list, const char *source, struct problem *problem);

/* The setting's list as the process reads it, where commas only separate items: colons between
 * slashes. malloc'ed; NULL: out of memory. */
char *events_replace_commas_in_items(const char *list);
/* Codes (perf_event_parse_code()) of the events of a list, in their order, for the process; says
 * which ones this machine cannot open. malloc'ed; NULL: out of memory. */
char *events_format_code_list(const char *list);

#endif
