/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The targets of one stretch of code: its function or line, then those that it is inlined into, as
 * far as they are in scope.
 */
#ifndef KYMO_BINARY_CAUSAL_CHAIN_H
#define KYMO_BINARY_CAUSAL_CHAIN_H

#include "binary/causal_scope.h"
#include "binary/causal_stretches.h"
#include "binary/causal_targets.h"

/* Deeper inlining than this is cut off at its outer end. */
#define CAUSAL_CHAIN_MAX 64

struct causal_chain_function;
struct causal_chain_file;

struct causal_chain {
	struct causal_module *module;
	const struct causal_scopes *scopes;
	struct causal_targets *targets;
	const struct causal_stretches *stretches;
	struct causal_chain_function
		*functions;              /* what is known of each of the debug information */
	struct causal_chain_file *files; /* by path; open addressing */
	size_t file_slots, files_used;
	const char *last_symbol; /* of code without debug information, and its target */
	uint32_t last_id;
	uint32_t ids[CAUSAL_CHAIN_MAX];
	size_t count;
};

/* -ENOMEM. What it points to outlives it. */
int causal_chain_init(struct causal_chain *ret, struct causal_module *module,
		      const struct causal_scopes *scopes, struct causal_targets *targets,
		      const struct causal_stretches *stretches);
void causal_chain_deinit(struct causal_chain *chain);

/* Puts the targets of the stretch into `ids`, innermost first, none twice. -ENOMEM. */
int causal_chain_find(struct causal_chain *chain, size_t stretch);

#endif
