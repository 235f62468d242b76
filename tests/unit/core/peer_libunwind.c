/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See peer_libunwind.h. With UNW_LOCAL_ONLY, libunwind.h gives its functions names with a prefix;
 * they are turned into the strings dlsym wants.
 */
#include "peer_libunwind.h"

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

#define PEER_NAME2(name) #name
#define PEER_NAME(name)  PEER_NAME2(name)

static struct {
	__typeof__(unw_init_local2) *init_local2;
	__typeof__(unw_get_reg) *get_reg;
	__typeof__(unw_step) *step;
	__typeof__(unw_is_signal_frame) *is_signal_frame;
	int (*backtrace2)(void **, int, unw_context_t *, int);
	int (*backtrace)(void **, int);
} peer;

bool peer_libunwind_open(void)
{
	void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	peer.init_local2 = (__typeof__(peer.init_local2))dlsym(library, PEER_NAME(unw_init_local2));
	peer.get_reg = (__typeof__(peer.get_reg))dlsym(library, PEER_NAME(unw_get_reg));
	peer.step = (__typeof__(peer.step))dlsym(library, PEER_NAME(unw_step));
	peer.is_signal_frame =
		(__typeof__(peer.is_signal_frame))dlsym(library, PEER_NAME(unw_is_signal_frame));
	peer.backtrace2 = (__typeof__(peer.backtrace2))dlsym(library, "unw_backtrace2");
	peer.backtrace = (__typeof__(peer.backtrace))dlsym(library, "unw_backtrace");
	return peer.init_local2 && peer.get_reg && peer.step && peer.is_signal_frame &&
	       peer.backtrace;
}

uint32_t peer_libunwind_step(ucontext_t *context, uint64_t *frames, uint32_t maximum)
{
	unw_cursor_t cursor;
	uint32_t count = 0;

	if (peer.init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME) != 0)
		return 0;
	do {
		unw_word_t ip;

		peer.get_reg(&cursor, UNW_REG_IP, &ip);
		if (ip == 0)
			break;
		/* After a step over a trampoline, the frame that the signal interrupted is the one
		 * that counts as signal frame. */
		frames[count] = ip + (count > 0 && peer.is_signal_frame(&cursor) > 0);
		count++;
	} while (count < maximum && peer.step(&cursor) > 0);
	return count;
}

uint32_t peer_libunwind_backtrace(ucontext_t *context, uint64_t *frames, uint32_t maximum)
{
	if (peer.backtrace2)
		return (uint32_t)peer.backtrace2((void **)frames, (int)maximum, context,
						 UNW_INIT_SIGNAL_FRAME);
	return (uint32_t)peer.backtrace((void **)frames, (int)maximum);
}

const char *peer_libunwind_backtrace_name(void)
{
	return peer.backtrace2 ? "unw_backtrace2" : "unw_backtrace";
}
