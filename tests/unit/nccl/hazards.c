/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What NCCL does beside the usual sequence, one hazard a test: handles of other processes, handles
 * that were never cleared, children that come late or never, times that are not their own.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/array.h"
#include "drive.h"

#define GPU 1756135989724672000u
static const struct drive_identity identity = {"hazards", 0x77, 1, 4, 2};

static uint64_t loss(enum nccl_loss which)
{
	return drive_read()->header->losses[which];
}

/* ---- PXN: contexts and parents are another process's; nothing says so reliably ---- */

static void foreign(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *handle, *operation, *proxy;
	uint64_t other = (uint64_t)(uintptr_t)context ^ 1ull << 48;
	void *const contexts[] = {NULL,
				  (void *)0x10,
				  malloc(64),
				  &driver,
				  (void *)-1,
				  (void *)(uintptr_t)other,
				  (void *)(uintptr_t)((uint64_t)(uintptr_t)context ^ 1ull << 28),
				  (void *)((uintptr_t)context + 1),
				  (void *)((uintptr_t)context + 8)};
	struct plugin_event_start_arguments event = {.kind = NCCL_KIND_PROXY_OP, .pid = getpid()};

	operation = drive_collective(&driver, context, NULL, "AllReduce", 0, 1);
	for (size_t i = 0; i < ARRAY_SIZE(contexts); i++) {
		handle = (void *)0xdead;
		drive_start(&driver, contexts[i], &handle, &event);
		require(handle == NULL);
		drive_finalize(&driver, contexts[i]);
	}
	/* The parent as an address, as an id of another process, of an event that is none. */
	for (size_t i = 2; i < ARRAY_SIZE(contexts); i++) {
		proxy = drive_proxy_op(&driver, context, contexts[i], 0, 1, getpid());
		require(proxy);
		handle = drive_proxy_step(&driver, context, proxy, 0);
		require(handle);
		drive_stop(&driver, handle);
		drive_stop(&driver, proxy);
	}
	for (size_t i = 1; i < ARRAY_SIZE(contexts); i++) {
		drive_stop(&driver, contexts[i]);
		drive_state(&driver, contexts[i], NCCL_STATE_OP_IN_PROGRESS, NULL);
	}
	drive_stop(&driver, context); /* a context is no event */
	drive_stop(&driver, operation);
	free(contexts[2]);
}

static void test_foreign(void **state)
{
	const struct recording *recording;
	size_t flagged = 0;

	(void)state;
	drive_directory();
	assert_child(foreign);
	recording = drive_read();
	assert_int_equal(loss(NCCL_LOSS_FOREIGN_CONTEXT), 2 * 9);
	assert_true(loss(NCCL_LOSS_FOREIGN_PARENT) >= 4);
	assert_true(loss(NCCL_LOSS_FOREIGN_HANDLE) >= 10);
	assert_int_equal(drive_count(recording, NCCL_KIND_PROXY_OP), 7);
	for (size_t i = 0; i < recording->events; i++)
		flagged += !!(recording->event[i]->flags & NCCL_EVENT_FOREIGN_PARENT);
	assert_true(flagged >= 4);
	/* Nothing of that reached the operation. */
	assert_int_equal(drive_find(recording, "AllReduce", 0)->proxies_started, 0);
	assert_int_equal(drive_find(recording, "AllReduce", 0)->stop > 0, 1);
}

/* ---- handles ---- */

static void handles(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *handle = (void *)0xdead;
	struct plugin_event_start_arguments unknown = {.kind = 20};
	void *operation = drive_collective(&driver, context, NULL, "AllReduce", 0, 1), *channel,
	     *call;

	/* RCCL has event types of its own. */
	drive_start(&driver, context, &handle, &unknown);
	require(handle == NULL);
	drive_stop(&driver, NULL);
	drive_state(&driver, NULL, NCCL_STATE_KERNEL_CHANNEL_STOP, NULL);
	drive_stop(&driver, operation);
	drive_stop(&driver, operation);
	drive_state(&driver, operation, NCCL_STATE_OP_IN_PROGRESS, NULL);
	channel = drive_channel(&driver, context, operation, 0, GPU);
	drive_state(&driver, channel, 1000, NULL);
	drive_state(&driver, channel, -1, NULL);
	drive_state(&driver, channel, NCCL_STATE_CE_FIRST, NULL);
	drive_state(&driver, channel, NCCL_STATE_KERNEL_CHANNEL_STOP, NULL);
	drive_channel_stop(&driver, channel, GPU + 100);
	/* Seen with 2.28: stopped again without having been started. */
	drive_channel_stop(&driver, channel, GPU + 900);
	/* Clearing the mask makes NCCL stop the last call's handle again at each call, and hand it
	 * on. */
	call = drive_simple(&driver, context, NULL, NCCL_KIND_COLLECTIVE_API);
	for (int i = 0; i < 5; i++)
		drive_stop(&driver, call);
	drive_stop(&driver, drive_collective(&driver, context, call, "AllReduce", 1, 1));
	/* Channels that no GPU has. */
	drive_channel_stop(&driver, drive_channel(&driver, context, operation, 64, GPU), GPU + 1);
	drive_channel_stop(&driver, drive_channel(&driver, context, operation, 255, GPU), GPU + 1);
	drive_wait_finished(1);
}

static void test_handles(void **state)
{
	const struct nccl_operation *operation;

	(void)state;
	drive_directory();
	assert_child(handles);
	assert_int_equal(loss(NCCL_LOSS_UNKNOWN_TYPE), 1);
	assert_int_equal(loss(NCCL_LOSS_NULL_HANDLE), 0); /* NCCL does that */
	assert_int_equal(loss(NCCL_LOSS_DOUBLE_STOP), 1 + 1 + 4);
	assert_int_equal(loss(NCCL_LOSS_UNKNOWN_STATE), 4);
	assert_int_equal(loss(NCCL_LOSS_NO_ARGUMENTS), 1);
	operation = drive_find(drive_read(), "AllReduce", 0);
	assert_int_equal(operation->gpu_stop, GPU + 100);
	assert_int_equal(operation->channels_started, 1);
	assert_int_equal(operation->state, NCCL_OPERATION_DONE);
}

/* ---- the proxy ---- */

static void polls(void)
{
	struct driver driver = drive_open(4);
	void *context = drive_init(&driver, &identity);
	void *operation = drive_collective(&driver, context, NULL, "AllReduce", 0, 1);
	void *proxy = drive_proxy_op(&driver, context, operation, 0, 3, getpid()), *first, *again;
	void *shared_memory = drive_proxy_op(&driver, context, operation, 1, 3, getpid()), *channel;

	drive_stop(&driver, operation);
	drive_state(&driver, proxy, NCCL_STATE_OP_IN_PROGRESS, NULL);
	/* A receive is started by each poll until the network takes it. */
	first = drive_proxy_step(&driver, context, proxy, 0);
	for (int i = 0; i < 100; i++) {
		again = drive_proxy_step(&driver, context, proxy, 0);
		require(again == first);
		drive_state(&driver, again, NCCL_STATE_SEND_PEER_WAIT, NULL);
	}
	drive_stop(&driver, again);
	again = drive_proxy_step(&driver, context, proxy, 0);
	require(again && again != first); /* the last one was stopped */
	drive_stop(&driver, again);
	drive_stop(&driver, proxy);
	/* Transports other than the network never stop theirs. */
	require(shared_memory);
	channel = drive_channel(&driver, context, operation, 0, GPU);
	drive_channel_stop(&driver, channel, GPU + 5000);
	drive_wait_finished(1);
}

static void test_polls(void **state)
{
	const struct nccl_operation *operation;

	(void)state;
	drive_directory();
	assert_child(polls);
	assert_int_equal(loss(NCCL_LOSS_RESTARTED), 100);
	assert_int_equal(drive_count(drive_read(), NCCL_KIND_PROXY_STEP), 2);
	operation = drive_find(drive_read(), "AllReduce", 0);
	assert_int_equal(operation->proxies_started, 2);
	assert_int_equal(operation->proxies_stopped, 1);
	assert_int_equal(operation->networks_started, 1);
	assert_int_equal(operation->state, NCCL_OPERATION_DONE);
}

/* ---- the end ---- */

static void aborted(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity);
	void *running = drive_collective(&driver, context, NULL, "AllReduce", 0, 2);
	void *waiting, *proxy, *channel;

	drive_stop(&driver, running);
	channel = drive_channel(&driver, context, running, 0, GPU);
	drive_channel(&driver, context, running, 1, GPU);
	drive_channel_stop(&driver, channel, GPU + 10);
	proxy = drive_proxy_op(&driver, context, running, 1, 3, getpid());
	drive_state(&driver, proxy, NCCL_STATE_OP_IN_PROGRESS, NULL);
	drive_proxy_step(&driver, context, proxy, 2);
	waiting = drive_collective(&driver, context, NULL, "AllReduce", 1, 2);
	drive_stop(&driver, waiting);
	drive_finalize(&driver, context);
	drive_wait_finished(2);
	/* Proxy threads are shared between communicators that were split. */
	require(drive_simple(&driver, context, NULL, NCCL_KIND_PROXY_CONTROL));
	/* Late: it was taken for incomplete. */
	drive_stop(&driver, proxy);
}

/* ---- channels of one operation, told by several threads ---- */

struct teller {
	struct driver *driver;
	void *context, *operation, *others;
};

static void *report_channels(void *argument)
{
	const struct teller *teller = argument;
	void *channel = drive_channel(teller->driver, teller->context, teller->operation, 1, GPU);

	/* Its own, begun and ended; one that the other thread began; one that nobody ends yet. */
	drive_channel_stop(teller->driver, channel, GPU + 900);
	drive_channel_stop(teller->driver, channel, GPU + 5000); /* of later work: it is over */
	drive_channel_stop(teller->driver, teller->others, GPU + 500);
	drive_channel(teller->driver, teller->context, teller->operation, 2, GPU + 50);
	return NULL;
}

static void several_tellers(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *channel;
	struct teller teller = {&driver, context, NULL, NULL};
	pthread_t thread;

	for (uint64_t i = 0; i < 2; i++) {
		teller.operation = drive_collective(&driver, context, NULL, "AllReduce", i, 3);
		drive_stop(&driver, teller.operation);
		channel = drive_channel(&driver, context, teller.operation, 0, GPU + 100);
		teller.others = channel;
		require(!pthread_create(&thread, NULL, report_channels, &teller));
		require(!pthread_join(thread, NULL));
		if (i) /* once more, by the thread that is not the one that ended it */
			drive_channel_stop(
				&driver,
				drive_channel(&driver, context, teller.operation, 0, GPU + 600),
				GPU + 700);
		else
			drive_channel_stop(
				&driver,
				drive_channel(&driver, context, teller.operation, 2, GPU + 60),
				GPU + 400);
	}
	drive_wait_finished(1);
}

static void test_several_tellers(void **state)
{
	const struct nccl_operation *operation;

	(void)state;
	drive_directory();
	assert_child(several_tellers);
	operation = drive_find(drive_read(), "AllReduce", 0);
	assert_int_equal(operation->state, NCCL_OPERATION_DONE);
	assert_int_equal(operation->channels_started, 7);
	assert_int_equal(operation->channels_stopped, 7);
	assert_int_equal(operation->gpu_start, GPU);
	assert_int_equal(operation->gpu_stop, GPU + 900);
	for (size_t i = 0; i < drive_read()->events; i++)
		assert_true(drive_read()->event[i]->gpu.stop <= GPU + 900);
	/* Channel 2 of the second one never ended. */
	operation = drive_find(drive_read(), "AllReduce", 1);
	assert_int_equal(operation->state, NCCL_OPERATION_RUNNING);
	assert_int_equal(nccl_operation_started(operation), 7);
	assert_int_equal(nccl_operation_stopped(operation), 3);
}

static void test_aborted(void **state)
{
	const struct recording *recording;
	const struct nccl_operation *operation;

	(void)state;
	drive_directory();
	assert_child(aborted);
	recording = drive_read();
	operation = drive_find(recording, "AllReduce", 0);
	assert_int_equal(operation->state, NCCL_OPERATION_INCOMPLETE);
	assert_int_equal(operation->channels_started, 3);
	assert_int_equal(operation->channels_stopped, 1);
	assert_true(operation->flags & NCCL_OPERATION_LATE);
	assert_int_equal(loss(NCCL_LOSS_LATE), 1);
	assert_int_equal(loss(NCCL_LOSS_FINALIZED), 1);
	/* That it has channels was said, and none came. */
	assert_int_equal(drive_find(recording, "AllReduce", 1)->state, NCCL_OPERATION_INCOMPLETE);
	for (size_t i = 0; i < recording->events; i++) {
		const struct nccl_event *event = recording->event[i];

		if (event->kind == NCCL_KIND_PROXY_STEP)
			assert_true(event->flags & NCCL_EVENT_OPEN_AT_FINALIZE);
	}
	assert_int_equal(recording->total[0]->incomplete, 2);
}

/* ---- times ---- */

static void *timed(const struct driver *driver, void *context, uint64_t number, unsigned channel,
		   uint64_t start, uint64_t stop)
{
	void *operation = drive_collective(driver, context, NULL, "AllReduce", number, 1);

	drive_stop(driver, operation);
	drive_channel_stop(driver, drive_channel(driver, context, operation, channel, start), stop);
	return operation;
}

static void times(void)
{
	struct driver driver = drive_open(6);
	void *context = drive_init(&driver, &identity), *late;

	timed(&driver, context, 0, 3, GPU, GPU + 1000);
	/* A batch: three have the same two times. */
	timed(&driver, context, 1, 3, GPU + 2000, GPU + 3000);
	timed(&driver, context, 2, 3, GPU + 2000, GPU + 3000);
	timed(&driver, context, 3, 3, GPU + 2000, GPU + 3000);
	timed(&driver, context, 4, 3, GPU + 4000, GPU + 5000);
	/* The device went round its ring: a time from before what ended already. */
	timed(&driver, context, 5, 3, GPU + 4500, GPU + 6000);
	/* Another channel has its own order. */
	timed(&driver, context, 6, 4, GPU + 100, GPU + 200);
	timed(&driver, context, 7, 4, GPU + 300, GPU + 250);
	late = timed(&driver, context, 8, 5, GPU + 10000, GPU + 11000);
	drive_wait_finished(9);
	drive_channel_stop(&driver, drive_channel(&driver, context, late, 6, GPU), GPU + 1);
}

static void test_times(void **state)
{
	static const uint32_t expected[] = {
		0,
		NCCL_OPERATION_BATCHED,
		NCCL_OPERATION_BATCHED,
		NCCL_OPERATION_BATCHED,
		0,
		NCCL_OPERATION_ALIASED,
		0,
		NCCL_OPERATION_ALIASED,
		NCCL_OPERATION_LATE,
	};
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(times);
	recording = drive_read();
	for (unsigned i = 0; i < 9; i++) {
		const struct nccl_operation *operation = drive_find(recording, "AllReduce", i);

		assert_int_equal(operation->flags, expected[i] | NCCL_OPERATION_SEALED);
		assert_int_equal(operation->state, NCCL_OPERATION_DONE);
	}
	assert_int_equal(drive_find(recording, "AllReduce", 8)->gpu_start, GPU + 10000);
	assert_int_equal(drive_find(recording, "AllReduce", 8)->late, 2);
	assert_int_equal(recording->total[0]->operations, 9);
	assert_int_equal(recording->total[0]->batched, 3);
	assert_int_equal(recording->total[0]->aliased, 2);
	assert_int_equal(recording->total[0]->timed, 4);
	assert_int_equal(recording->total[0]->gpu_ns, 1000 + 1000 + 100 + 1000);
}

/* ---- numbers of channels are hints ---- */

static void channels(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity);
	/* CollNet says 0, and channels come all the same. */
	void *collnet = drive_collective(&driver, context, NULL, "AllReduce", 0, 0), *first;
	/* Parts of a send without steps are not launched: fewer come than were said. */
	void *send = drive_p2p(&driver, context, NULL, "Send", 1);
	/* A symmetric kernel: none come at all. */
	void *symmetric = drive_collective(&driver, context, NULL, "AllGather", 0, 0), *staggered;

	drive_stop(&driver, collnet);
	drive_stop(&driver, send);
	drive_stop(&driver, symmetric);
	first = drive_channel(&driver, context, collnet, 0, GPU);
	drive_channel_stop(&driver, drive_channel(&driver, context, collnet, 1, GPU + 10),
			   GPU + 200);
	drive_channel_stop(&driver, first, GPU + 100);
	drive_channel_stop(&driver, drive_channel(&driver, context, send, 13, GPU), GPU + 300);
	/* Channels that begin when others have ended long ago: the window is that of all. */
	staggered = drive_collective(&driver, context, NULL, "AllReduce", 1, 4);
	drive_stop(&driver, staggered);
	for (unsigned i = 0; i < 3; i++)
		drive_channel_stop(&driver,
				   drive_channel(&driver, context, staggered, i, GPU + 1000),
				   GPU + 1002);
	usleep(5000); /* less than the 50 ms of silence that end it */
	drive_channel_stop(&driver, drive_channel(&driver, context, staggered, 3, GPU + 1098),
			   GPU + 1099);
	drive_wait_finished(4);
}

static void test_channels(void **state)
{
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(channels);
	recording = drive_read();
	assert_int_equal(drive_find(recording, "AllReduce", 0)->state, NCCL_OPERATION_DONE);
	assert_int_equal(drive_find(recording, "AllReduce", 0)->gpu_stop, GPU + 200);
	assert_int_equal(drive_find(recording, "Send", 0)->state, NCCL_OPERATION_DONE);
	assert_int_equal(drive_find(recording, "AllGather", 0)->state, NCCL_OPERATION_ENQUEUED);
	assert_true(drive_find(recording, "AllGather", 0)->flags & NCCL_OPERATION_ENQUEUE_ONLY);
	assert_true(drive_find(recording, "AllGather", 0)->flags & NCCL_OPERATION_COUNT_IS_BYTES);
	assert_int_equal(drive_find(recording, "AllReduce", 1)->gpu_start, GPU + 1000);
	assert_int_equal(drive_find(recording, "AllReduce", 1)->gpu_stop, GPU + 1099);
	assert_int_equal(drive_find(recording, "AllReduce", 1)->late, 0);
}

/* ---- graphs: the API call was captured once, its operations come with each replay ---- */

static void graphs(void)
{
	struct driver driver = drive_open(5);
	void *context = drive_init(&driver, &identity), *call;
	struct plugin_event_start_arguments captured = {.kind = NCCL_KIND_COLLECTIVE_API,
							.function = "AllReduce",
							.data_type = "ncclFloat32",
							.is_captured = true};

	drive_start(&driver, context, &call, &captured);
	drive_stop(&driver, call);
	for (uint64_t i = 0; i < 4; i++) {
		void *operation = drive_collective(&driver, context, call, "AllReduce", i, 1);

		drive_stop(&driver, operation);
		drive_channel_stop(&driver,
				   drive_channel(&driver, context, operation, 0, GPU + i * 1000),
				   GPU + i * 1000 + 500);
	}
	drive_wait_finished(4);
}

static void test_graphs(void **state)
{
	(void)state;
	drive_directory();
	assert_child(graphs);
	for (uint64_t i = 0; i < 4; i++) {
		const struct nccl_operation *operation = drive_find(drive_read(), "AllReduce", i);

		assert_int_equal(operation->state, NCCL_OPERATION_DONE);
		assert_int_equal(operation->flags, NCCL_OPERATION_SEALED | NCCL_OPERATION_GRAPH |
							   (i ? NCCL_OPERATION_REPLAYED : 0));
		assert_int_equal(operation->parent,
				 drive_find(drive_read(), "AllReduce", 0)->parent);
	}
}

/* ---- names ---- */

static void names(void)
{
	struct driver driver = drive_open(5);
	char name[600];
	struct drive_identity none = {NULL, 1, 1, 2, 0}, wild = {name, 2, 1, 2, 0};
	void *first = drive_init(&driver, &none), *second;

	memset(name, 'x', sizeof(name) - 1);
	memcpy(name, "a\001\n\"\\\xff\xc3 end", 11);
	name[sizeof(name) - 1] = 0;
	second = drive_init(&driver, &wild);
	memset(name, '#', sizeof(name) - 1); /* the string was a temporary */
	drive_stop(&driver, drive_collective(&driver, first, NULL, NULL, 0, 1));
	drive_stop(&driver, drive_collective(&driver, second, NULL, "", 0, 1));
	for (int i = 0; i < 400; i++) {         /* more names than there is room for */
		static char functions[400][64]; /* NCCL's strings are constants */

		snprintf(functions[i], sizeof(functions[i]),
			 "Function%d-with-a-name-that-is-too-long-%d", i, i);
		drive_stop(&driver, drive_collective(&driver, first, NULL, functions[i], 1, 1));
	}
}

static void test_names(void **state)
{
	const struct recording *recording;

	(void)state;
	drive_directory();
	assert_child(names);
	recording = drive_read();
	assert_int_equal(recording->communicators, 2);
	assert_string_equal(recording->communicator[0]->name, "");
	assert_memory_equal(recording->communicator[1]->name, "a\001\n\"\\\xff\xc3 end", 11);
	assert_int_equal(strlen(recording->communicator[1]->name), 255);
	assert_true(loss(NCCL_LOSS_NAMES) >= 140);
	assert_int_equal(recording->communicator[0]->operations, 401);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_foreign),  cmocka_unit_test(test_handles),
		cmocka_unit_test(test_polls),    cmocka_unit_test(test_several_tellers),
		cmocka_unit_test(test_aborted),  cmocka_unit_test(test_times),
		cmocka_unit_test(test_channels), cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
