/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The calls of instrumented programs that are not on their hot path, and the library's constructor.
 */
#include "libkymo-dl/kymo_dl.h"
#include "libkymo-dl/publish.h"
#include "libkymo-dl/rewritten.h"
#include "libkymo-dl/runtime.h"
#include "libkymo-dl/user_binding.h"
#include "libkymo-dl/user_calls.h"

#define EXPORTED __attribute__((visibility("default")))

void publish_prepare(const struct kymo_runtime_api *api)
{
	user_calls_connect(api);
}

void publish_runtime(const struct kymo_runtime_api *api)
{
	entries_connect(api);
	user_binding_connect();
}

EXPORTED uint32_t kymo_dl_region_define(const char *category, const char *name)
{
	const struct kymo_runtime_api *api = name ? dl_runtime_load() : NULL;

	if (!api)
		return 0;
	return category ? api->region_named_in(category, name)
			: api->region_named(REGION_HOST, name);
}

EXPORTED uint32_t kymo_dl_function_define(uint64_t address)
{
	const struct kymo_runtime_api *api = dl_runtime_load();

	return api ? api->region_function(REGION_HOST, address) : 0;
}

EXPORTED int kymo_dl_active(void)
{
	const struct kymo_runtime_api *api = dl_runtime_load();

	return api && api->active();
}

EXPORTED void kymo_dl_connect(void)
{
	dl_runtime_find();
	user_binding_find();
}

__attribute__((constructor)) static void define_start(void)
{
	const struct kymo_runtime_api *api;

	kymo_dl_connect();
	/* Nothing in such a program will call us later. */
	if (!rewritten_present())
		return;
	api = dl_runtime_wanted() ? dl_runtime_load() : dl_runtime_find();
	if (api)
		api->rewritten_opened();
}
