/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Each version of the API: what NCCL does for collectives, sends and receives, through its own
 * structures, is what the file then says.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drive.h"

static unsigned version;
static const struct drive_identity identity = {"job \"1\"\n", 0xabcdef, 2, 8, 3};
#define GPU 1756135989724672000u

static void run_collective(const struct driver *driver, void *context, uint64_t number)
{
	void *group_api = NULL, *call = NULL, *launch, *operation, *channels[2];

	if (version >= 5) {
		group_api = drive_simple(driver, context, NULL, NCCL_KIND_GROUP_API);
		drive_state(driver, group_api, NCCL_STATE_GROUP_START_API_STOP, NULL);
		call = drive_simple(driver, context, group_api, NCCL_KIND_COLLECTIVE_API);
		drive_stop(driver, call);
		drive_state(driver, group_api, NCCL_STATE_GROUP_END_API_START, NULL);
		launch = drive_simple(driver, context, group_api, NCCL_KIND_KERNEL_LAUNCH);
		drive_stop(driver, launch);
	}
	operation = drive_collective(driver, context, call, "AllReduce", number, 2);
	drive_stop(driver, operation);
	if (version >= 5)
		drive_stop(driver, group_api);
	if (version < 4)
		return;
	/* 24 channels of a group are not the first ones. */
	for (unsigned i = 0; i < 2; i++)
		channels[i] = drive_channel(driver, context, operation, 8 + i,
					    GPU + number * 1000 + i * 10);
	for (unsigned i = 0; i < 2; i++)
		drive_channel_stop(driver, channels[i], GPU + number * 1000 + 500 + i * 10);
}

static void run_network(const struct driver *driver, void *context)
{
	struct event_state_arguments bytes = {.known = true, .bytes = 65536, .steps = 1};
	void *operation = drive_p2p(driver, context, NULL, "Send", 5);
	void *proxy = drive_proxy_op(driver, context, operation, 1, 5, getpid());
	void *step;

	drive_stop(driver, operation);
	drive_state(driver, proxy, version < 4 ? 0 : NCCL_STATE_OP_IN_PROGRESS,
		    version < 4 ? &bytes : NULL);
	for (int i = 0; i < 4; i++) {
		step = drive_proxy_step(driver, context, proxy, i);
		drive_state(driver, step, NCCL_STATE_SEND_GPU_WAIT, NULL);
		if (version >= 4)
			drive_state(driver, step, NCCL_STATE_SEND_PEER_WAIT, &bytes);
		drive_state(driver, step, NCCL_STATE_SEND_WAIT, version < 4 ? NULL : &bytes);
		drive_stop(driver, step);
	}
	drive_stop(driver, proxy);
}

static void body(void)
{
	struct driver driver = drive_open(version);
	void *context = drive_init(&driver, &identity), *control;

	for (uint64_t i = 0; i < 3; i++)
		run_collective(&driver, context, i);
	run_network(&driver, context);
	control = drive_simple(&driver, context, NULL, NCCL_KIND_PROXY_CONTROL);
	drive_state(&driver, control, NCCL_STATE_CONTROL_IDLE, NULL);
	drive_state(&driver, control, NCCL_STATE_CONTROL_APPEND_END,
		    &(struct event_state_arguments){.known = true, .appended = 7});
	drive_stop(&driver, control);
	drive_wait_finished(4);
	drive_finalize(&driver, context);
}

static void check_collective(const struct recording *recording, uint64_t number)
{
	const struct nccl_operation *operation = drive_find(recording, "AllReduce", number);

	assert_int_equal(operation->kind, NCCL_KIND_COLLECTIVE);
	assert_int_equal(operation->api, version);
	assert_int_equal(operation->ordinal, number);
	assert_int_equal(operation->count, 1000);
	assert_int_equal(operation->bytes, 4000);
	assert_int_equal(operation->channels_expected, 2);
	assert_int_equal(operation->warps, 16);
	assert_string_equal(drive_name(recording, operation->data_type), "ncclFloat32");
	assert_string_equal(drive_name(recording, operation->algorithm), "RING");
	assert_string_equal(drive_name(recording, operation->protocol), "SIMPLE");
	assert_true(operation->stop > operation->start);
	assert_true(operation->flags & NCCL_OPERATION_SEALED);
	assert_int_equal(operation->user_tag, version == 7 ? 77 : 0);
	assert_int_equal(operation->traffic_bytes, version <= 2 ? 8000 : 0);
	if (version < 4) {
		assert_int_equal(operation->state, NCCL_OPERATION_ENQUEUED);
		assert_true(operation->flags & NCCL_OPERATION_ENQUEUE_ONLY);
		return;
	}
	assert_int_equal(operation->state, NCCL_OPERATION_DONE);
	assert_int_equal(operation->channels_started, 0x300);
	assert_int_equal(operation->channels_stopped, 0x300);
	assert_int_equal(operation->gpu_start, GPU + number * 1000);
	assert_int_equal(operation->gpu_stop, GPU + number * 1000 + 510);
	if (version >= 5)
		assert_true(operation->launch && operation->launch <= operation->start);
}

static void check_network(const struct recording *recording)
{
	const struct nccl_operation *operation = drive_find(recording, "Send", 0);

	assert_int_equal(operation->kind, NCCL_KIND_P2P);
	assert_int_equal(operation->peer, 5);
	assert_int_equal(operation->bytes, 4096);
	assert_int_equal(operation->state, NCCL_OPERATION_DONE);
	assert_true(operation->flags & NCCL_OPERATION_NETWORK);
	assert_int_equal(operation->networks_started, 1);
	assert_int_equal(operation->networks_stopped, 1);
	assert_true(operation->network_stop > operation->network_start);
	assert_int_equal(operation->network_bytes, version < 4 ? 0 : 4 * 64);
	assert_int_equal(drive_count(recording, NCCL_KIND_PROXY_STEP), 4);
	for (size_t i = 0; i < recording->events; i++) {
		const struct nccl_event *event = recording->event[i];

		assert_true(event->flags & NCCL_EVENT_STOPPED);
		if (event->kind == NCCL_KIND_PROXY_STEP) {
			assert_true(event->proxy_step.gpu && event->proxy_step.wait);
			assert_int_equal(!!event->proxy_step.peer_or_flush, version >= 4);
		} else if (event->kind == NCCL_KIND_PROXY_OP) {
			assert_int_equal(event->parent, operation->id);
			assert_int_equal(event->c, 5);
			assert_true(event->flags & NCCL_EVENT_SEND);
		} else if (event->kind == NCCL_KIND_PROXY_CONTROL) {
			assert_int_equal(event->c, 7);
		}
	}
}

static void check_communicator(const struct recording *recording)
{
	const struct nccl_communicator_record *communicator = recording->communicator[0];

	assert_int_equal(recording->communicators, 1);
	assert_int_equal(communicator->hash, 0xabcdef);
	assert_int_equal(communicator->api, version);
	assert_int_equal(communicator->operations, 4);
	assert_int_equal(communicator->finished, 4);
	assert_int_equal(communicator->collectives, 3);
	assert_int_equal(communicator->p2ps, 1);
	assert_true(communicator->flags & NCCL_COMMUNICATOR_FINALIZED);
	if (version < 4) {
		assert_string_equal(communicator->name, "old \"name\"\n");
		assert_int_equal(communicator->rank, 0);
		assert_int_equal(communicator->ranks, 6); /* peer 5 was seen */
		assert_true(communicator->flags & NCCL_COMMUNICATOR_RANKS_INFERRED);
		return;
	}
	assert_string_equal(communicator->name, "job \"1\"\n");
	assert_int_equal(communicator->rank, 3);
	assert_int_equal(communicator->ranks, 8);
	assert_int_equal(communicator->nodes, 2);
}

static void test_version(void **state)
{
	const struct recording *recording;
	uint64_t sum = 0;

	version = (unsigned)(uintptr_t)*state;
	drive_directory();
	assert_child(body);
	recording = drive_read();
	assert_int_equal(recording->files, 1);
	assert_int_equal(recording->header->api, version);
	assert_int_equal(recording->header->state, NCCL_FILE_EXITED);
	assert_true(recording->header->clock_count >= 2);
	assert_true(recording->header->heartbeats > 0);
	for (uint64_t i = 0; i < 3; i++)
		check_collective(recording, i);
	check_network(recording);
	check_communicator(recording);
	assert_int_equal(drive_count(recording, NCCL_KIND_KERNEL_CHANNEL), version < 4 ? 0 : 6);
	assert_int_equal(drive_count(recording, NCCL_KIND_COLLECTIVE_API), version < 5 ? 0 : 3);
	for (size_t i = 0; i < NCCL_LOSS_COUNT; i++)
		sum += recording->header->losses[i];
	assert_int_equal(sum, 0);
	assert_int_equal(recording->totals, 2);
	assert_int_equal(recording->total[0]->operations + recording->total[1]->operations, 4);
}

/* ---- masks ---- */

static void test_masks(void **state)
{
	static const uint32_t expected[] = {0, 0x0e, 0x0e, 0x0e, 0x0e, 0xf4e, 0x1f4e, 0x1f4e};

	(void)state;
	for (version = 1; version <= VERSIONS; version++) {
		drive_directory();
		assert_child(body);
		assert_int_equal(drive_read()->header->mask, expected[version]);
		assert_int_equal(drive_read()->communicator[0]->mask, expected[version]);
		assert_int_equal(drive_read()->header->mask_default, 1);
	}
}

/* ---- what v6 and v7 have ---- */

static void copy_engine(void)
{
	struct driver driver = drive_open(version);
	void *context = drive_init(&driver, &identity);
	void *operation = drive_simple(&driver, context, NULL, NCCL_KIND_CE_COLLECTIVE), *handle;
	struct plugin_event_start_arguments sync = {
		.kind = NCCL_KIND_CE_SYNC, .parent = operation, .complete = true, .ranks = 8};
	struct plugin_event_start_arguments batch = {
		.kind = NCCL_KIND_CE_BATCH, .parent = operation, .operations = 7, .bytes = 12345};

	drive_start(&driver, context, &handle, &sync);
	drive_stop(&driver, handle);
	drive_start(&driver, context, &handle, &batch);
	drive_stop(&driver, handle);
	drive_stop(&driver, operation);
	if (version == 7) {
		struct plugin_event_start_arguments phase = {.kind = NCCL_KIND_KERNEL_PHASE,
							     .channel = 3,
							     .phase = 1,
							     .gpu_timestamp = GPU};
		struct event_state_arguments end = {.known = true, .gpu_time = GPU + 99};

		operation = drive_collective(&driver, context, NULL, "Reduce", 0, 1);
		phase.parent = drive_channel(&driver, context, operation, 3, GPU);
		drive_start(&driver, context, &handle, &phase);
		drive_state(&driver, handle, NCCL_STATE_KERNEL_PHASE_STOP, &end);
		drive_stop(&driver, handle);
		drive_channel_stop(&driver, phase.parent, GPU + 100);
		drive_stop(&driver, operation);
	}
	drive_wait_finished(version == 7 ? 2 : 1);
}

static void test_copy_engine(void **state)
{
	const struct recording *recording;

	(void)state;
	for (version = 6; version <= 7; version++) {
		drive_directory();
		assert_child(copy_engine);
		recording = drive_read();
		assert_int_equal(recording->operation[0]->kind, NCCL_KIND_CE_COLLECTIVE);
		assert_true(recording->operation[0]->flags & NCCL_OPERATION_ENQUEUE_ONLY);
		assert_string_equal(drive_name(recording, recording->operation[0]->algorithm),
				    "CE");
		assert_int_equal(drive_count(recording, NCCL_KIND_CE_SYNC), 1);
		assert_int_equal(drive_count(recording, NCCL_KIND_CE_BATCH), 1);
		assert_int_equal(drive_count(recording, NCCL_KIND_KERNEL_PHASE), version == 7);
		for (size_t i = 0; i < recording->events; i++) {
			const struct nccl_event *event = recording->event[i];

			if (event->kind == NCCL_KIND_CE_SYNC)
				assert_true(event->a == 1 && event->c == 8);
			if (event->kind == NCCL_KIND_CE_BATCH)
				assert_true(event->c == 7 && event->ce.bytes == 12345);
			if (event->kind == NCCL_KIND_KERNEL_PHASE)
				assert_true(event->a == 3 && event->b == 1 &&
					    event->gpu.start == GPU && event->gpu.stop == GPU + 99);
		}
	}
}

int main(void)
{
	struct CMUnitTest tests[VERSIONS + 2];
	static const char *const names[] = {"", "v1", "v2", "v3", "v4", "v5", "v6", "v7"};

	for (unsigned i = 1; i <= VERSIONS; i++)
		tests[i - 1] = (struct CMUnitTest){names[i], test_version, NULL, NULL,
						   (void *)(uintptr_t)i};
	tests[VERSIONS] = (struct CMUnitTest)cmocka_unit_test(test_masks);
	tests[VERSIONS + 1] = (struct CMUnitTest)cmocka_unit_test(test_copy_engine);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
