/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Options, points and the printed result of the causal test programs.
 */
#include "workload.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Of a core at 3.8 GHz: a multiplication and an addition take four cycles. */
#define USUAL_RATE 950.0

enum point_kind { POINT_PROGRESS, POINT_BEGIN, POINT_END }; /* coz.h: 1, 2, 3 */

static struct workload_work *works;
static char **arguments;
static int argument_count;
static bool points_are_coz;
static uint64_t visits_wanted, duration;
static _Atomic uint64_t visits, first_visit, last_visit, deadline;
static _Atomic uint64_t latency_sum, latency_count;
static atomic_bool over;

_Noreturn void workload_failed(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, condition);
	abort();
}

uint64_t workload_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void workload_add_work(struct workload_work *work)
{
	work->rate = USUAL_RATE;
	work->next = works;
	works = work;
}

double workload_scale(const struct workload_work *work)
{
	return work->rate / workload_number("rate", USUAL_RATE);
}

const char *workload_text(const char *name, const char *usual)
{
	for (int i = 1; i + 1 < argument_count; i += 2) {
		if (!strncmp(arguments[i], "--", 2) && !strcmp(arguments[i] + 2, name))
			return arguments[i + 1];
	}
	return usual;
}

double workload_number(const char *name, double usual)
{
	const char *text = workload_text(name, NULL);
	return text ? strtod(text, NULL) : usual;
}

unsigned workload_choice(const char *name, const char *const *names)
{
	const char *text = workload_text(name, names[0]);
	unsigned i = 0;
	while (names[i] && strcmp(names[i], text))
		i++;
	if (!names[i]) {
		fprintf(stderr, "--%s %s: not known\n", name, text);
		exit(2);
	}
	return i;
}

static void scale_work(const char *text)
{
	const char *equals = strchr(text, '=');
	struct workload_work *work = works;
	while (work && equals &&
	       (strlen(work->name) != (size_t)(equals - text) ||
		strncmp(work->name, text, (size_t)(equals - text))))
		work = work->next;
	if (!work || !equals) {
		fprintf(stderr, "--scale %s: no such function\n", text);
		exit(2);
	}
	work->rate *= strtod(equals + 1, NULL);
}

WORK(calibrated)

/* The most steps that were ever made in a microsecond: other load only takes away. */
static void calibrate(void)
{
	double best = 0;
	for (int i = 0; i < 100; i++) {
		uint64_t begin = workload_now();
		calibrated(2000);
		double took = (double)(workload_now() - begin) / 1000;
		if (2000 * USUAL_RATE / took > best)
			best = 2000 * USUAL_RATE / took;
	}
	printf("%.1f\n", best);
	exit(0);
}

void workload_start(int argc, char **argv)
{
	arguments = argv;
	argument_count = argc;
	if (argc == 2 && !strcmp(argv[1], "--calibrate"))
		calibrate();
	double rate = workload_number("rate", USUAL_RATE);
	for (struct workload_work *work = works; work; work = work->next)
		work->rate = rate;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 == argc || strncmp(argv[i], "--", 2)) {
			fprintf(stderr, "%s: an option and its value are expected\n", argv[i]);
			exit(2);
		}
		if (!strcmp(argv[i], "--scale"))
			scale_work(argv[i + 1]);
	}
	points_are_coz = !strcmp(workload_text("points", "user"), "coz");
	visits_wanted = (uint64_t)workload_number("visits", 0);
	duration = (uint64_t)(workload_number("seconds", visits_wanted ? 0 : 5) * 1e9);
}

bool workload_running(void)
{
	return !atomic_load_explicit(&over, memory_order_acquire);
}

/* ---- points ---- */

/* Coz answers with a pair of a count and a number that only it uses. */
static void count_for_coz(struct workload_point *point, enum point_kind kind)
{
	uint64_t *counter = point->coz[kind];
	if (!counter) {
		union {
			void *pointer;
			uint64_t *(*function)(int, const char *);
		} get = {.pointer = dlsym(RTLD_DEFAULT, "_coz_get_counter")};
		counter = get.pointer ? get.function((int)kind + 1, point->name) : NULL;
		point->coz[kind] = counter;
	}
	if (counter)
		__atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

/* The first visit begins the measurement: what was before is not of the steady state. */
static void count_visit(uint64_t now)
{
	uint64_t none = 0;
	if (atomic_compare_exchange_strong(&first_visit, &none, now) && duration)
		deadline = now + duration;
	last_visit = now;
	uint64_t count = atomic_fetch_add(&visits, 1) + 1;
	if ((visits_wanted && count >= visits_wanted) || (deadline && now >= deadline))
		atomic_store_explicit(&over, true, memory_order_release);
}

void workload_visit(struct workload_point *point)
{
	if (points_are_coz)
		count_for_coz(point, POINT_PROGRESS);
	else
		kymo_progress(point->name);
	count_visit(workload_now());
}

uint64_t workload_begin(struct workload_point *point)
{
	uint64_t arrival = workload_now();
	if (points_are_coz)
		count_for_coz(point, POINT_BEGIN);
	else
		kymo_begin(point->name);
	return arrival;
}

void workload_end(struct workload_point *point, uint64_t arrival)
{
	if (points_are_coz)
		count_for_coz(point, POINT_END);
	else
		kymo_end(point->name);
	uint64_t now = workload_now();
	latency_sum += now - arrival;
	latency_count++;
	count_visit(now);
}

int workload_finish(void)
{
	printf("visits %llu\n", (unsigned long long)visits);
	printf("seconds %.6f\n", (double)(last_visit - first_visit) / 1e9);
	if (latency_count)
		printf("latency_us %.3f\n", (double)latency_sum / (double)latency_count / 1000);
	fflush(stdout);
	int signal_number = (int)workload_number("raise", 0);
	if (signal_number)
		raise(signal_number);
	return (int)workload_number("status", 0);
}
