/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The end of a tool: its contexts stop, work that is still running is waited for (not for ever),
 * its buffers are handed over, its finalize function is called, once; after that nothing of it is.
 */
#include "core/base/ticks.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/code_objects.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/runtimes/clients.h"
#include "libkymo-sdk/runtimes/device_sink.h"

#define FINALIZE_WORK_TIMEOUT_NS  ((uint64_t)5 * 1000000000u)
#define FINALIZE_FLUSH_TIMEOUT_NS ((uint64_t)5 * 1000000000u)

static _Atomic bool finalization_begun_flag;

static void flush_client_buffers(uint32_t client)
{
	if (!sdk_buffers_flush_of_client(client, FINALIZE_FLUSH_TIMEOUT_NS))
		sdk_print_log_line(SDK_LOG_WARNING,
				   "a tool's buffer could not be delivered at its end");
}

void sdk_finalize_client(struct sdk_client *client)
{
	int ready = SDK_CLIENT_INITIALIZED;
	uint32_t handle = client->id->handle;

	if (!atomic_compare_exchange_strong(&client->state, &ready, SDK_CLIENT_FINALIZING))
		return;
	/* Work that is reported only when it is finished is no context's any more once they are
	 * stopped. */
	sdk_backends_flush();
	sdk_code_objects_report_unloads(sdk_client_get_context_bits(handle));
	sdk_contexts_stop_of_client(handle);
	sdk_backends_drain(FINALIZE_WORK_TIMEOUT_NS);
	flush_client_buffers(handle);
	if (client->result.finalize)
		client->result.finalize(client->result.tool_data);
	flush_client_buffers(handle);
	sdk_contexts_close_and_wait_of_client(handle);
	sdk_buffers_destroy_of_client(handle);
	atomic_store(&client->state, SDK_CLIENT_GONE);
}

static void log_lost_event_and_record_counts(void)
{
	uint64_t lost = atomic_load(&sdk_signal_handler_lost_event_count), dropped = 0;

	for (uint32_t i = 0; i < sdk_buffers_get_count(); i++)
		dropped += atomic_load(&sdk_buffer_get_by_number(i)->dropped_total_count);
	if (lost)
		sdk_print_log_line(SDK_LOG_ERROR,
				   "%llu events of signal handlers were not reported",
				   (unsigned long long)lost);
	if (dropped)
		sdk_print_log_line(SDK_LOG_ERROR,
				   "%llu records were dropped: their buffers were full",
				   (unsigned long long)dropped);
}

void sdk_finalize_all_clients(void)
{
	if (sdk_get_init_status() <= 0 || atomic_exchange(&finalization_begun_flag, true))
		return;
	sdk_set_fini_status(-1);
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++)
		sdk_finalize_client(&sdk_clients[i]);
	sdk_backends_finish();
	sdk_callback_thread_end_all();
	log_lost_event_and_record_counts();
	sdk_set_fini_status(1);
}

void sdk_abandon_clients_of_contexts(uint64_t contexts)
{
	for (; contexts; contexts &= contexts - 1) {
		uint32_t handle =
			sdk_context_get_client_by_bit((unsigned)__builtin_ctzll(contexts));

		if (!handle)
			continue;
		for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
			if (sdk_clients[i].id->handle == handle)
				atomic_store(&sdk_clients[i].state, SDK_CLIENT_GONE);
		}
		sdk_contexts_close_of_client(handle);
		sdk_buffers_destroy_of_client(handle);
		sdk_print_log_line(SDK_LOG_WARNING,
				   "a tool's function was running during fork(): the child goes on "
				   "without the tool");
	}
}

/* The only tool ends everything with it. */
void sdk_finalize_client_by_id(rocprofiler_client_id_t id)
{
	struct sdk_client *found = NULL;
	unsigned ready = 0;

	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		struct sdk_client *client = &sdk_clients[i];

		if (atomic_load(&client->state) != SDK_CLIENT_INITIALIZED)
			continue;
		ready++;
		if (client->id->handle == id.handle)
			found = client;
	}
	if (found && ready == 1 && sdk_get_init_status() > 0)
		sdk_finalize_all_clients();
	else if (found)
		sdk_finalize_client(found);
}
