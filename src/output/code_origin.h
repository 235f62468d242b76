/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Whose code a frame is. People know their own program: what its libraries do is read best as what
 * the program's function does that called them, and libc's leaves ("futex_wait") say nothing
 * without it.
 */
#ifndef KYMO_OUTPUT_CODE_ORIGIN_H
#define KYMO_OUTPUT_CODE_ORIGIN_H

#include "analysis/session.h"

enum code_origin {
	CODE_OF_PROGRAM,
	CODE_OF_LIBRARY,   /* of the system, a package, an interpreter; also what their headers
			      inlined */
	CODE_OF_C_RUNTIME, /* libc, the loader, the compiler's run-time libraries, the start of
			      threads */
	CODE_OF_NOTHING    /* made by kymo: no stack, a thread's state */
};

struct code_origins {
	uint8_t *by_frame; /* enum code_origin */
};

/* 0 or -ENOMEM. */
int code_origins_create(const struct session *session, struct code_origins *ret);
void code_origins_destroy(struct code_origins *origins);

static inline enum code_origin code_origins_get(const struct code_origins *origins, uint32_t frame)
{
	return (enum code_origin)origins->by_frame[frame];
}

#endif
