/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is predicted of programs as those of tests/programs/causal, and what is so, on a machine
 * that has nothing else to do (machine.h).
 */
#include "machine.h"

#include <math.h>
#include <string.h>

#include "common/array.h"
#include "fake.h"

/* Targets. */
enum { ONE = 1, TWO, THREE, FOUR };
/* From where waits and wakes are called, with room for more behind each. */
enum {
	SITE_A = 0x1001000,
	SITE_B = 0x1002000,
	SITE_C = 0x1003000,
	SITE_D = 0x1004000,
	SITE_E = 0x1005000,
	SITE_F = 0x1006000
};

/* ---- amdahl ---- */

static struct machine_barrier begin_parallel, end_parallel;

static void amdahl_help(void *argument)
{
	(void)argument;
	for (;;) {
		machine_meet(&begin_parallel, 2, SITE_A);
		machine_work(TWO, 900);
		machine_meet(&end_parallel, 2, SITE_B);
	}
}

static void amdahl_main(void *argument)
{
	(void)argument;
	for (;;) {
		machine_work(ONE, 600);
		machine_meet(&begin_parallel, 2, SITE_C);
		machine_work(TWO, 900);
		machine_meet(&end_parallel, 2, SITE_D);
		machine_visit();
	}
}

static void amdahl(void)
{
	memset(&begin_parallel, 0, sizeof(begin_parallel));
	memset(&end_parallel, 0, sizeof(end_parallel));
	machine_start(amdahl_main, NULL);
	machine_start(amdahl_help, NULL);
}

/* ---- meet ---- */

static double length;

static void meet_slow(void *argument)
{
	(void)argument;
	for (;;) {
		machine_work(ONE, length);
		machine_meet(&begin_parallel, 2, SITE_A);
		machine_visit();
	}
}

static void meet_fast(void *argument)
{
	(void)argument;
	for (;;) {
		machine_work(TWO, 0.7 * length);
		machine_meet(&begin_parallel, 2, SITE_B);
	}
}

static void meet(void)
{
	memset(&begin_parallel, 0, sizeof(begin_parallel));
	length = 2000;
	machine_start(meet_slow, NULL);
	machine_start(meet_fast, NULL);
}

static void meet_short(void)
{
	meet();
	length = 100;
}

/* ---- lock ---- */

static struct machine_lock lock;

static void lock_run(void *argument)
{
	(void)argument;
	for (;;) {
		machine_work(TWO, 0.5 * length);
		machine_lock(&lock, SITE_A);
		machine_work(ONE, 0.5 * length);
		machine_unlock(&lock, SITE_B);
		machine_visit();
	}
}

static void lock_pair(void)
{
	memset(&lock, 0, sizeof(lock));
	length = 600;
	for (int i = 0; i < 2; i++)
		machine_start(lock_run, NULL);
}

static void lock_oversubscription(void)
{
	lock_pair();
	for (int i = 0; i < 4; i++)
		machine_start(lock_run, NULL);
}

/* ---- server ---- */

static struct machine_channel requests[2], answers[2];

static void server_client(void *argument)
{
	uintptr_t i = (uintptr_t)argument;

	for (;;) {
		machine_send(&requests[i], SITE_A);
		machine_receive(&answers[i], SITE_B);
		machine_work(THREE, 0.5 * length);
	}
}

static void server_serve(void *argument)
{
	(void)argument;
	for (;;) {
		uint32_t i = machine_poll(requests, 2, SITE_C);

		machine_receive(&requests[i], SITE_D);
		machine_work(ONE, 0.6 * length);
		machine_work(TWO, 0.4 * length);
		machine_visit();
		machine_send(&answers[i], SITE_E);
	}
}

static void server(void)
{
	memset(requests, 0, sizeof(requests));
	memset(answers, 0, sizeof(answers));
	length = 800;
	machine_start(server_serve, NULL);
	machine_start(server_client, (void *)0);
	machine_start(server_client, (void *)1);
}

/* ---- pool ---- */

static struct machine_condition some_task, all_done;
static unsigned next_task, busy;
#define TASKS 5

static void pool_worker(void *argument)
{
	(void)argument;
	machine_lock(&lock, SITE_A);
	for (;;) {
		bool large;

		while (next_task == TASKS)
			machine_wait(&some_task, &lock, SITE_B);
		large = next_task++ == 0;
		busy++;
		machine_unlock(&lock, SITE_C);
		if (large)
			machine_work(ONE, 0.8 * length);
		else
			machine_work(TWO, 0.1 * length);
		machine_lock(&lock, SITE_D);
		busy--;
		if (next_task == TASKS && !busy)
			machine_signal(&all_done, SITE_E);
	}
}

static void pool_main(void *argument)
{
	(void)argument;
	for (;;) {
		machine_lock(&lock, SITE_F);
		next_task = 0;
		machine_broadcast(&some_task, SITE_F + 1);
		while (next_task < TASKS || busy)
			machine_wait(&all_done, &lock, SITE_F + 2);
		machine_unlock(&lock, SITE_F + 3);
		machine_work(THREE, 0.2 * length);
		machine_visit();
	}
}

static void pool(void)
{
	memset(&lock, 0, sizeof(lock));
	memset(&some_task, 0, sizeof(some_task));
	memset(&all_done, 0, sizeof(all_done));
	next_task = TASKS;
	busy = 0;
	length = 1500;
	machine_start(pool_main, NULL);
	machine_start(pool_worker, NULL);
	machine_start(pool_worker, NULL);
}

/* ---- single ---- */

static void single_run(void *argument)
{
	(void)argument;
	for (;;) {
		machine_work(ONE, 500);
		machine_work(TWO, 333);
		machine_work(THREE, 167);
		machine_visit();
	}
}

static void single(void)
{
	machine_start(single_run, NULL);
}

/* ---- closed: clients that ask, wait and think ---- */

static struct machine_condition asked, answered;
static bool asks[2], has_answer[2];

static void closed_client(void *argument)
{
	uintptr_t i = (uintptr_t)argument;

	for (;;) {
		uint64_t begun;

		machine_work(ONE, 600);
		begun = machine_begin();
		machine_lock(&lock, SITE_A);
		asks[i] = true;
		has_answer[i] = false;
		machine_signal(&asked, SITE_A + 16);
		while (!has_answer[i])
			machine_wait(&answered, &lock, SITE_B);
		machine_unlock(&lock, SITE_B + 16);
		machine_end(begun);
	}
}

static void closed_server(void *argument)
{
	unsigned last = 0;

	(void)argument;
	for (;;) {
		machine_lock(&lock, SITE_C);
		while (!asks[0] && !asks[1])
			machine_wait(&asked, &lock, SITE_C + 16);
		last = asks[!last] ? !last : last;
		asks[last] = false;
		machine_unlock(&lock, SITE_D);
		machine_work(TWO, 700);
		machine_lock(&lock, SITE_E);
		has_answer[last] = true;
		machine_broadcast(&answered, SITE_E + 16);
		machine_unlock(&lock, SITE_F);
		machine_work(THREE, 300);
	}
}

static void closed(void)
{
	memset(&lock, 0, sizeof(lock));
	memset(&asked, 0, sizeof(asked));
	memset(&answered, 0, sizeof(answered));
	memset(asks, 0, sizeof(asks));
	memset(has_answer, 0, sizeof(has_answer));
	machine_start(closed_server, NULL);
	machine_start(closed_client, (void *)0);
	machine_start(closed_client, (void *)1);
}

/* ---- spawner: threads that live for one task ---- */

static void spawner_left(void *argument)
{
	(void)argument;
	machine_work(ONE, 800);
	machine_lock(&lock, SITE_A);
	machine_unlock(&lock, SITE_B);
	machine_work(THREE, 400);
}

static void spawner_right(void *argument)
{
	(void)argument;
	machine_work(TWO, 500);
}

static void spawner_run(void *argument)
{
	(void)argument;
	for (;;) {
		uint32_t left = machine_start(spawner_left, NULL);
		uint32_t right = machine_start(spawner_right, NULL);

		machine_join(left, SITE_E);
		machine_join(right, SITE_F);
		machine_work(FOUR, 200);
		machine_visit();
	}
}

static void spawner(void)
{
	memset(&lock, 0, sizeof(lock));
	machine_start(spawner_run, NULL);
}

/* ---- many places ---- */

#define PLACES 40 /* at which a lock is taken */

static void places_run(void *argument)
{
	(void)argument;
	for (;;) {
		for (unsigned i = 0; i < PLACES; i++) {
			machine_work(i % 4 ? TWO : ONE, 25);
			machine_lock(&lock, SITE_A + 16 * i);
			machine_unlock(&lock, SITE_B + 16 * i);
		}
		machine_visit();
	}
}

static void places(void)
{
	memset(&lock, 0, sizeof(lock));
	machine_start(places_run, NULL);
	/* another one pays */
	machine_start(single_run, NULL);
}

/* ---- how far off ---- */

static const struct row {
	const char *name;
	machine_program *program;
	uint32_t targets, processors;
	double mean, most; /* points that predictions may be off */
} rows[] = {
	{"single", single, 3, 2, 0.6, 1.5},
	{"places", places, 2, 2, 1.1, 3.2},
	{"amdahl", amdahl, 2, 2, 0.6, 1.8},
	{"meet", meet, 2, 2, 0.3, 1},
	{"meet-short", meet_short, 2, 2, 0.4, 1.4},
	{"pool", pool, 3, 2, 0.5, 1.5},
	{"server", server, 3, 2, 0.5, 2.0},
	{"closed", closed, 3, 4, 0.4, 1.2},
	{"spawner", spawner, 4, 2, 0.8, 2.4},
	{"lock", lock_pair, 2, 2, 0.8, 2.2},
	{"lock-oversubscription", lock_oversubscription, 2, 8, 1.3, 3},
};

static void row_test(void **state)
{
	const struct row *row = *state;
	const struct machine_test test = {row->program, row->processors, 8, 0.03};
	double sum = 0, most = 0;

	for (uint32_t target = 1; target <= row->targets; target++) {
		print_message("%-10s %u:", row->name, target);
		for (uint32_t permille = 250; permille <= 1000; permille += 250) {
			double truth = machine_truth(&test, target, permille);
			double predicted = machine_predicted(&test, target, permille);

			print_message(" %6.1f %6.1f", truth, predicted);
			sum += fabs(predicted - truth);
			most = fmax(most, fabs(predicted - truth));
		}
		print_message("\n");
	}
	print_message("%-10s mean %.2f, largest %.2f\n", row->name, sum / row->targets / 4, most);
	assert_true(sum / row->targets / 4 <= row->mean);
	assert_true(most <= row->most);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(rows)];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
					       .test_func = row_test,
					       .initial_state = (void *)(uintptr_t)&rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
