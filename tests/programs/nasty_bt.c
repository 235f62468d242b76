/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Stacks as the program sees its own: backtrace(), _Unwind_Backtrace and dladdr() name what the
 * source says. Frames in code of no object have no name and are not shown.
 */
#include "nasty.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <unwind.h>

#define MOST 64
static void *addresses[MOST];
static int count;

static _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *nothing)
{
	(void)nothing;
	if (count < MOST)
		addresses[count++] = (void *)_Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void names(const char *what)
{
	nasty_say("%s:", what);
	for (int i = 0; i < count; i++) {
		Dl_info info;
		const char *name;

		if (!dladdr((char *)addresses[i] - 1, &info))
			continue;
		name = info.dli_sname ? info.dli_sname : "?";
		nasty_say(" %s", name);
		if (strcmp(name, "main") == 0)
			break;
	}
	nasty_say("\n");
}

NASTY_KEEP int bt_look(void)
{
	count = backtrace(addresses, MOST);
	names("backtrace");
	count = 0;
	_Unwind_Backtrace(frame, NULL);
	names("unwind");
	return count;
}

NASTY_KEEP int bt_down(int depth)
{
	int found = depth == 0 ? bt_look() : bt_down(depth - 1);

	NASTY_OPAQUE();
	return found;
}

NASTY_KEEP int bt_aligned(int depth)
{
	char room[256] __attribute__((aligned(128)));

	__asm__ volatile("" ::"r"(room) : "memory");
	return bt_down(depth) + (int)((uintptr_t)room & 127);
}

static int compare(const void *a, const void *b)
{
	if (*(const int *)a == 5 && *(const int *)b == 4)
		bt_aligned(2);
	return *(const int *)a - *(const int *)b;
}

NASTY_KEEP int bt_sort(void)
{
	int values[] = {5, 4};

	qsort(values, 2, sizeof(values[0]), compare);
	return values[0];
}

NASTY_KEEP void bt_work(void)
{
	for (int i = 0; i < 10; i++)
		bt_aligned(i);
	bt_sort();
	nasty_count("bt_look", 11);
	nasty_count("bt_aligned", 11);
	nasty_count("bt_down", 10 * 11 / 2 + 3);
	nasty_count("bt_sort", 1);
}

int main(int argc, char **argv)
{
	int status = nasty_run(argc, argv, bt_work);

	NASTY_OPAQUE();
	return status;
}
