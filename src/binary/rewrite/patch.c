/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The patches of a plan in the bytes of a file.
 */
#include "binary/rewrite/private.h"

#include <errno.h>
#include <string.h>

#define LOOP_OR_BLOCK_FLAGS (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK)

static bool function_is_to_be_patched(const struct rewrite_job *rewrite, uint64_t number)
{
	const struct plan_function *function = plan_get_functions(rewrite->plan) + number;

	return rewrite->modes[number] != PLAN_MODE_OFF && function->reason == PLAN_PATCHABLE &&
	       function->stub != 0;
}

/* A site and those that must be written with it: `write` 0 compares with what was there. */
static int compare_or_write_site_and_islands(struct rewrite_job *rewrite, uint64_t site_number,
					     bool write)
{
	const struct plan_table *table = &rewrite->plan->header->sites;
	uint64_t left = table->count;

	while (left-- > 0 && site_number < table->count) {
		const struct plan_site *site = plan_get_sites(rewrite->plan) + site_number;
		uint64_t offset;

		if (site->length == 0 || site->length > sizeof(site->original) ||
		    !rewrite_vaddr_to_offset(rewrite, site->vaddr, site->length, &offset))
			return -ESTALE;
		if (write && !rewrite->is_arena_made_at_start)
			memcpy(rewrite->bytes + offset, site->patched, site->length);
		else if (!write &&
			 memcmp(rewrite->bytes + offset, site->original, site->length) != 0)
			return -ESTALE;
		if (site->island == 0)
			return 0;
		site_number = site->island - 1;
	}
	return -EBADMSG;
}

int rewrite_apply_patches(struct rewrite_job *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;

	for (int write = 0; write <= 1; write++) {
		for (uint64_t i = 0; i < plan->functions.count; i++) {
			const struct plan_function *function =
				plan_get_functions(rewrite->plan) + i;

			if (!function_is_to_be_patched(rewrite, i))
				continue;
			if (compare_or_write_site_and_islands(rewrite, function->site, write))
				return problem_set(
					rewrite->problem, -ESTALE,
					"%s: the code at 0x%llx is not what its plan was made of",
					rewrite->name, (unsigned long long)function->vaddr);
			rewrite->result->functions += write;
		}
	}
	return 0;
}

void rewrite_write_arena_code(const struct rewrite_job *rewrite, uint8_t *to)
{
	const struct plan_header *plan = rewrite->plan->header;
	uint8_t *stubs = to + PLAN_TRAMPOLINE_SIZE;

	memset(to, 0xcc,
	       PLAN_TRAMPOLINE_SIZE); /* int3: while the trampoline is closed nobody comes here */
	memcpy(stubs, (const uint8_t *)plan + plan->stubs.offset, (size_t)plan->stubs.count);
	for (uint64_t i = 0; i < plan->functions.count; i++) {
		const struct plan_function *function = plan_get_functions(rewrite->plan) + i;
		uint64_t stub = (uint64_t)function->stub - PLAN_STUBS;

		if (!function_is_to_be_patched(rewrite, i) ||
		    function->flags & LOOP_OR_BLOCK_FLAGS || function->stub < PLAN_STUBS ||
		    plan->stubs.count < PLAN_STUB_BODY || stub > plan->stubs.count - PLAN_STUB_BODY)
			continue;
		stubs[stub + PLAN_STUB_MODE] = rewrite->modes[i] == PLAN_MODE_COUNT
						       ? PLAN_STUB_TO_COUNT
						       : PLAN_STUB_TO_FULL;
	}
}
