/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which functions are instrumented: the rules of the user, in their order, with the reason for each
 * function that is left out.
 */
#ifndef KYMO_BINARY_SELECTION_H
#define KYMO_BINARY_SELECTION_H

#include "binary/functions.h"
#include "binary/plan.h"
#include "common/problem.h"

enum selection_verdict {
	SELECTION_CHOSEN,
	SELECTION_NOT_PATCHABLE, /* plan_reason says why */
	SELECTION_INTERNAL,      /* of a library that kymo or the C library needs to work */
	SELECTION_SYSTEM_MODULE, /* default: of the C library, the loader, the C++ runtime */
	SELECTION_ROUTINE,       /* default: start-up code, allocator internals and the like */
	SELECTION_TINY,          /* less than two instructions */
	SELECTION_EXCLUDED,      /* -E, -ME */
	SELECTION_OVERLAPPING,
	SELECTION_NOT_RESTRICTED, /* -R, -MR given and neither matches */
	SELECTION_NOT_INCLUDED,   /* a list was given and it is not on it */
	SELECTION_LINKAGE,
	SELECTION_VISIBILITY,
	SELECTION_ADDRESS_RANGE,
	SELECTION_INSTRUCTIONS,
	SELECTION_INSTRUCTION_TEXT,
	SELECTION_VERDICTS
};

#endif
