/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What programs of a known response to a speedup are made of. Work is a number of steps of a chain
 * of dependent multiplications, never a wait for a clock, so `--scale FUNCTION=0.75` really takes a
 * quarter of it away, and what the program gains by that is the truth that a prediction is held to.
 *
 *   --scale FUNCTION=X   the work of that function, times X
 *   --visits N           ends after N visits of the progress point (of the first latency point)
 *   --seconds S          ends after S seconds; 5 where neither is given
 *   --points user|coz    whom visits are told: kymo/user.h (usual), or counters of coz.h
 *   --rate R             steps in a microsecond; `--calibrate` prints what that is here
 *   --status N           what main() returns; --raise N: ends by that signal instead
 *   --NAME VALUE         an option of the program's own
 */
#ifndef KYMO_CAUSAL_WORKLOAD_H
#define KYMO_CAUSAL_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "kymo/user.h"

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition))                                                                  \
			workload_failed(__FILE__, __LINE__, #condition);                           \
	} while (0)
_Noreturn void workload_failed(const char *file, int line, const char *condition);

/* ---- work ---- */

struct workload_work {
	const char *name;
	double rate; /* steps in a microsecond, scaled */
	struct workload_work *next;
};
void workload_add_work(struct workload_work *work);

/* A function of this name that does `microseconds` of work. All of it is one line, that of the
 * macro's use: profilers of lines and profilers of functions see the same thing. */
#define WORK(name) WORK_(name, void name(double microseconds); __attribute__((noinline)) void)
/* The same, expanded where it is called. */
#define WORK_INLINED(name) WORK_(name, __attribute__((always_inline)) static inline void)
#define WORK_(name, linkage)                                                                       \
	static struct workload_work work_of_##name = {#name, 0, NULL};                             \
	__attribute__((constructor)) static void add_work_of_##name(void)                          \
	{                                                                                          \
		workload_add_work(&work_of_##name);                                                \
	}                                                                                          \
	linkage name(double microseconds)                                                          \
	{                                                                                          \
		uint64_t chain = 1;                                                                \
		for (uint64_t left = (uint64_t)(microseconds * work_of_##name.rate); left;         \
		     left--) {                                                                     \
			chain = chain * 6364136223846793005u + 1;                                  \
			__asm__ volatile("" : "+r"(chain));                                        \
		}                                                                                  \
	}
/* A name that can be scaled, for functions whose work is done by others that they call. */
#define WORK_SCALE(name)                                                                           \
	static struct workload_work work_of_##name = {#name, 0, NULL};                             \
	__attribute__((constructor)) static void add_work_of_##name(void)                          \
	{                                                                                          \
		workload_add_work(&work_of_##name);                                                \
	}
double workload_scale(const struct workload_work *work);

/* ---- options and the end ---- */

void workload_start(int argc, char **argv);
const char *workload_text(const char *name, const char *usual);
double workload_number(const char *name, double usual);
/* Which of the names, ended by NULL, the option has; the first one where it is not given. */
unsigned workload_choice(const char *name, const char *const *names);
/* Not any more once the visits or the time are over. */
bool workload_running(void);
/* Prints visits, seconds and latency; what main() returns. */
int workload_finish(void);

/* ---- progress ---- */

struct workload_point {
	const char *name;
	uint64_t *_Atomic coz[3]; /* counters by kind */
};
void workload_visit(struct workload_point *point);
/* Latency: the time of arrival goes to workload_end(). */
uint64_t workload_begin(struct workload_point *point);
void workload_end(struct workload_point *point, uint64_t arrival);
uint64_t workload_now(void); /* nanoseconds */

#endif
