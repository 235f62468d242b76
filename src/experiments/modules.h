/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The modules of a causal session: each one's map as a file, and where named progress points are in
 * it. A request is believed in nothing: the file that it names must be the one that is mapped (same
 * device and inode, or same build-id).
 */
#ifndef KYMO_EXPERIMENTS_MODULES_H
#define KYMO_EXPERIMENTS_MODULES_H

#include <pthread.h>

#include "experiments/server.h"

struct causal_module_entry;

struct causal_modules {
	pthread_mutex_t lock; /* of list and found; held while a map is made */
	struct causal_scopes *scopes;
	struct causal_targets *targets;
	const struct causal_places *places; /* or NULL */
	bool instrumented;
	unsigned *found; /* by place: in how many modules */
	char *directory, *debug_search_path;
	void (*say)(void *context, const char *text);
	void *context;
	struct causal_module_entry **list;
	size_t count;
};

int causal_modules_init(struct causal_modules *ret, const struct causal_server_options *options,
			struct problem *problem);
void causal_modules_deinit(struct causal_modules *modules);
int causal_modules_make_program_map(struct causal_modules *modules, const char *program,
				    struct problem *problem);
void causal_modules_answer_request(struct causal_modules *modules,
				   const struct causal_request *request,
				   struct causal_answer *answer);
unsigned causal_modules_count_having_place(struct causal_modules *modules, size_t place);

#endif
