/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the profiled program gets from kymo: libkymo and libkymo-dl in LD_PRELOAD, the settings in
 * KYMO_*, and libkymo-dl as the tool of OpenMP and Kokkos; and what the result directory gets:
 * launch.json.
 */
#ifndef KYMO_LAUNCH_LAUNCH_H
#define KYMO_LAUNCH_LAUNCH_H

#include <limits.h>
#include <stdbool.h>
#include <time.h>

#include "launch/result_path.h"
#include "launch/supervise.h"
#include "settings/effective.h"

/* One run, from the command line to the end of the program. */
struct launch {
	const struct effective_settings *settings;
	char **arguments; /* of the program; NULL-terminated */
	size_t argument_count;
	struct timespec start;
	struct result_place place; /* of outputs */
	const char *result;        /* its path, by which they are written */
	char *session;             /* directory with spool/ and launch.json: `result`, or another */
	bool is_session_in_memory; /* session: one in memory, to be removed */
	bool is_session_to_be_moved; /* session: one on the disk, to be moved to `result` at the end
				      */
	struct outside_collector *from_outside; /* samples processes that nothing is loaded into */
	bool is_sampled_from_outside;           /* the program itself, and so all that it starts */
	bool attached;                          /* the program ran before */
	bool loads_tool_library_early;          /* the tool library is to be there from the start */
	const char *plan_socket_path; /* where processes ask what to instrument, or NULL */
	const char *causal_directory; /* of a causal session, or NULL */
	/* kymo's cost of an executed image, a fork, a signal; 0: not known */
	uint64_t image_load_cost_ns, fork_cost_ns, signal_cost_ns;
};

/* Makes result and session directories and spool/. */
int launch_create_directories(struct launch *launch, struct problem *problem);
/* libkymo.so by a path that LD_PRELOAD can name. */
int launch_find_libkymo_preload_path(char path[PATH_MAX], struct problem *problem);
/* The environment of the profiled program, which preloads `library`; malloc'ed, free with
 * launch_environment_destroy(). */
int launch_environment_create(const struct launch *launch, const char *library, char **environment,
			      char ***ret, struct problem *problem);
/* Variables that launch_add_device_runtime_variables() makes again from what is inherited. */
bool launch_is_device_runtime_variable(const char *variable);
/* What makes device runtimes load the tool library. Adds up to five entries. */
bool launch_add_device_runtime_variables(const struct launch *launch, char *const *environment,
					 char **list, size_t *count);
/* The plugin of NCCL and RCCL, and its events. */
bool launch_add_nccl_variables(const struct launch *launch, char *const *environment, char **list,
			       size_t *count);
/* The tool library, where it is to be there from the start, or false and "": PATH_MAX bytes. */
bool launch_find_tool_library_to_preload(const struct launch *launch, char *path);
/* What is to be preloaded besides, or false and "": PATH_MAX bytes. */
bool launch_find_opencl_library_to_preload(const struct launch *launch, char *path);
void launch_environment_destroy(char **environment);
/* Writes launch.json; `end` is NULL before the program runs. */
int launch_write_json(const struct launch *launch, const struct supervised_program_end *end,
		      struct problem *problem);
/* Removes a session directory that is not that of the results; one on the disk is
 * moved there if it is to be kept. 0, or negative errno: it stays where it is. */
int launch_move_or_remove_session(struct launch *launch, bool keep, struct problem *problem);
/* Removes what launch_create_directories() made: nothing was run. Results that were there before
 * stay. */
void launch_remove_created_directories(struct launch *launch);

#endif
