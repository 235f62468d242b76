/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The code that the borrowed thread runs, and the block of data that it works with.
 *
 * It calls dlopen, dlsym and the function, puts errno and what dlerror(3) would have said back,
 * says so in `state`, and then waits to be put back where it was. When nobody comes (who injected
 * was killed) it goes back by itself, by the way that leads back from signal handlers:
 * rt_sigreturn(2) on a frame that was prepared before the thread was moved. That way a system call
 * with a timeout ends early (EINTR) instead of going on, so it is the second best.
 */
#ifndef KYMO_INJECT_CODE_H
#define KYMO_INJECT_CODE_H

#include <stddef.h>
#include <stdint.h>

#define INJECTED_LIBRARY_PATH_MAX  4096
#define INJECTED_FUNCTION_NAME_MAX 64

enum injected_code_state_kind { INJECTED_CODE_RUNNING, INJECTED_CODE_DONE };

struct injected_code_data {
	uint64_t state;
	uint64_t errno_location_function, open, symbol, error; /* functions of libc */
	uint64_t flags;                                        /* of dlopen */
	uint64_t patience; /* turns to wait before going back alone */
	uint64_t frame;    /* for rt_sigreturn */
	uint64_t argument; /* of the function */
	/* what came out */
	uint64_t handle, result, error_text_address;
	/* From errno to the loader's message to the thread, which is put aside meanwhile; 0: this
	 * libc does not say where that is. */
	int64_t errno_to_message_offset;
	uint64_t message;
	char library[INJECTED_LIBRARY_PATH_MAX];
	char function[INJECTED_FUNCTION_NAME_MAX];
};

/* Position-independent; expects the block's address in rbx and a stack in rsp, 16 bytes aligned. */
extern const uint8_t inject_code[];
size_t inject_get_code_size(void);

#endif
