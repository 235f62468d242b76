/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The patches of a plan in the bytes of a file.
 */
#include "binary/rewrite_internal.h"

#include <errno.h>
#include <string.h>

#define PLACE_FLAGS (PLAN_FUNCTION_IS_LOOP | PLAN_FUNCTION_IS_BLOCK)

static bool is_on(const struct rewrite *rewrite, uint64_t number)
{
	const struct plan_function *function = plan_functions(rewrite->plan) + number;

	return rewrite->modes[number] != PLAN_MODE_OFF && function->reason == PLAN_PATCHABLE &&
	       function->stub != 0;
}

/* A site and those that must be written with it: `write` 0 compares with what was there. */
static int visit_sites(struct rewrite *rewrite, uint64_t site_number, bool write)
{
	const struct plan_table *table = &rewrite->plan->header->sites;
	uint64_t left = table->count;

	while (left-- > 0 && site_number < table->count) {
		const struct plan_site *site = plan_sites(rewrite->plan) + site_number;
		uint64_t offset;

		if (site->length == 0 || site->length > sizeof(site->original) ||
		    !rewrite_offset(rewrite, site->vaddr, site->length, &offset))
			return -ESTALE;
		if (write)
			memcpy(rewrite->bytes + offset, site->patched, site->length);
		else if (memcmp(rewrite->bytes + offset, site->original, site->length) != 0)
			return -ESTALE;
		if (site->island == 0)
			return 0;
		site_number = site->island - 1;
	}
	return -EBADMSG;
}

int rewrite_patch(struct rewrite *rewrite)
{
	const struct plan_header *plan = rewrite->plan->header;

	for (int write = 0; write <= 1; write++) {
		for (uint64_t i = 0; i < plan->functions.count; i++) {
			const struct plan_function *function = plan_functions(rewrite->plan) + i;

			if (!is_on(rewrite, i))
				continue;
			if (visit_sites(rewrite, function->site, write))
				return problem_set(
					rewrite->problem, -ESTALE,
					"%s: the code at 0x%llx is not what its plan was made of",
					rewrite->name, (unsigned long long)function->vaddr);
			rewrite->result->functions += write;
		}
	}
	return 0;
}

void rewrite_put_code(const struct rewrite *rewrite, uint8_t *to)
{
	const struct plan_header *plan = rewrite->plan->header;
	uint8_t *stubs = to + PLAN_GATE_SIZE;

	memset(to, 0xcc, PLAN_GATE_SIZE); /* int3: while the gate is closed nobody comes here */
	memcpy(stubs, (const uint8_t *)plan + plan->stubs.offset, (size_t)plan->stubs.count);
	for (uint64_t i = 0; i < plan->functions.count; i++) {
		const struct plan_function *function = plan_functions(rewrite->plan) + i;
		uint64_t stub = (uint64_t)function->stub - PLAN_STUBS;

		if (!is_on(rewrite, i) || function->flags & PLACE_FLAGS ||
		    function->stub < PLAN_STUBS || plan->stubs.count < PLAN_STUB_BODY ||
		    stub > plan->stubs.count - PLAN_STUB_BODY)
			continue;
		stubs[stub + PLAN_STUB_MODE] = rewrite->modes[i] == PLAN_MODE_COUNT
						       ? PLAN_STUB_TO_COUNT
						       : PLAN_STUB_TO_FULL;
	}
}
