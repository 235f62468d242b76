/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument.h.
 */
#include "experiments/instrument.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "planning/server.h"

#define CPU_BREAKPOINT_COUNT 4u /* of the processor */
/* The field for a signal's data, which older headers lack (perf_event_open(2), sig_data). */
#define PERF_EVENT_ATTR_WITH_SIG_DATA_BYTES 128

struct causal_instrumentation {
	struct selection_rules *rules;
	struct plan_server *server;
	char directory[4096];
};

/* Can a process have a breakpoint that tells it by SIGTRAP? */
static bool can_use_breakpoints(void)
{
	struct {
		struct perf_event_attr base;
		char more[PERF_EVENT_ATTR_WITH_SIG_DATA_BYTES];
	} attr = {.base = {.type = PERF_TYPE_BREAKPOINT,
			   .size = PERF_EVENT_ATTR_WITH_SIG_DATA_BYTES,
			   .bp_type = HW_BREAKPOINT_X,
			   .bp_addr = (uint64_t)(uintptr_t)can_use_breakpoints,
			   .bp_len = sizeof(long),
			   .sample_period = 1,
			   .disabled = 1,
			   .exclude_kernel = 1,
			   .exclude_hv = 1,
			   .inherit = 1,
			   .inherit_thread = 1,
			   .remove_on_exec = 1,
			   .sigtrap = 1}};
	int event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (event >= 0)
		close(event);
	return event >= 0;
}

bool causal_instrumentation_is_needed(const struct causal_places *places,
				      const struct effective_settings *settings)
{
	bool functions = false, spins = false;

	for (size_t i = 0; i < places->count; i++) {
		functions |= places->list[i].function != NULL;
		spins |= places->list[i].kind == CAUSAL_POINT_SPIN;
	}
	return functions &&
	       (spins || places->count > CPU_BREAKPOINT_COUNT ||
		!strcmp(effective_setting_text(settings, SETTING_SAMPLING_SOURCE), "timer") ||
		!can_use_breakpoints());
}

/* "^(f|g\(int\))(\.isra\..*)?$": names literally, and what compilers add to those of clones. */
static char *make_functions_pattern(const struct causal_places *places)
{
	static const char tail[] = ")(\\.(isra|constprop|lto_priv|llvm)\\..*)?$";
	size_t size = sizeof(tail) + 8, at = 0;
	char *pattern;

	for (size_t i = 0; i < places->count; i++)
		size += places->list[i].function ? 2 * strlen(places->list[i].function) + 1 : 0;
	pattern = malloc(size);
	if (!pattern)
		return NULL;
	at += (size_t)snprintf(pattern, size, "^(");
	for (size_t i = 0; i < places->count; i++) {
		const char *name = places->list[i].function;

		if (name && at > 2)
			pattern[at++] = '|';
		for (; name && *name; name++) {
			if (strchr("\\^$.[]|()*+?{}", *name))
				pattern[at++] = '\\';
			pattern[at++] = *name;
		}
	}
	memcpy(pattern + at, tail, sizeof(tail));
	return pattern;
}

static int create_selection_rules(struct causal_instrumentation *instrument,
				  const struct causal_places *places, struct problem *problem)
{
	char *pattern = make_functions_pattern(places);
	struct selection_request request = {0};
	int error;

	if (!pattern)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < SELECTION_RULE_KIND_COUNT; i++) {
		request.rule_expressions[i] = "";
		request.sources[i] = "--progress";
	}
	request.rule_expressions[SELECTION_RULE_INCLUDE] =
		request.rule_expressions[SELECTION_RULE_RESTRICT] = pattern;
	error = selection_rules_create(&request, &instrument->rules, problem);
	free(pattern);
	return error;
}

int causal_instrumentation_start(const struct causal_places *places,
				 const struct effective_settings *settings, const char *session,
				 struct causal_instrumentation **ret, struct problem *problem)
{
	struct causal_instrumentation *instrument = calloc(1, sizeof(*instrument));
	struct plan_server_options options = {.session = session};
	int error;

	if (!instrument)
		return problem_set(problem, -ENOMEM, "out of memory");
	snprintf(instrument->directory, sizeof(instrument->directory), "%s/instrumentation",
		 session);
	if (mkdir(instrument->directory, 0777) && errno != EEXIST)
		error = problem_set(problem, -errno, "cannot make '%s': %s", instrument->directory,
				    strerror(errno));
	else
		error = create_selection_rules(instrument, places, problem);
	options.instrumentation_setup = (struct instrumentation_setup){
		.rules = instrument->rules,
		.debug_search_path = effective_setting_text(settings, SETTING_DEBUG_PATH),
		.directory = instrument->directory};
	if (!error)
		error = plan_server_start(&options, &instrument->server, problem);
	if (error) {
		causal_instrumentation_stop(instrument);
		return error;
	}
	*ret = instrument;
	return 0;
}

const char *causal_instrumentation_get_socket_path(const struct causal_instrumentation *instrument)
{
	return plan_server_get_socket_path(instrument->server);
}

void causal_instrumentation_stop(struct causal_instrumentation *instrument)
{
	if (!instrument)
		return;
	plan_server_destroy(instrument->server);
	selection_rules_destroy(instrument->rules);
	free(instrument);
}
