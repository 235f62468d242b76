/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The end of a tool: its contexts stop, work that is still running is waited for (not for ever),
 * its buffers are handed over, its finalize function is called, once; after that nothing of it is.
 */
#include "core/ticks.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/code_objects.h"
#include "libkymo-sdk/context.h"
#include "libkymo-sdk/device_sink.h"
#include "libkymo-sdk/state.h"
#include "libkymo-sdk/thread.h"

#define FINALIZE_WORK_NS  ((uint64_t)5 * 1000000000u)
#define FINALIZE_FLUSH_NS ((uint64_t)5 * 1000000000u)

static _Atomic bool finalize_begun;

static void finalize_flush(uint32_t client)
{
	if (!sdk_buffer_flush_client(client, FINALIZE_FLUSH_NS))
		sdk_say(SDK_LOG_WARNING, "a tool's buffer could not be handed over at its end");
}

void sdk_finalize_client(struct sdk_client *client)
{
	int ready = SDK_CLIENT_READY;
	uint32_t handle = client->id->handle;

	if (!atomic_compare_exchange_strong(&client->state, &ready, SDK_CLIENT_ENDING))
		return;
	/* Work that is told only when it is finished is no context's any more once they are
	 * stopped. */
	sdk_device_flush();
	sdk_code_objects_unload_for(sdk_contexts_of(handle));
	sdk_context_stop_client(handle);
	sdk_device_drain(FINALIZE_WORK_NS);
	finalize_flush(handle);
	if (client->result.finalize)
		client->result.finalize(client->result.tool_data);
	finalize_flush(handle);
	sdk_context_close_client(handle);
	sdk_buffer_remove_client(handle);
	atomic_store(&client->state, SDK_CLIENT_GONE);
}

static void finalize_report(void)
{
	uint64_t lost = atomic_load(&sdk_thread_lost), dropped = 0;

	for (uint32_t i = 0; i < sdk_buffer_count(); i++)
		dropped += atomic_load(&sdk_buffer_at(i)->dropped_in_all);
	if (lost)
		sdk_say(SDK_LOG_ERROR, "%llu events of signal handlers were not told",
			(unsigned long long)lost);
	if (dropped)
		sdk_say(SDK_LOG_ERROR, "%llu records were dropped: their buffers were full",
			(unsigned long long)dropped);
}

void sdk_finalize(void)
{
	if (sdk_init_status() <= 0 || atomic_exchange(&finalize_begun, true))
		return;
	sdk_set_fini_status(-1);
	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++)
		sdk_finalize_client(&sdk_clients[i]);
	sdk_device_finish();
	sdk_callback_thread_end_all();
	finalize_report();
	sdk_set_fini_status(1);
}

/* The only tool ends everything with it. */
void sdk_client_finalize(rocprofiler_client_id_t id)
{
	struct sdk_client *found = NULL;
	unsigned ready = 0;

	for (unsigned i = 0; i < atomic_load(&sdk_client_count); i++) {
		struct sdk_client *client = &sdk_clients[i];

		if (atomic_load(&client->state) != SDK_CLIENT_READY)
			continue;
		ready++;
		if (client->id->handle == id.handle)
			found = client;
	}
	if (found && ready == 1 && sdk_init_status() > 0)
		sdk_finalize();
	else if (found)
		sdk_finalize_client(found);
}
