/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A server without a network, for the guides: two threads handle requests as fast as they can. A
 * request is parsed, looked up in a cache under a lock, and logged.
 *
 *     cc -O2 -g server.c -o server
 *     cc -O2 -g -DWITH_KYMO server.c $(pkg-config --cflags --libs kymo) -o server    marks requests
 *     ./server [SECONDS]        requests per second, at the end
 *     ./server deadlock         both threads take two locks in different orders, and hang
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef WITH_KYMO
#include <kymo/user.h>
#else
#define kymo_progress(name) ((void)(name))
#endif

#define WORKERS              2
#define PARSE_STEPS          400000u
#define LOOKUP_STEPS         600000u
#define REQUESTS_A_LOG_ENTRY 64

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_file = -1;
static time_t end;
static unsigned long handled[WORKERS];

/* One step of a pseudo-random sequence, which stands for real work. */
#define STEP(value) ((value)*6364136223846793005u + 1442695040888963407u)

__attribute__((noinline)) static uint64_t parse_request(uint64_t request)
{
	for (unsigned i = 0; i < PARSE_STEPS; i++)
		request = STEP(request);
	return request | 1;
}

__attribute__((noinline)) static uint64_t look_up(uint64_t key)
{
	pthread_mutex_lock(&cache_lock);
	for (unsigned i = 0; i < LOOKUP_STEPS; i++)
		key = STEP(key);
	pthread_mutex_unlock(&cache_lock);
	return key | 1;
}

__attribute__((noinline)) static void write_log(uint64_t value)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "value %llx\n", (unsigned long long)value);

	pthread_mutex_lock(&log_lock);
	if (write(log_file, line, (size_t)length) != length || fdatasync(log_file))
		perror("server: cannot write the log");
	pthread_mutex_unlock(&log_lock);
}

__attribute__((noinline)) static uint64_t handle_request(uint64_t request)
{
	uint64_t value = look_up(parse_request(request));

	if (request % REQUESTS_A_LOG_ENTRY == 0)
		write_log(value);
	return value;
}

static void *serve(void *argument)
{
	unsigned long *count = argument;
	uint64_t request = 0;

	while (time(NULL) < end) {
		if (!handle_request(++request))
			abort(); /* no value is 0; without the test nothing would be computed */
		++*count;
		kymo_progress("request");
	}
	return NULL;
}

__attribute__((noinline)) static void *flush_cache(void *argument)
{
	pthread_mutex_lock(&cache_lock);
	sleep(1);
	pthread_mutex_lock(&log_lock);
	return argument;
}

__attribute__((noinline)) static void *rotate_log(void *argument)
{
	pthread_mutex_lock(&log_lock);
	sleep(1);
	pthread_mutex_lock(&cache_lock);
	return argument;
}

int main(int argument_count, char **arguments)
{
	int deadlock = argument_count > 1 && !strcmp(arguments[1], "deadlock");
	long seconds = argument_count > 1 && !deadlock ? atol(arguments[1]) : 5;
	char path[] = "/tmp/server-log-XXXXXX";
	unsigned long sum = 0;
	pthread_t threads[WORKERS];

	log_file = mkstemp(path);
	if (log_file < 0 || unlink(path)) {
		perror("server: cannot create the log");
		return 1;
	}
	end = time(NULL) + seconds;
	for (int i = 0; i < WORKERS; i++) {
		void *(*start)(void *) = !deadlock ? serve : i ? rotate_log : flush_cache;

		if (pthread_create(&threads[i], NULL, start, &handled[i])) {
			fputs("server: cannot start a thread\n", stderr);
			return 1;
		}
	}
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(threads[i], NULL);
		sum += handled[i];
	}
	printf("%.0f requests per second\n", (double)sum / (double)seconds);
	return 0;
}
