/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What CUPTI itself costs a program, whoever is its tool: a library that turns records on and off
 * and throws them away. bench/sdk_train.py loads it and takes turns within one process.
 *
 *   floor_begin(clock)   once, before the device is used. clock: records on our clock
 *   floor_turn(kinds, flush_ms, buffer_bytes, clear, callbacks)
 *       kinds: 1 kernels, 2 graphs, 4 copies and fills; 0: nothing. flush_ms 0: never.
 *       clear: buffers come cleared, and CUPTI knows. callbacks: around launches, doing nothing
 *   CUPTI_FLOOR_KINDS    in the environment: these kinds from the start, flushed every 100 ms, for
 *                        programs that do not know of any of this
 *   floor_told(what)     0 records, 1 dropped, 2 flushes, 3 ns in flushes, 4 buffers
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "common/array.h"
#include "device/cuda/cupti.h"

#define EXPORT       __attribute__((visibility("default")))
#define BUFFERS      256
#define BUFFER_BYTES ((size_t)4 << 20)

EXPORT int InitializeInjection(void);
EXPORT int floor_begin(int clock);
EXPORT void floor_turn(int kinds, int flush_ms, size_t buffer_bytes, int clear, int callbacks);
EXPORT uint64_t floor_told(int what);

static struct cupti_api cupti;
static void *subscriber;
static uint8_t *memory;
static uint32_t free_buffers[BUFFERS], free_count, made;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t told[5];
static _Atomic int flush_ms;
static _Atomic size_t bytes_given = BUFFER_BYTES;
static int kinds_on, callbacks_on;

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void no_callback(void *user, int domain, uint32_t call, const void *data)
{
	(void)user;
	(void)domain;
	(void)call;
	(void)data;
}

static void give(uint8_t **buffer, size_t *size, size_t *records_max)
{
	uint32_t number;

	pthread_mutex_lock(&lock);
	number = free_count ? free_buffers[--free_count] : made < BUFFERS ? made++ : BUFFERS;
	pthread_mutex_unlock(&lock);
	*buffer = number < BUFFERS ? memory + number * BUFFER_BYTES : NULL;
	*size = *buffer ? atomic_load(&bytes_given) : 0;
	*records_max = 0;
	atomic_fetch_add(&told[4], 1);
}

static void take(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	struct cupti_record *record = NULL;
	size_t dropped = 0;
	uint64_t count = 0;

	(void)size;
	while (valid && cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		count++;
	if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
		atomic_fetch_add(&told[1], dropped);
	atomic_fetch_add(&told[0], count);
	memset(buffer, 0, valid);
	pthread_mutex_lock(&lock);
	free_buffers[free_count++] = (uint32_t)((size_t)(buffer - memory) / BUFFER_BYTES);
	pthread_mutex_unlock(&lock);
}

static void *flush_now_and_then(void *unused)
{
	const struct timespec pause = {0, 10000000};
	uint64_t last = now();

	for (;;) {
		uint64_t before, period = (uint64_t)atomic_load(&flush_ms) * 1000000;

		nanosleep(&pause, NULL);
		before = now();
		if (period == 0 || before - last < period)
			continue;
		last = before;
		cupti.ActivityFlushAll(0);
		atomic_fetch_add(&told[2], 1);
		atomic_fetch_add(&told[3], now() - before);
	}
	return unused;
}

static int find(void)
{
	const char *names[] = {getenv("KYMO_CUPTI"), "libcupti.so.13", "libcupti.so.12",
			       "/usr/local/cuda/lib64/libcupti.so.13"};

	for (int mapped = 1; mapped >= 0; mapped--) {
		for (size_t i = 0; !cupti.library && i < ARRAY_SIZE(names); i++) {
			if (names[i])
				cupti.library =
					dlopen(names[i], RTLD_NOW | (mapped ? RTLD_NOLOAD : 0));
		}
	}
	if (!cupti.library)
		return 0;
#define X(name, parameters)                                                                        \
	*(void **)&cupti.name = dlsym(cupti.library, "cupti" #name);                               \
	if (!cupti.name)                                                                           \
		return 0;
	CUPTI_FUNCTIONS(X)
	CUPTI_OPTIONAL_FUNCTIONS(X)
#undef X
	return 1;
}

int floor_begin(int clock)
{
	char holder[CUPTI_PRIOR_SUBSCRIBER_NAME_BYTES] = "";
	struct cupti_subscriber_parameters parameters = {sizeof(parameters), "floor", holder,
							 sizeof(holder)};
	pthread_t thread;

	memory = mmap(NULL, BUFFERS * BUFFER_BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || !find() ||
	    cupti.Subscribe_v2(&subscriber, no_callback, NULL, &parameters) != CUPTI_SUCCESS ||
	    (clock && cupti.ActivityRegisterTimestampCallback(now) != CUPTI_SUCCESS) ||
	    cupti.ActivityRegisterCallbacks(give, take) != CUPTI_SUCCESS)
		return -1;
	return pthread_create(&thread, NULL, flush_now_and_then, NULL);
}

static void enable(int kind, int wanted, int bit)
{
	if ((wanted & bit) && !(kinds_on & bit))
		cupti.ActivityEnable(kind);
	else if (!(wanted & bit) && (kinds_on & bit))
		cupti.ActivityDisable(kind);
}

void floor_turn(int kinds, int period, size_t buffer_bytes, int clear, int callbacks)
{
	static const uint32_t launches[] = {CUPTI_CALL_LAUNCH_KERNEL,
					    CUPTI_CALL_LAUNCH_KERNEL_EX,
					    CUPTI_CALL_GRAPH_LAUNCH,
					    276,
					    277,
					    278,
					    279,
					    280};
	uint8_t are_clear = clear != 0;
	size_t size = 1;

	cupti.ActivityFlushAll(0);
	atomic_store(&bytes_given, buffer_bytes < BUFFER_BYTES ? buffer_bytes : BUFFER_BYTES);
	cupti.ActivitySetAttribute(CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, &size, &are_clear);
	enable(CUPTI_KIND_CONCURRENT_KERNEL, kinds, 1);
	enable(CUPTI_KIND_GRAPH_TRACE, kinds, 2);
	enable(CUPTI_KIND_MEMCPY, kinds, 4);
	enable(CUPTI_KIND_MEMCPY_PEER, kinds, 4);
	enable(CUPTI_KIND_MEMSET, kinds, 4);
	kinds_on = kinds;
	for (size_t i = 0; callbacks != callbacks_on && i < ARRAY_SIZE(launches); i++)
		cupti.EnableCallback((uint32_t)callbacks, subscriber, CUPTI_DOMAIN_DRIVER,
				     launches[i]);
	callbacks_on = callbacks;
	atomic_store(&flush_ms, period);
}

/* Loaded by the driver, for programs that do not call floor_begin(). */
int InitializeInjection(void)
{
	const char *kinds = getenv("CUPTI_FLOOR_KINDS");

	if (floor_begin(1) == 0 && kinds)
		floor_turn(atoi(kinds), 100, BUFFER_BYTES, 1, 0);
	return 1;
}

uint64_t floor_told(int what)
{
	return what >= 0 && what < 5 ? atomic_load(&told[what]) : 0;
}
