/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Replacing callbacks: a program that counts its own regions, with kymo or without it, and passes
 * them on.
 */
#include <stdatomic.h>
#include <stdio.h>

#include <kymo/user.h>

static struct kymo_callbacks before = {.size = sizeof(before)};
static atomic_int pushed;

static int count_push(const char *category, const char *name)
{
	atomic_fetch_add(&pushed, 1);
	return before.push_region(category, name); /* to kymo, if it is there */
}

int main(void)
{
	struct kymo_callbacks counting = {.size = sizeof(counting), .push_region = count_push};

	/* First where calls go now, so that count_push() never finds nothing to pass on to. */
	kymo_set_callbacks(NULL, &before);
	kymo_set_callbacks(&counting, NULL);
	for (int i = 0; i < 1000; i++) {
		kymo_push_region("counted");
		kymo_pop_region("counted");
	}
	kymo_set_callbacks(&before, NULL);
	kymo_push_region("not counted");
	kymo_pop_region("not counted");
	printf("%d regions\n", atomic_load(&pushed));
	return 0;
}
