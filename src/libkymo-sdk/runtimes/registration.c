/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Registration: all tools are asked first (rocprofiler_configure), then those that want to be one
 * are initialized, in the same order. It happens once, when the first runtime announces itself or a
 * tool forces it. A tool that comes later by rocprofiler_force_configure() is registered alone.
 *
 * Nothing is held while a tool's function runs. The thread that registers may come back here from
 * within it, by way of a runtime that the tool must not call: it is answered, not kept waiting.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "libkymo-sdk/base/keep_loaded.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/runtimes/clients.h"
#include "libkymo-sdk/runtimes/runtimes.h"
#include "libkymo-sdk/runtimes/start.h"

#define TOOL_REGISTRATION_WAIT_NS      ((uint64_t)10 * 1000000000u)
#define TOOL_REGISTRATION_WAIT_STEP_NS 100000000u

struct sdk_client sdk_clients[SDK_CLIENTS_MAX];
_Atomic unsigned sdk_client_count;

static _Atomic uint32_t registration_state; /* a futex */
enum { REGISTRATION_NOT_BEGUN, REGISTRATION_RUNNING, REGISTRATION_DONE };
static _Atomic uint64_t registering_thread_id; /* that does it */

static uint64_t get_calling_thread_id(void)
{
	return (uint64_t)sys_call0(SYS_gettid);
}

/* The tool keeps the address for the life of the process. The handle is not for it to change. */
static rocprofiler_client_id_t *allocate_client_id(uint32_t handle)
{
	rocprofiler_client_id_t contents = {sizeof(contents), NULL, handle};
	rocprofiler_client_id_t *id = malloc(sizeof(*id));

	if (id)
		memcpy(id, &contents, sizeof(contents));
	return id;
}

/* What the tool answered may be a shorter struct, of an older header. */
static bool store_client_configure_result(struct sdk_client *client,
					  const rocprofiler_tool_configure_result_t *result)
{
	size_t least = offsetof(rocprofiler_tool_configure_result_t, tool_data) + sizeof(void *);

	if (!result)
		return false;
	if (result->size < least) {
		sdk_print_log_line(
			SDK_LOG_ERROR,
			"tool '%s': the size in its configure result is %zu, less than %zu; it is "
			"left out",
			client->id->name ? client->id->name : "?", result->size, least);
		return false;
	}
	client->result = *result;
	sdk_keep_library_of_function_loaded((void (*)(void))result->initialize);
	sdk_keep_library_of_function_loaded((void (*)(void))result->finalize);
	return true;
}

static void add_client_and_ask_to_configure(rocprofiler_configure_func_t configure)
{
	unsigned number = atomic_load(&sdk_client_count);
	struct sdk_client *client = &sdk_clients[number];
	uint32_t handle = (uint32_t)(sdk_get_handle_base() + number);
	bool wants;

	if (number == SDK_CLIENTS_MAX)
		return;
	client->id = allocate_client_id(handle);
	if (!client->id)
		return;
	client->configure_function = configure;
	sdk_keep_library_of_function_loaded((void (*)(void))configure);
	atomic_store(&client->state, SDK_CLIENT_CONFIGURED);
	atomic_store(&sdk_client_count, number + 1);
	sdk_set_configuring_client_id(handle);
	wants = store_client_configure_result(
		client,
		configure(ROCPROFILER_VERSION, ROCPROFILER_VERSION_STRING, number, client->id));
	sdk_set_configuring_client_id(0);
	if (!wants) {
		sdk_contexts_remove_of_client(handle);
		sdk_buffers_destroy_of_client(handle);
		atomic_store(&client->state, SDK_CLIENT_GONE);
	}
}

static void initialize_client(struct sdk_client *client)
{
	int error = 0;

	if (atomic_load(&client->state) != SDK_CLIENT_CONFIGURED)
		return;
	sdk_set_configuring_client_id(client->id->handle);
	atomic_store(&client->state, SDK_CLIENT_INITIALIZED);
	if (client->result.initialize)
		error = client->result.initialize(sdk_finalize_client_by_id,
						  client->result.tool_data);
	sdk_set_configuring_client_id(0);
	if (!error)
		return;
	sdk_print_log_line(SDK_LOG_ERROR,
			   "tool '%s': its initialize function failed (%d); it is left out",
			   client->id->name ? client->id->name : "?", error);
	atomic_store(&client->state, SDK_CLIENT_GONE);
	sdk_contexts_remove_of_client(client->id->handle);
	sdk_buffers_destroy_of_client(client->id->handle);
}

static bool is_any_client_initialized(void)
{
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (atomic_load(&sdk_clients[i].state) == SDK_CLIENT_INITIALIZED)
			return true;
	}
	return false;
}

static void configure_and_initialize_clients(rocprofiler_configure_func_t *functions,
					     unsigned count)
{
	unsigned first = atomic_load(&sdk_client_count);

	for (unsigned i = 0; i < count; i++)
		add_client_and_ask_to_configure(functions[i]);
	for (unsigned i = first; i < atomic_load(&sdk_client_count); i++)
		initialize_client(&sdk_clients[i]);
}

/* What runs from here on, constructors of tools among it, may come back here. */
static void mark_thread_as_registering(void)
{
	atomic_store(&registering_thread_id, get_calling_thread_id());
	sdk_set_init_status(-1);
}

static void register_given_tools(rocprofiler_configure_func_t *functions, unsigned count)
{
	configure_and_initialize_clients(functions, count);
	if (is_any_client_initialized()) {
		sdk_callback_thread_start_if_needed(sdk_callback_thread_find_by_number(0));
		sdk_register_finalizers();
	} else {
		sdk_callback_thread_end_all();
	}
	sdk_set_init_status(1);
	atomic_store(&registering_thread_id, 0);
}

/* Another thread registers: it is waited for, so that what this thread does next is traced. */
static rocprofiler_status_t wait_for_registration_of_tools(void)
{
	uint64_t deadline = read_posix_clock_ns(CLOCK_MONOTONIC) + TOOL_REGISTRATION_WAIT_NS;

	if (atomic_load(&registering_thread_id) == get_calling_thread_id())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	while (atomic_load(&registration_state) == REGISTRATION_RUNNING) {
		if (read_posix_clock_ns(CLOCK_MONOTONIC) > deadline) {
			sdk_print_log_line(
				SDK_LOG_WARNING,
				"a tool is still being initialized after 10 s; going on without");
			return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
		}
		futex_wait(&registration_state, REGISTRATION_RUNNING,
			   TOOL_REGISTRATION_WAIT_STEP_NS);
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static bool try_to_begin_registration_of_tools(uint32_t from)
{
	return atomic_compare_exchange_strong(&registration_state, &from, REGISTRATION_RUNNING);
}

static void end_registration_of_tools(void)
{
	atomic_store(&registration_state, REGISTRATION_DONE);
	futex_wake_all_waiters(&registration_state);
	sdk_runtimes_pass_on_tables();
}

static void register_all_tools(rocprofiler_configure_func_t first)
{
	rocprofiler_configure_func_t functions[SDK_CLIENTS_MAX];

	sdk_initialize_library_once();
	mark_thread_as_registering();
	register_given_tools(functions, sdk_find_tools(first, functions, SDK_CLIENTS_MAX));
	end_registration_of_tools();
}

rocprofiler_status_t sdk_register_tools_once(rocprofiler_configure_func_t first)
{
	if (sdk_get_fini_status())
		return ROCPROFILER_STATUS_ERROR_FINALIZED;
	if (!try_to_begin_registration_of_tools(REGISTRATION_NOT_BEGUN))
		return wait_for_registration_of_tools();
	register_all_tools(first);
	return ROCPROFILER_STATUS_SUCCESS;
}

static bool is_tool_registered(rocprofiler_configure_func_t function)
{
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (sdk_clients[i].configure_function == function)
			return true;
	}
	return false;
}

/* ---- the functions of rocprofiler-sdk/registration.h ---- */

SDK_EXPORT rocprofiler_status_t rocprofiler_force_configure(rocprofiler_configure_func_t function)
{
	if (sdk_get_fini_status())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (try_to_begin_registration_of_tools(REGISTRATION_NOT_BEGUN)) {
		register_all_tools(function);
		return ROCPROFILER_STATUS_SUCCESS;
	}
	if (function && atomic_load(&registering_thread_id) == get_calling_thread_id() &&
	    sdk_add_tool_to_current_search(function))
		return ROCPROFILER_STATUS_SUCCESS;
	if (wait_for_registration_of_tools() || !function || is_tool_registered(function) ||
	    !try_to_begin_registration_of_tools(REGISTRATION_DONE))
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	mark_thread_as_registering();
	register_given_tools(&function, 1);
	end_registration_of_tools();
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_is_initialized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = sdk_get_init_status();
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_is_finalized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = sdk_get_fini_status();
	return ROCPROFILER_STATUS_SUCCESS;
}
