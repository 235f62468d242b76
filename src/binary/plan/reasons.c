/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The words for enum plan_reason.
 */
#include "binary/plan/plan.h"

static const struct {
	const char *word, *text;
} plan_reason_texts[PLAN_REASON_COUNT] = {
	[PLAN_PATCHABLE] = {"patchable", "its entry can be patched"},
	[PLAN_TARGET_IN_WINDOW] = {"target",
				   "something jumps to an instruction that would be overwritten"},
	[PLAN_TOO_SHORT] = {"short", "it has less than five bytes before the next function"},
	[PLAN_UNDECODABLE] = {"undecodable", "it contains bytes that are not instructions"},
	[PLAN_UNRELOCATABLE] = {"unrelocatable",
				"it begins with an instruction that cannot be moved"},
	[PLAN_FRAGMENT] = {"fragment",
			   "it is a part of another function (cold code), not an entry"},
	[PLAN_NO_RETURN_ADDRESS] = {"no-return-address",
				    "nothing calls it (start of a program, signal trampoline)"},
	[PLAN_READS_RETURN] = {"reads-return",
			       "it uses its return address or its caller's stack pointer"},
	[PLAN_RETURNS_TWICE] = {"returns-twice", "it returns twice, as setjmp and vfork do"},
	[PLAN_UNWINDER] = {"unwinder",
			   "it is a part of unwinding or of the dynamic loader's way to code"},
	[PLAN_LINKER_CODE] = {"linker", "the linker made it (procedure linkage table, init, fini)"},
	[PLAN_RESOLVER] = {"resolver",
			   "it is an IFUNC resolver, which runs before the program is relocated"},
	[PLAN_NO_SPACE] = {"no-space", "no stub can be reached from it"},
	[PLAN_OVERLAPS] = {"overlaps", "it shares code with another function"},
	[PLAN_UNCERTAIN] = {"uncertain", "where it ends is not known for sure"},
	[PLAN_NO_FRAME] = {"no-frame", "no unwind table describes it"},
	[PLAN_COUNTED_ELSEWHERE] = {"elsewhere",
				    "it runs as often as another block that is counted"},
	[PLAN_USED_AS_DATA] = {"used-as-data",
			       "its code is read or copied, or an address in it is calculated"},
};

const char *plan_reason_to_text(enum plan_reason reason)
{
	return (unsigned)reason < PLAN_REASON_COUNT ? plan_reason_texts[reason].text
						    : "unknown reason";
}

const char *plan_reason_to_word(enum plan_reason reason)
{
	return (unsigned)reason < PLAN_REASON_COUNT ? plan_reason_texts[reason].word : "unknown";
}
