/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Threads that take their names after they began: two workers, one name as long as the kernel
 * allows, and main last.
 */
#include <pthread.h>

#include "check.h"

static void *work(void *name)
{
	CHECK(pthread_setname_np(pthread_self(), name) == 0);
	check_burn_ms(200);
	return NULL;
}

int main(void)
{
	pthread_t workers[2];

	CHECK(pthread_create(&workers[0], NULL, work, "render") == 0);
	CHECK(pthread_create(&workers[1], NULL, work, "decoder-long-15") == 0);
	check_burn_ms(200);
	CHECK(pthread_setname_np(pthread_self(), "conductor") == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(workers[i], NULL) == 0);
	return check_passed("thread_names");
}
