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

#include "core/futex.h"
#include "core/ticks.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/keep_loaded.h"
#include "libkymo-sdk/runtimes.h"
#include "libkymo-sdk/start.h"
#include "libkymo-sdk/state.h"

#define REGISTER_WAIT_NS ((uint64_t)10 * 1000000000u)
#define REGISTER_LOOK_NS 100000000u

struct sdk_client sdk_clients[SDK_CLIENTS_MAX];
_Atomic unsigned sdk_client_count;

static _Atomic uint32_t register_state; /* a futex */
enum { REGISTER_NOT_BEGUN, REGISTER_GOES_ON, REGISTER_DONE };
static _Atomic uint64_t register_thread; /* that does it */

static uint64_t own_tid(void)
{
	return (uint64_t)sys_call0(SYS_gettid);
}

/* The tool keeps the address for the life of the process. The handle is not for it to change. */
static rocprofiler_client_id_t *client_make_id(uint32_t handle)
{
	rocprofiler_client_id_t contents = {sizeof(contents), NULL, handle};
	rocprofiler_client_id_t *id = malloc(sizeof(*id));

	if (id)
		memcpy(id, &contents, sizeof(contents));
	return id;
}

/* What the tool answered may be a shorter struct, of an older header. */
static bool client_take_result(struct sdk_client *client,
			       const rocprofiler_tool_configure_result_t *result)
{
	size_t least = offsetof(rocprofiler_tool_configure_result_t, tool_data) + sizeof(void *);

	if (!result)
		return false;
	if (result->size < least) {
		sdk_say(SDK_LOG_ERROR,
			"tool '%s': the size in its configure result is %zu, less than %zu; it is "
			"left out",
			client->id->name ? client->id->name : "?", result->size, least);
		return false;
	}
	client->result = *result;
	sdk_keep_loaded((void (*)(void))result->initialize);
	sdk_keep_loaded((void (*)(void))result->finalize);
	return true;
}

static void client_ask(rocprofiler_configure_func_t configure)
{
	unsigned number = atomic_load(&sdk_client_count);
	struct sdk_client *client = &sdk_clients[number];
	uint32_t handle = (uint32_t)(sdk_handle_base() + number);
	bool wants;

	if (number == SDK_CLIENTS_MAX)
		return;
	client->id = client_make_id(handle);
	if (!client->id)
		return;
	client->configure = configure;
	sdk_keep_loaded((void (*)(void))configure);
	atomic_store(&client->state, SDK_CLIENT_ASKED);
	atomic_store(&sdk_client_count, number + 1);
	sdk_set_configuring_client(handle);
	wants = client_take_result(
		client,
		configure(ROCPROFILER_VERSION, ROCPROFILER_VERSION_STRING, number, client->id));
	sdk_set_configuring_client(0);
	if (!wants) {
		sdk_context_remove_client(handle);
		sdk_buffer_remove_client(handle);
		atomic_store(&client->state, SDK_CLIENT_GONE);
	}
}

static void client_initialize(struct sdk_client *client)
{
	int error = 0;

	if (atomic_load(&client->state) != SDK_CLIENT_ASKED)
		return;
	sdk_set_configuring_client(client->id->handle);
	atomic_store(&client->state, SDK_CLIENT_READY);
	if (client->result.initialize)
		error = client->result.initialize(sdk_client_finalize, client->result.tool_data);
	sdk_set_configuring_client(0);
	if (!error)
		return;
	sdk_say(SDK_LOG_ERROR, "tool '%s': its initialize function failed (%d); it is left out",
		client->id->name ? client->id->name : "?", error);
	atomic_store(&client->state, SDK_CLIENT_GONE);
	sdk_context_remove_client(client->id->handle);
	sdk_buffer_remove_client(client->id->handle);
}

static bool clients_any_ready(void)
{
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (atomic_load(&sdk_clients[i].state) == SDK_CLIENT_READY)
			return true;
	}
	return false;
}

static void register_functions(rocprofiler_configure_func_t *functions, unsigned count)
{
	unsigned first = atomic_load(&sdk_client_count);

	for (unsigned i = 0; i < count; i++)
		client_ask(functions[i]);
	for (unsigned i = first; i < atomic_load(&sdk_client_count); i++)
		client_initialize(&sdk_clients[i]);
}

/* What runs from here on, constructors of tools among it, may come back here. */
static void register_enter(void)
{
	atomic_store(&register_thread, own_tid());
	sdk_set_init_status(-1);
}

static void register_run(rocprofiler_configure_func_t *functions, unsigned count)
{
	register_functions(functions, count);
	if (clients_any_ready()) {
		sdk_callback_thread_start(sdk_callback_thread_find(0));
		sdk_start_finalizers();
	} else {
		sdk_callback_thread_end_all();
	}
	sdk_set_init_status(1);
	atomic_store(&register_thread, 0);
}

/* Another thread registers: it is waited for, so that what this thread does next is traced. */
static rocprofiler_status_t register_wait(void)
{
	uint64_t deadline = ticks_clock_ns(CLOCK_MONOTONIC) + REGISTER_WAIT_NS;

	if (atomic_load(&register_thread) == own_tid())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	while (atomic_load(&register_state) == REGISTER_GOES_ON) {
		if (ticks_clock_ns(CLOCK_MONOTONIC) > deadline) {
			sdk_say(SDK_LOG_WARNING,
				"a tool is still being initialized after 10 s; going on without");
			return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
		}
		futex_wait(&register_state, REGISTER_GOES_ON, REGISTER_LOOK_NS);
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

static bool register_begin(uint32_t from)
{
	return atomic_compare_exchange_strong(&register_state, &from, REGISTER_GOES_ON);
}

static void register_end(void)
{
	atomic_store(&register_state, REGISTER_DONE);
	futex_wake(&register_state);
	sdk_runtimes_propagate();
}

static void register_all(rocprofiler_configure_func_t first)
{
	rocprofiler_configure_func_t functions[SDK_CLIENTS_MAX];

	sdk_start();
	register_enter();
	register_run(functions, sdk_find_tools(first, functions, SDK_CLIENTS_MAX));
	register_end();
}

rocprofiler_status_t sdk_register(rocprofiler_configure_func_t first)
{
	if (sdk_fini_status())
		return ROCPROFILER_STATUS_ERROR_FINALIZED;
	if (!register_begin(REGISTER_NOT_BEGUN))
		return register_wait();
	register_all(first);
	return ROCPROFILER_STATUS_SUCCESS;
}

static bool register_is_known(rocprofiler_configure_func_t function)
{
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		if (sdk_clients[i].configure == function)
			return true;
	}
	return false;
}

/* ---- the functions of rocprofiler-sdk/registration.h ---- */

SDK_EXPORT rocprofiler_status_t rocprofiler_force_configure(rocprofiler_configure_func_t function)
{
	if (sdk_fini_status())
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	if (register_begin(REGISTER_NOT_BEGUN)) {
		register_all(function);
		return ROCPROFILER_STATUS_SUCCESS;
	}
	if (function && atomic_load(&register_thread) == own_tid() && sdk_find_within(function))
		return ROCPROFILER_STATUS_SUCCESS;
	if (register_wait() || !function || register_is_known(function) ||
	    !register_begin(REGISTER_DONE))
		return ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED;
	register_enter();
	register_run(&function, 1);
	register_end();
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_is_initialized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = sdk_init_status();
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_is_finalized(int *status)
{
	if (!status)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*status = sdk_fini_status();
	return ROCPROFILER_STATUS_SUCCESS;
}
