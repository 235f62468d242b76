/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What programs look for that are annotated for Coz: coz.h finds these by dlsym(RTLD_DEFAULT), and
 * does nothing where they are not there, or where they know nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libkymo-dl/runtime.h"

#define EXPORTED __attribute__((visibility("default")))

/* A counter is two words, of which the program counts in the first. */
uint64_t *_coz_get_counter(int type, const char *name);
void _coz_pre_block(void);
void _coz_post_block(int skip_delays);
void _coz_add_delays(void);

/* `type`: 1 progress, 2 begin, 3 end. */
EXPORTED uint64_t *_coz_get_counter(int type, const char *name)
{
	const struct runtime_api *api = dl_runtime_find_loaded();

	return api && type >= 1 && type <= 3
		       ? api->causal_find_or_add_counter((uint32_t)type - 1, name)
		       : NULL;
}

EXPORTED void _coz_pre_block(void)
{
	const struct runtime_api *api = dl_runtime_find_loaded();

	if (api)
		api->causal_before_block();
}

EXPORTED void _coz_post_block(int skip_delays)
{
	const struct runtime_api *api = dl_runtime_find_loaded();

	if (api)
		api->causal_after_block(skip_delays);
}

EXPORTED void _coz_add_delays(void)
{
	const struct runtime_api *api = dl_runtime_find_loaded();

	if (api)
		api->causal_pay_delay();
}
