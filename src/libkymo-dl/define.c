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

void publish_fill_user_calls_table(const struct runtime_api *api)
{
	user_calls_fill_direct_table(api);
}

void publish_set_api_of_entries_and_users(const struct runtime_api *api)
{
	entries_set_runtime_api(api);
	user_binding_bind_all_to_libkymo();
}

EXPORTED uint32_t kymo_dl_region_define(const char *category, const char *name)
{
	const struct runtime_api *api = name ? dl_runtime_find_or_load() : NULL;

	if (!api)
		return 0;
	return category ? api->region_find_or_add_name_in(category, name)
			: api->region_find_or_add_name(REGION_INSTRUMENTED, name);
}

EXPORTED uint32_t kymo_dl_function_define(uint64_t address)
{
	const struct runtime_api *api = dl_runtime_find_or_load();

	return api ? api->region_find_or_add_function(REGION_INSTRUMENTED, address) : 0;
}

EXPORTED int kymo_dl_active(void)
{
	const struct runtime_api *api = dl_runtime_find_or_load();

	return api && api->active();
}

EXPORTED void kymo_dl_connect(void)
{
	dl_runtime_find_loaded();
	user_binding_find_and_attach_all();
}

__attribute__((constructor)) static void connect_at_start(void)
{
	const struct runtime_api *api;

	kymo_dl_connect();
	/* Nothing in such a program will call us later. */
	if (!rewritten_any_loaded())
		return;
	api = dl_runtime_is_wanted() ? dl_runtime_find_or_load() : dl_runtime_find_loaded();
	if (api)
		api->rewritten_library_opened();
}
