/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the profiled program gets from kymo: libkymo and libkymo-dl in LD_PRELOAD, the settings in
 * KYMO_*, and libkymo-dl as the tool of OpenMP and Kokkos; and what the result directory gets:
 * launch.json.
 */
#ifndef KYMO_CMD_LAUNCH_H
#define KYMO_CMD_LAUNCH_H

#include <stdbool.h>
#include <time.h>

#include "cmd/resolved.h"
#include "cmd/supervise.h"

/* One run, from the command line to the end of the program. */
struct launch {
	const struct resolved *settings;
	char **arguments; /* of the program; NULL-terminated */
	size_t argument_count;
	struct timespec start;
	char *result;  /* directory for outputs; absolute */
	char *session; /* directory with spool/ and launch.json: `result`, or one in memory */
	bool in_memory;
	bool counts_early;            /* the tool library is to be there from the start */
	const char *plan_socket;      /* where processes ask what to instrument, or NULL */
	const char *causal_directory; /* of a causal session, or NULL */
};

/* The absolute path of libkymo.so: beside the build, relative to the installed binary, or where it
 * was installed. *ret is malloc'ed. */
int launch_find_library(char **ret, struct problem *problem);
/* libkymo-dl.so of the same build or installation as `library`, or "" where there is none; into
 * PATH_MAX bytes. */
void launch_front_library(const char *library, char *front);
/* libNAME.so beside `library` (libkymo.so), or where the build tree has it; into PATH_MAX bytes. */
bool launch_find_beside(const char *library, const char *name, char *found);
/* The tool library, likewise; into PATH_MAX bytes. */
int launch_find_sdk(char *sdk, struct problem *problem);
/* Makes result and session directories and spool/. */
int launch_prepare(struct launch *launch, struct problem *problem);
/* The environment of the profiled program; malloc'ed, free with launch_environment_destroy(). */
int launch_environment_create(const struct launch *launch, const char *library, char **environment,
			      char ***ret, struct problem *problem);
/* Variables that launch_add_devices() makes anew from what is inherited. */
bool launch_is_device_list(const char *variable);
/* What makes device runtimes load the tool library; `library` is libkymo.so. Adds up to five
 * entries. */
bool launch_add_devices(const struct launch *launch, char *const *environment, const char *library,
			char **list, size_t *count);
/* The plugin of NCCL and RCCL, and its events. */
bool launch_add_nccl(const struct launch *launch, char *const *environment, const char *library,
		     char **list, size_t *count);
/* The tool library, where it is to be there from the start, or false and "": PATH_MAX bytes. */
bool launch_early_library(const struct launch *launch, const char *library, char *path);
/* What is to be preloaded besides, or false and "": PATH_MAX bytes. */
bool launch_opencl_library(const struct launch *launch, const char *library, char *path);
void launch_environment_destroy(char **environment);
/* Writes launch.json; `end` is NULL before the program runs. */
int launch_write_json(const struct launch *launch, const struct supervised *end,
		      struct problem *problem);
/* Removes a session directory that was in memory. */
void launch_discard_session(struct launch *launch);
/* Removes what launch_prepare() made: nothing was run. Results that were there before stay. */
void launch_discard_result(struct launch *launch);

#endif
