/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sixteen threads that trace, while contexts are started and stopped at random, buffers flushed,
 * ids pushed, and work completed by threads other than those that began it. Every call that was
 * told to have begun is told to have ended; every kernel ends in exactly one record; nothing is
 * told after the end. Meant for the thread sanitizer, too.
 */
#include "scenario.h"

#include <pthread.h>

#include "libkymo-sdk/emit.h"

#define THREADS  16
#define CONTEXTS 4
#define MAILBOX  256

static unsigned rounds = 4000;
static rocprofiler_context_id_t contexts[CONTEXTS];
static rocprofiler_buffer_id_t buffers[CONTEXTS];
static _Atomic uint64_t entered[CONTEXTS], left[CONTEXTS]; /* calls */
static _Atomic uint64_t enqueued[CONTEXTS], submitted[CONTEXTS], completed[CONTEXTS];
static _Atomic uint64_t calls[CONTEXTS], kernels[CONTEXTS], retired[CONTEXTS];
static _Atomic bool is_over, is_final;
static struct sdk_device_work *_Atomic mailbox[MAILBOX];

static void tell(rocprofiler_callback_tracing_record_t record, rocprofiler_user_data_t *user_data,
		 void *data)
{
	intptr_t context = (intptr_t)data;

	CHECK(!is_final);
	CHECK_EQUAL(record.context_id.handle, contexts[context].handle);
	if (record.operation == ROCPROFILER_KERNEL_DISPATCH_COMPLETE &&
	    record.kind == ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH) {
		completed[context]++;
	} else if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		CHECK_EQUAL(user_data->value, 0);
		user_data->value = record.correlation_id.internal;
		(record.kind == ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH ? enqueued
									     : entered)[context]++;
	} else {
		CHECK_EQUAL(user_data->value, record.correlation_id.internal);
		(record.kind == ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH ? submitted
									     : left)[context]++;
	}
}

static void take(rocprofiler_context_id_t of, rocprofiler_buffer_id_t from,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	intptr_t context = (intptr_t)data;

	(void)of;
	CHECK(!is_final);
	CHECK_EQUAL(from.handle, buffers[context].handle);
	CHECK_EQUAL(dropped, 0);
	for (size_t i = 0; i < count; i++) {
		uint32_t kind = headers[i]->kind;

		calls[context] += kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API;
		kernels[context] += kind == ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH;
		retired[context] += kind == ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT;
	}
}

static const size_t sizes[CONTEXTS] = {4096, 1 << 16, 1 << 18, 1 << 21};

static int initialize(void)
{
	for (intptr_t i = 0; i < CONTEXTS; i++) {
		OK(rocprofiler_create_context(&contexts[i]));
		OK(rocprofiler_create_buffer(contexts[i], sizes[i], sizes[i] / 2,
					     ROCPROFILER_BUFFER_POLICY_LOSSLESS, take, (void *)i,
					     &buffers[i]));
		OK(rocprofiler_configure_callback_tracing_service(
			contexts[i], ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0, tell,
			(void *)i));
		OK(rocprofiler_configure_callback_tracing_service(
			contexts[i], ROCPROFILER_CALLBACK_TRACING_KERNEL_DISPATCH, NULL, 0, tell,
			(void *)i));
		OK(rocprofiler_configure_buffer_tracing_service(
			contexts[i], ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0,
			buffers[i]));
		OK(rocprofiler_configure_buffer_tracing_service(
			contexts[i], ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0,
			buffers[i]));
		OK(rocprofiler_configure_buffer_tracing_service(
			contexts[i], ROCPROFILER_BUFFER_TRACING_CORRELATION_ID_RETIREMENT, NULL, 0,
			buffers[i]));
	}
	OK(rocprofiler_start_context(contexts[3]));
	return 0;
}

static uint32_t draw(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* Puts work where another thread finds it, and completes what was there. */
static void exchange(struct sdk_device_work *work, uint32_t place)
{
	struct sdk_device_work *found = atomic_exchange(&mailbox[place % MAILBOX], work);

	if (found)
		sdk_dispatch_report_complete(found, NULL, 1, 2);
}

static void one_call(uint32_t *state)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	rocprofiler_kernel_dispatch_info_t info = {.kernel_id = 1};
	struct sdk_call_state call;
	bool told =
		sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, (int32_t)(draw(state) % 100), &data);

	if (draw(state) % 2) {
		struct sdk_device_work *work = sdk_dispatch_report_enqueue(&info);

		if (work) {
			bool early = draw(state) % 2;

			if (early) /* may be completed before it is submitted */
				exchange(NULL, draw(state));
			sdk_dispatch_report_submitted(work, false);
			exchange(work, draw(state));
		}
	}
	if (told)
		sdk_call_exit(&call, &data);
}

static void one_change(uint32_t *state)
{
	unsigned context = draw(state) % CONTEXTS;
	rocprofiler_user_data_t value = {.value = draw(state)};
	int active;

	switch (draw(state) % 8) {
	case 0:
		OK(rocprofiler_start_context(contexts[context]));
		break;
	case 1:
		rocprofiler_stop_context(contexts[context]);
		break;
	case 2:
		OK(rocprofiler_flush_buffer(buffers[context]));
		break;
	case 3:
		OK(rocprofiler_push_external_correlation_id(contexts[context], (uint64_t)gettid(),
							    value));
		break;
	case 4:
		OK(rocprofiler_pop_external_correlation_id(contexts[context], (uint64_t)gettid(),
							   &value));
		break;
	case 5: /* of another thread */
		OK(rocprofiler_push_external_correlation_id(contexts[context], (uint64_t)getpid(),
							    value));
		break;
	default:
		OK(rocprofiler_context_is_active(contexts[context], &active));
	}
}

static void *trace(void *data)
{
	uint32_t state = (uint32_t)(intptr_t)data * 7919 + 1;

	for (unsigned i = 0; i < rounds; i++) {
		one_call(&state);
		if (draw(&state) % 16 == 0)
			one_change(&state);
	}
	return NULL;
}

static void check_ends(void)
{
	is_final = true;
	for (int i = 0; i < CONTEXTS; i++) {
		CHECK_EQUAL(entered[i], left[i]);
		CHECK_EQUAL(entered[i], calls[i]);
		CHECK_EQUAL(enqueued[i], submitted[i]);
		CHECK_EQUAL(kernels[i], completed[i]);
		CHECK(retired[i] > 0);
	}
}

static void run_threads(void)
{
	pthread_t made[THREADS];

	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, trace, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(made[i], NULL);
}

static void sixteen_threads(void)
{
	scenario_tool(initialize);
	for (int i = 0; i < CONTEXTS; i++)
		OK(rocprofiler_start_context(contexts[i]));
	run_threads();
	for (unsigned i = 0; i < MAILBOX; i++)
		exchange(NULL, i);
	CHECK_EQUAL(sdk_work_get_in_flight_count(), 0);
	scenario_finalizer(*scenario_client);
	check_ends();
}

static void *trace_on(void *data)
{
	uint32_t state = (uint32_t)(intptr_t)data * 104729 + 1;

	while (!is_over)
		one_call(&state);
	return NULL;
}

/* The tool ends while everything goes on. */
static void ended_in_the_middle(void)
{
	pthread_t made[THREADS];

	scenario_tool(initialize);
	for (intptr_t i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&made[i], NULL, trace_on, (void *)i), 0);
	WAIT_FOR(entered[3] > 1000);
	scenario_finalizer(*scenario_client);
	is_final = true;
	usleep(20000);
	is_over = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(made[i], NULL);
}

/* Threads that come and go, each with a few calls. */
static void *trace_a_little(void *data)
{
	uint32_t state = (uint32_t)(intptr_t)data;

	for (int i = 0; i < 5; i++)
		one_call(&state);
	return NULL;
}

static void many_short_threads(void)
{
	scenario_tool(initialize);
	for (intptr_t i = 0; i < 400; i += 8) {
		pthread_t made[8];

		for (intptr_t j = 0; j < 8; j++)
			CHECK_EQUAL(pthread_create(&made[j], NULL, trace_a_little, (void *)(i + j)),
				    0);
		for (int j = 0; j < 8; j++)
			pthread_join(made[j], NULL);
	}
	for (unsigned i = 0; i < MAILBOX; i++)
		exchange(NULL, i);
	OK(rocprofiler_flush_buffer(buffers[3]));
	CHECK_EQUAL(calls[3], 2000);
	CHECK_EQUAL(kernels[3], completed[3]);
}

SCENARIO(sixteen_threads)
SCENARIO(ended_in_the_middle)
SCENARIO(many_short_threads)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sixteen_threads),
		cmocka_unit_test(test_ended_in_the_middle),
		cmocka_unit_test(test_many_short_threads),
	};

	if (argc > 1)
		rounds = (unsigned)atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
