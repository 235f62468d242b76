/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A machine of virtual time, on which programs run under the code of src/causal: nothing else is on
 * it, so what is predicted can be compared with what is so to a fraction of a percent, wherever the
 * test runs. Threads are contexts of one real thread; time passes where they work, sleep or wait.
 * A thread's processor is taken away for others as a fair scheduler does.
 *
 * What stands for functions of the C library here does what wrappers of src/wrappers do.
 */
#ifndef KYMO_TESTS_CAUSAL_MACHINE_H
#define KYMO_TESTS_CAUSAL_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_THREADS 16u

/* A program: starts its threads. */
typedef void machine_program(void);

/* ---- for programs ---- */

uint32_t machine_start(void (*run)(void *argument), void *argument);
void machine_join(uint32_t thread, uint64_t site);
/* Microseconds of this target's work, more or less. */
void machine_work(uint32_t target, double us);
void machine_visit(void);
/* The same where it is the latency that counts: the time from one to the other. */
uint64_t machine_begin(void);
void machine_end(uint64_t begun);

struct machine_queue {
	uint32_t count, threads[MACHINE_THREADS];
};
struct machine_lock {
	bool taken;
	struct machine_queue waiting;
};
struct machine_condition {
	struct machine_queue waiting;
};
struct machine_barrier {
	uint32_t arrived;
	struct machine_queue waiting;
};
/* Of messages; a socket, one way. */
struct machine_channel {
	uint32_t count;
	struct machine_queue waiting;
};

/* `site`: where the program calls. */
void machine_lock(struct machine_lock *lock, uint64_t site);
void machine_unlock(struct machine_lock *lock, uint64_t site);
void machine_wait(struct machine_condition *condition, struct machine_lock *lock, uint64_t site);
void machine_signal(struct machine_condition *condition, uint64_t site);
void machine_broadcast(struct machine_condition *condition, uint64_t site);
void machine_meet(struct machine_barrier *barrier, uint32_t threads, uint64_t site);
void machine_send(struct machine_channel *channel, uint64_t site);
void machine_receive(struct machine_channel *channel, uint64_t site);
/* The first of these that has a message: epoll_wait(2). */
uint32_t machine_poll(struct machine_channel *channels, uint32_t count, uint64_t site);

/* ---- for those ---- */

uint32_t machine_self(void);
/* The calling thread waits until another one unblocks it. */
void machine_block(void);
void machine_unblock(uint32_t thread);

/* ---- for tests ---- */

struct machine_test {
	machine_program *program;
	uint32_t processors;
	uint32_t windows; /* of each speedup */
	double jitter;    /* of work, as a share of it */
};

#define MACHINE_TARGETS 8u

/* Percent that a visit takes less by, with so many permille of the target's work taken away. */
double machine_truth(const struct machine_test *test, uint32_t target, uint32_t permille);
/* The same as it is predicted. */
double machine_predicted(const struct machine_test *test, uint32_t target, uint32_t permille);

#endif
