/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Fuzzes plan_is_valid(): in what it accepts, everything leads inside.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "binary/plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t read_all(const void *bytes, uint64_t size)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < size; i++)
		sum += ((const uint8_t *)bytes)[i];
	return sum;
}

static uint64_t use(const struct plan *plan)
{
	const struct plan_header *header = plan->header;
	const uint8_t *bytes = (const uint8_t *)header;
	uint64_t sum = read_all(bytes + header->stubs.offset, header->stubs.count);

	if (header->frames.count)
		sum += read_all(bytes + header->frames.offset, header->frames.count);
	for (uint64_t i = 0; i < header->functions.count; i++) {
		const struct plan_function *function = &plan_get_functions(plan)[i];
		if (function->stub) {
			sum += plan_get_sites(plan)[function->site].vaddr;
			sum += bytes[header->stubs.offset + function->stub - PLAN_STUBS];
		}
	}
	for (uint64_t i = 0; i < header->sites.count; i++) {
		const struct plan_site *site = &plan_get_sites(plan)[i];
		for (uint32_t k = 0; k < site->move_count; k++)
			sum += bytes[header->stubs.offset +
				     plan_get_moves(plan)[site->first_move + k].to - PLAN_STUBS];
		if (site->island)
			sum += plan_get_sites(plan)[site->island - 1].vaddr;
		sum += plan_get_functions(plan)[site->function].vaddr;
	}
	return sum + plan_compute_checksum(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static volatile uint64_t result;
	uint8_t *copy = malloc(size + 8); /* aligned, and no larger than said */

	if (!copy)
		return 0;
	memcpy(copy, data, size);
	if (plan_is_valid(copy, size))
		result = result + use(&(struct plan){.header = (const void *)copy, .size = size});
	free(copy);
	return 0;
}
