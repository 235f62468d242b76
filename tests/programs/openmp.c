/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Every OpenMP construct that the tools interface reports on the host, with counts of its own:
 * standard output says how often each was passed, by the names that kymo gives them. Built with
 * clang by tests/e2e/openmp.py (gcc's runtime has no tools interface).
 */
#include <omp.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 20, TASKS = 8, LOOP = 1000 };

static atomic_int parallels, loops, criticals, singles, tasks, locks, barriers, sections, orders,
	nested;

static void loop_and_critical(double *sum)
{
	atomic_fetch_add(&parallels, 1);
#pragma omp parallel
	{
		double mine = 0;

		atomic_fetch_add(&loops, 1);
#pragma omp for
		for (int i = 0; i < LOOP; i++)
			mine += i;
		atomic_fetch_add(&criticals, 1);
#pragma omp critical
		*sum += mine;
		atomic_fetch_add(&barriers, 1);
#pragma omp barrier
	}
}

/* Tasks that make tasks and wait for them. */
static void tasks_in_tasks(void)
{
	atomic_fetch_add(&parallels, 1);
#pragma omp parallel
#pragma omp single
	{
		atomic_fetch_add(&singles, 1);
		for (int i = 0; i < TASKS; i++) {
#pragma omp task
			{
				atomic_fetch_add(&tasks, 1);
#pragma omp task
				atomic_fetch_add(&tasks, 1);
#pragma omp taskwait
			}
		}
#pragma omp taskgroup
		{
#pragma omp task untied
			{
				atomic_fetch_add(&tasks, 1);
#pragma omp taskyield
			}
		}
	}
}

static void locks_and_order(omp_lock_t *lock)
{
	int order = 0;

	atomic_fetch_add(&parallels, 1);
#pragma omp parallel
	{
		atomic_fetch_add(&locks, 1);
		omp_set_lock(lock);
		omp_unset_lock(lock);
		if (omp_test_lock(lock))
			omp_unset_lock(lock);
#pragma omp for ordered
		for (int i = 0; i < 8; i++) {
#pragma omp ordered
			{
				order += i;
				atomic_fetch_add(&orders, 1);
			}
		}
#pragma omp sections
		{
#pragma omp section
			atomic_fetch_add(&sections, 1);
#pragma omp section
			atomic_fetch_add(&sections, 1);
		}
	}
}

static void parallel_in_parallel(void)
{
	atomic_fetch_add(&parallels, 1);
#pragma omp parallel num_threads(2)
	{
		atomic_fetch_add(&parallels, 1);
		atomic_fetch_add(&nested, 1);
#pragma omp parallel num_threads(2)
		atomic_fetch_add(&nested, 0);
	}
}

int main(void)
{
	omp_lock_t lock;
	double sum = 0;

	omp_init_lock(&lock);
	omp_set_max_active_levels(2);
	for (int i = 0; i < ROUNDS; i++) {
		loop_and_critical(&sum);
		tasks_in_tasks();
		locks_and_order(&lock);
		parallel_in_parallel();
	}
	omp_destroy_lock(&lock);
	printf("omp_parallel %d\nomp_critical %d\nomp_single %d\nomp_task_create %d\n"
	       "omp_barrier %d\nomp_ordered %d\nomp_lock_wait %d\nsum %.0f\n",
	       parallels, criticals, singles, tasks, barriers, orders, locks, sum);
	return 0;
}
