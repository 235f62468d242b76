/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See turns.h.
 */
#include "device/turns.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/settings_value.h"
#include "device/kernel_filter.h"
#include "device/pointer_map.h"

#define AGENTS_MAX       64
#define PATIENCE_DEFAULT 30000000000u
#define LOOK_AGAIN_NS    50000u /* whether everything has ended */

struct kernel {
	_Atomic uint64_t launches;
	_Atomic bool waits; /* for another kernel: it was given up */
	struct kernel *next;
	char name[];
};

struct turns {
	_Atomic device_handle agent;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* CLOCK_MONOTONIC */
	bool is_taken;
	device_handle owner; /* the kernel whose turn it is */
	/* Somebody was given up and may still run: no turns until nothing is in flight. */
	_Atomic bool is_given_up;
	_Atomic device_handle given_up;
};

static struct turns all[AGENTS_MAX];
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
static struct pointer_map kernels;
static struct kernel *named; /* by name one each; under `naming` */
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t given_up_count;

static const void *key_of(device_handle symbol)
{
	return (const void *)(uintptr_t)symbol; // NOLINT: only a key
}

static struct kernel *kernel_of(device_handle symbol)
{
	return (struct kernel *)(uintptr_t)pointer_map_get(&kernels, key_of(symbol)); // NOLINT
}

/* A program may have a kernel many times, one for each thread or queue: it is one by its name. */
static struct kernel *find_named(const char *name)
{
	struct kernel *kernel;

	for (kernel = named; kernel != NULL; kernel = kernel->next) {
		if (strcmp(kernel->name, name) == 0)
			return kernel;
	}
	kernel = calloc(1, sizeof(*kernel) + strlen(name) + 1);
	if (kernel == NULL)
		return NULL;
	strcpy(kernel->name, name);
	kernel->next = named;
	named = kernel;
	return kernel;
}

void turn_kernel_named(device_handle symbol, const char *name)
{
	struct kernel *kernel;

	if (symbol == DEVICE_NONE || kernel_of(symbol) != NULL)
		return;
	pthread_mutex_lock(&naming);
	kernel = find_named(name);
	pthread_mutex_unlock(&naming);
	if (kernel != NULL)
		pointer_map_set(&kernels, key_of(symbol), (uintptr_t)kernel);
}

const char *turn_kernel_name(device_handle symbol)
{
	const struct kernel *kernel = symbol != DEVICE_NONE ? kernel_of(symbol) : NULL;

	return kernel != NULL ? kernel->name : "(kernel without a name)";
}

uint64_t turn_patience_ns(void)
{
	static _Atomic uint64_t known;
	uint64_t patience = atomic_load_explicit(&known, memory_order_relaxed);
	const char *asked;
	int64_t ns;

	if (patience != 0)
		return patience;
	asked = getenv("KYMO_COUNTER_WATCHDOG");
	patience = PATIENCE_DEFAULT;
	if (asked != NULL && asked[0] != '\0' &&
	    setting_parse_duration(setting_slice(asked), &ns) == SETTING_VALID)
		patience = ns <= 0 ? UINT64_MAX : (uint64_t)ns;
	atomic_store(&known, patience);
	return patience;
}

static struct turns *find(device_handle agent)
{
	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		if (atomic_load_explicit(&all[i].agent, memory_order_acquire) == agent)
			return &all[i];
	}
	return NULL;
}

static struct turns *turns_of(device_handle agent)
{
	struct turns *turns = find(agent);
	pthread_condattr_t attributes;

	if (turns != NULL)
		return turns;
	pthread_mutex_lock(&making);
	turns = find(agent);
	if (turns == NULL)
		turns = find(DEVICE_NONE);
	if (turns == NULL)
		turns = &all[AGENTS_MAX - 1]; /* shared: only slower */
	if (turns->agent == DEVICE_NONE) {
		pthread_condattr_init(&attributes);
		pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
		pthread_mutex_init(&turns->lock, NULL);
		pthread_cond_init(&turns->changed, &attributes);
		pthread_condattr_destroy(&attributes);
		atomic_store_explicit(&turns->agent, agent, memory_order_release);
	}
	pthread_mutex_unlock(&making);
	return turns;
}

static uint64_t monotonic(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static uint64_t deadline(void)
{
	uint64_t patience = turn_patience_ns(), now = monotonic();

	return patience > UINT64_MAX - now ? UINT64_MAX : now + patience;
}

/* false: the time is over. */
static bool wait_until(struct turns *turns, uint64_t until)
{
	struct timespec time = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};

	if (until == UINT64_MAX)
		return pthread_cond_wait(&turns->changed, &turns->lock) == 0;
	return pthread_cond_timedwait(&turns->changed, &turns->lock, &time) == 0;
}

static bool take(struct turns *turns, device_handle symbol, uint64_t until)
{
	bool taken;

	pthread_mutex_lock(&turns->lock);
	while (turns->is_taken && !atomic_load(&turns->is_given_up)) {
		if (!wait_until(turns, until))
			break;
	}
	taken = !turns->is_taken && !atomic_load(&turns->is_given_up);
	if (taken) {
		turns->is_taken = true;
		turns->owner = symbol;
	}
	pthread_mutex_unlock(&turns->lock);
	return taken;
}

static void give(struct turns *turns)
{
	pthread_mutex_lock(&turns->lock);
	turns->is_taken = false;
	turns->owner = DEVICE_NONE;
	pthread_cond_broadcast(&turns->changed);
	pthread_mutex_unlock(&turns->lock);
}

static bool wait_idle(turn_idle *idle, void *context, uint64_t until)
{
	const struct timespec pause = {0, LOOK_AGAIN_NS};

	while (!idle(context)) {
		if (monotonic() >= until)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

static void released(struct counting_problem *problem, const struct turns *turns)
{
	snprintf(problem->text, sizeof(problem->text),
		 "kernels go together until \"%s\" has ended, which seems to wait for another",
		 turn_kernel_name(atomic_load(&turns->given_up)));
}

static void give_up(struct turns *turns, device_handle symbol)
{
	struct kernel *kernel = symbol != DEVICE_NONE ? kernel_of(symbol) : NULL;

	if (kernel != NULL)
		atomic_store(&kernel->waits, true);
	atomic_store(&turns->given_up, symbol);
	atomic_store(&turns->is_given_up, true);
	atomic_fetch_add(&given_up_count, 1);
	give(turns);
}

static void tell(device_handle symbol, enum device_runtime runtime, const char *what,
		 struct counting_problem *problem)
{
	snprintf(
		problem->text, sizeof(problem->text),
		"counting kernels one at a time is given up for \"%.200s\": %s for %.3g s, so that "
		"it seems to wait for a kernel that waits for its turn. It is not counted any "
		"more; "
		"count the device instead (--device-counters), or leave it out (--kernel-exclude)",
		turn_kernel_name(symbol), what, (double)turn_patience_ns() / 1e9);
	device_sink()->say(runtime, problem->text);
}

/* What is in flight has kept it waiting: nothing to be blamed, but its own turn cannot come. */
static enum counting_status wait_for_others(struct turns *turns, device_handle symbol,
					    turn_idle *idle, void *context, uint64_t until,
					    struct counting_problem *problem)
{
	if (wait_idle(idle, context, until))
		return COUNTING_OK;
	give_up(turns, symbol);
	tell(symbol, DEVICE_RUNTIME_HOST, "kernels before it did not end", problem);
	return COUNTING_RELEASED;
}

enum counting_status turn_is_wanted(device_handle symbol, struct counting_problem *problem)
{
	struct kernel *kernel = kernel_of(symbol);
	const char *why_not = kernel_filter_why_not(
		turn_kernel_name(symbol),
		kernel != NULL ? atomic_fetch_add(&kernel->launches, 1) + 1 : 1);

	problem->text[0] = '\0';
	if (why_not == NULL)
		return COUNTING_OK;
	snprintf(problem->text, sizeof(problem->text), "%s", why_not);
	return COUNTING_FILTERED;
}

enum counting_status turn_take(device_handle agent, device_handle symbol, turn_idle *idle,
			       void *context, struct counting_problem *problem)
{
	const struct kernel *kernel = kernel_of(symbol);
	struct turns *turns = turns_of(agent);
	uint64_t until = deadline();

	problem->text[0] = '\0';
	if (kernel != NULL && atomic_load(&kernel->waits)) {
		/* It will again: what comes now is not kept waiting for its end. */
		atomic_store(&turns->given_up, symbol);
		atomic_store(&turns->is_given_up, true);
		snprintf(problem->text, sizeof(problem->text),
			 "it seemed to wait for another kernel before");
		return COUNTING_RELEASED;
	}
	if (atomic_load(&turns->is_given_up)) {
		if (!idle(context)) {
			released(problem, turns);
			return COUNTING_RELEASED;
		}
		atomic_store(&turns->is_given_up, false);
	}
	if (!take(turns, symbol, until)) {
		released(problem, turns);
		return COUNTING_RELEASED;
	}
	return wait_for_others(turns, symbol, idle, context, until, problem);
}

enum counting_status turn_begin(device_handle agent, device_handle symbol, turn_idle *idle,
				void *context, struct counting_problem *problem)
{
	enum counting_status status = turn_is_wanted(symbol, problem);

	return status == COUNTING_OK ? turn_take(agent, symbol, idle, context, problem) : status;
}

void turn_end(device_handle agent)
{
	give(turns_of(agent));
}

void turn_give_up(device_handle agent, device_handle symbol, enum device_runtime runtime,
		  struct counting_problem *problem)
{
	give_up(turns_of(agent), symbol);
	tell(symbol, runtime, "it has not ended", problem);
}

void turn_pass(device_handle agent)
{
	struct turns *turns = turns_of(agent);
	uint64_t until = deadline();

	pthread_mutex_lock(&turns->lock);
	while (turns->is_taken && !atomic_load(&turns->is_given_up)) {
		if (!wait_until(turns, until))
			break;
	}
	pthread_mutex_unlock(&turns->lock);
}

bool turn_is_given_up(device_handle agent)
{
	return atomic_load(&turns_of(agent)->is_given_up);
}

bool turn_is_taken(device_handle agent)
{
	struct turns *turns = turns_of(agent);
	bool taken;

	pthread_mutex_lock(&turns->lock);
	taken = turns->is_taken;
	pthread_mutex_unlock(&turns->lock);
	return taken;
}

uint64_t turns_given_up(void)
{
	return atomic_load(&given_up_count);
}

void turns_forked(void)
{
	memset((void *)all, 0, sizeof(all));
	pthread_mutex_init(&making, NULL);
}
