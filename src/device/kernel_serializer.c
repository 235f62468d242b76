/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See kernel_serializer.h.
 */
#include "device/kernel_serializer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/monotonic.h"
#include "common/settings_value.h"
#include "device/kernel_filter.h"
#include "device/pointer_map.h"

#define AGENTS_MAX                 64
#define KERNEL_PATIENCE_DEFAULT_NS 30000000000u
#define IDLE_CHECK_INTERVAL_NS     50000u /* whether everything has ended */

struct named_kernel_entry {
	_Atomic uint64_t launch_count;
	_Atomic bool waits_for_other_kernel; /* for another kernel: it was given up */
	struct named_kernel_entry *next;
	char name[];
};

struct agent_serializer {
	_Atomic device_handle agent;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	bool is_turn_taken;
	device_handle turn_kernel; /* the kernel whose turn it is */
	/* Somebody was given up and may still run: no turns until nothing is in flight. */
	_Atomic bool has_given_up_kernel;
	_Atomic device_handle given_up;
};

static struct agent_serializer agent_serializers[AGENTS_MAX];
static pthread_mutex_t agent_serializers_lock = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_map kernels_by_symbol;
static struct named_kernel_entry *named_kernels; /* by name one each; under `naming` */
static pthread_mutex_t named_kernels_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t given_up_kernel_count;

static const void *symbol_to_key(device_handle symbol)
{
	return (const void *)(uintptr_t)symbol; // NOLINT: only a key
}

static struct named_kernel_entry *find_kernel_by_symbol(device_handle symbol)
{
	return (struct named_kernel_entry *)(uintptr_t)pointer_map_get(
		&kernels_by_symbol,
		symbol_to_key(symbol)); // NOLINT
}

/* A program may have a kernel many times, one for each thread or queue: it is one by its name. */
static struct named_kernel_entry *find_or_add_kernel_by_name(const char *name)
{
	struct named_kernel_entry *kernel;

	for (kernel = named_kernels; kernel != NULL; kernel = kernel->next) {
		if (strcmp(kernel->name, name) == 0)
			return kernel;
	}
	kernel = calloc(1, sizeof(*kernel) + strlen(name) + 1);
	if (kernel == NULL)
		return NULL;
	strcpy(kernel->name, name);
	kernel->next = named_kernels;
	named_kernels = kernel;
	return kernel;
}

void serializer_add_kernel_name(device_handle symbol, const char *name)
{
	struct named_kernel_entry *kernel;

	if (symbol == DEVICE_HANDLE_NONE || find_kernel_by_symbol(symbol) != NULL)
		return;
	pthread_mutex_lock(&named_kernels_lock);
	kernel = find_or_add_kernel_by_name(name);
	pthread_mutex_unlock(&named_kernels_lock);
	if (kernel != NULL)
		pointer_map_set(&kernels_by_symbol, symbol_to_key(symbol), (uintptr_t)kernel);
}

const char *serializer_get_kernel_name(device_handle symbol)
{
	const struct named_kernel_entry *kernel =
		symbol != DEVICE_HANDLE_NONE ? find_kernel_by_symbol(symbol) : NULL;

	return kernel != NULL ? kernel->name : "(kernel without a name)";
}

uint64_t serializer_get_patience_ns(void)
{
	static _Atomic uint64_t known;
	uint64_t patience = atomic_load_explicit(&known, memory_order_relaxed);
	const char *asked;
	int64_t ns;

	if (patience != 0)
		return patience;
	asked = secure_getenv("KYMO_COUNTER_WATCHDOG");
	patience = KERNEL_PATIENCE_DEFAULT_NS;
	if (asked != NULL && asked[0] != '\0' &&
	    setting_parse_duration(setting_slice_from_text(asked), &ns) == SETTING_VALID)
		patience = ns <= 0 ? UINT64_MAX : (uint64_t)ns;
	atomic_store(&known, patience);
	return patience;
}

static struct agent_serializer *find_serializer(device_handle agent)
{
	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		if (atomic_load_explicit(&agent_serializers[i].agent, memory_order_acquire) ==
		    agent)
			return &agent_serializers[i];
	}
	return NULL;
}

static struct agent_serializer *find_or_add_serializer(device_handle agent)
{
	struct agent_serializer *turns = find_serializer(agent);
	pthread_condattr_t attributes;

	if (turns != NULL)
		return turns;
	pthread_mutex_lock(&agent_serializers_lock);
	turns = find_serializer(agent);
	if (turns == NULL)
		turns = find_serializer(DEVICE_HANDLE_NONE);
	if (turns == NULL)
		turns = &agent_serializers[AGENTS_MAX - 1]; /* shared: only slower */
	if (turns->agent == DEVICE_HANDLE_NONE) {
		pthread_condattr_init(&attributes);
		pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		pthread_mutex_init(&turns->lock, NULL);
		pthread_cond_init(&turns->changed, &attributes);
		pthread_condattr_destroy(&attributes);
		atomic_store_explicit(&turns->agent, agent, memory_order_release);
	}
	pthread_mutex_unlock(&agent_serializers_lock);
	return turns;
}

static uint64_t compute_patience_deadline_ns(void)
{
	uint64_t patience = serializer_get_patience_ns(), now = monotonic_ns();

	return patience > UINT64_MAX - now ? UINT64_MAX : now + patience;
}

/* false: the time is over. */
static bool wait_for_turn_change_until(struct agent_serializer *turns, uint64_t until)
{
	struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};

	if (until == UINT64_MAX)
		return pthread_cond_wait(&turns->changed, &turns->lock) == 0;
	return pthread_cond_timedwait(&turns->changed, &turns->lock, &time) == 0;
}

static bool wait_for_and_take_turn(struct agent_serializer *turns, device_handle symbol,
				   uint64_t until)
{
	bool taken;

	pthread_mutex_lock(&turns->lock);
	while (turns->is_turn_taken && !atomic_load(&turns->has_given_up_kernel)) {
		if (!wait_for_turn_change_until(turns, until))
			break;
	}
	taken = !turns->is_turn_taken && !atomic_load(&turns->has_given_up_kernel);
	if (taken) {
		turns->is_turn_taken = true;
		turns->turn_kernel = symbol;
	}
	pthread_mutex_unlock(&turns->lock);
	return taken;
}

static void release_turn(struct agent_serializer *turns)
{
	pthread_mutex_lock(&turns->lock);
	turns->is_turn_taken = false;
	turns->turn_kernel = DEVICE_HANDLE_NONE;
	pthread_cond_broadcast(&turns->changed);
	pthread_mutex_unlock(&turns->lock);
}

static bool wait_until_nothing_is_in_flight(serializer_idle_predicate *idle, void *context,
					    uint64_t until)
{
	const struct timespec pause = {0, IDLE_CHECK_INTERVAL_NS};

	while (!idle(context)) {
		if (monotonic_ns() >= until)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static void format_given_up_problem(struct counting_problem *problem,
				    const struct agent_serializer *turns)
{
	snprintf(problem->text, sizeof(problem->text),
		 "kernels go together until \"%s\" has ended, which seems to wait for another",
		 serializer_get_kernel_name(atomic_load(&turns->given_up)));
}

static void give_up_kernel(struct agent_serializer *turns, device_handle symbol)
{
	struct named_kernel_entry *kernel =
		symbol != DEVICE_HANDLE_NONE ? find_kernel_by_symbol(symbol) : NULL;

	if (kernel != NULL)
		atomic_store(&kernel->waits_for_other_kernel, true);
	atomic_store(&turns->given_up, symbol);
	atomic_store(&turns->has_given_up_kernel, true);
	atomic_fetch_add(&given_up_kernel_count, 1);
	release_turn(turns);
}

static void report_that_kernel_counting_stopped(device_handle symbol,
						enum device_runtime_kind runtime, const char *what,
						struct counting_problem *problem)
{
	snprintf(problem->text, sizeof(problem->text),
		 "kymo stopped counting \"%.200s\": %s for %.3g s, so it probably waits for a "
		 "kernel that cannot start while kernels run one at a time. Count the device "
		 "instead (--device-counters), or exclude the kernel (--kernel-exclude)",
		 serializer_get_kernel_name(symbol), what,
		 (double)serializer_get_patience_ns() / 1e9);
	device_get_sink()->say(runtime, problem->text);
}

/* What is in flight has kept it waiting: nothing to be blamed, but its own turn cannot come. */
static enum counting_status wait_for_kernels_or_give_up(struct agent_serializer *turns,
							device_handle symbol,
							serializer_idle_predicate *idle,
							void *context, uint64_t until,
							struct counting_problem *problem)
{
	if (wait_until_nothing_is_in_flight(idle, context, until))
		return COUNTING_OK;
	give_up_kernel(turns, symbol);
	report_that_kernel_counting_stopped(symbol, DEVICE_RUNTIME_HOST,
					    "kernels before it did not end", problem);
	return COUNTING_TIMED_OUT;
}

enum counting_status serializer_count_and_filter_launch(device_handle symbol,
							struct counting_problem *problem)
{
	struct named_kernel_entry *kernel = find_kernel_by_symbol(symbol);
	const char *why_not = kernel_filter_get_exclusion_reason(
		serializer_get_kernel_name(symbol),
		kernel != NULL ? atomic_fetch_add(&kernel->launch_count, 1) + 1 : 1);

	problem->text[0] = '\0';
	if (why_not == NULL)
		return COUNTING_OK;
	snprintf(problem->text, sizeof(problem->text), "%s", why_not);
	return COUNTING_FILTERED;
}

enum counting_status serializer_acquire_turn(device_handle agent, device_handle symbol,
					     serializer_idle_predicate *idle, void *context,
					     struct counting_problem *problem)
{
	const struct named_kernel_entry *kernel = find_kernel_by_symbol(symbol);
	struct agent_serializer *turns = find_or_add_serializer(agent);
	uint64_t until = compute_patience_deadline_ns();

	problem->text[0] = '\0';
	if (kernel != NULL && atomic_load(&kernel->waits_for_other_kernel)) {
		/* It will again: what comes now is not kept waiting for its end. */
		atomic_store(&turns->given_up, symbol);
		atomic_store(&turns->has_given_up_kernel, true);
		snprintf(problem->text, sizeof(problem->text),
			 "it seemed to wait for another kernel before");
		return COUNTING_TIMED_OUT;
	}
	if (atomic_load(&turns->has_given_up_kernel)) {
		if (!idle(context)) {
			format_given_up_problem(problem, turns);
			return COUNTING_TIMED_OUT;
		}
		atomic_store(&turns->has_given_up_kernel, false);
	}
	if (!wait_for_and_take_turn(turns, symbol, until)) {
		format_given_up_problem(problem, turns);
		return COUNTING_TIMED_OUT;
	}
	return wait_for_kernels_or_give_up(turns, symbol, idle, context, until, problem);
}

enum counting_status serializer_filter_and_acquire_turn(device_handle agent, device_handle symbol,
							serializer_idle_predicate *idle,
							void *context,
							struct counting_problem *problem)
{
	enum counting_status status = serializer_count_and_filter_launch(symbol, problem);

	return status == COUNTING_OK
		       ? serializer_acquire_turn(agent, symbol, idle, context, problem)
		       : status;
}

void serializer_release_turn(device_handle agent)
{
	release_turn(find_or_add_serializer(agent));
}

void serializer_give_up_kernel(device_handle agent, device_handle symbol,
			       enum device_runtime_kind runtime, struct counting_problem *problem)
{
	give_up_kernel(find_or_add_serializer(agent), symbol);
	report_that_kernel_counting_stopped(symbol, runtime, "it has not ended", problem);
}

void serializer_wait_while_turn_taken(device_handle agent)
{
	struct agent_serializer *turns = find_or_add_serializer(agent);
	uint64_t until = compute_patience_deadline_ns();

	pthread_mutex_lock(&turns->lock);
	while (turns->is_turn_taken && !atomic_load(&turns->has_given_up_kernel)) {
		if (!wait_for_turn_change_until(turns, until))
			break;
	}
	pthread_mutex_unlock(&turns->lock);
}

bool serializer_has_given_up_kernel(device_handle agent)
{
	return atomic_load(&find_or_add_serializer(agent)->has_given_up_kernel);
}

bool serializer_is_turn_taken(device_handle agent)
{
	struct agent_serializer *turns = find_or_add_serializer(agent);
	bool taken;

	pthread_mutex_lock(&turns->lock);
	taken = turns->is_turn_taken;
	pthread_mutex_unlock(&turns->lock);
	return taken;
}

uint64_t serializer_get_given_up_kernel_count(void)
{
	return atomic_load(&given_up_kernel_count);
}

void serializer_reset_forked(void)
{
	memset((void *)agent_serializers, 0, sizeof(agent_serializers));
	pthread_mutex_init(&agent_serializers_lock, NULL);
}
