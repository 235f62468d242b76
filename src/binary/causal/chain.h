/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The targets of one stretch of code: its function or line, then those that it is inlined into, as
 * far as they are in scope.
 */
#ifndef KYMO_BINARY_CAUSAL_CHAIN_H
#define KYMO_BINARY_CAUSAL_CHAIN_H

#include "binary/causal/address_ranges.h"
#include "binary/causal/scope.h"
#include "binary/causal/targets.h"

/* Deeper inlining than this is cut off at its outer end. */
#define CAUSAL_INLINE_CHAIN_TARGETS_MAX 64

struct causal_function_scope_and_target_state;
struct causal_source_file_verdict_slot;

struct causal_inline_target_finder {
	struct causal_module *module;
	const struct causal_scopes *scopes;
	struct causal_targets *targets;
	const struct causal_code_ranges *code_ranges;
	struct causal_function_scope_and_target_state
		*functions; /* what is known of each of the debug information */
	struct causal_source_file_verdict_slot *files; /* by path; open addressing */
	size_t file_slot_count, used_file_slot_count;
	const char *last_symbol; /* of code without debug information, and its target */
	uint32_t last_symbol_target_id;
	uint32_t target_ids[CAUSAL_INLINE_CHAIN_TARGETS_MAX];
	size_t count;
};

/* -ENOMEM. What it points to outlives it. */
int causal_inline_target_finder_init(struct causal_inline_target_finder *ret,
				     struct causal_module *module,
				     const struct causal_scopes *scopes,
				     struct causal_targets *targets,
				     const struct causal_code_ranges *stretches);
void causal_inline_target_finder_deinit(struct causal_inline_target_finder *chain);

/* Puts the targets of the stretch into `ids`, innermost first, none twice. -ENOMEM. */
int causal_inline_target_finder_find_ids(struct causal_inline_target_finder *chain, size_t stretch);

#endif
