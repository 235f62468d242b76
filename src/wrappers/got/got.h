/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Function wrappers: calls of a named function are led to a replacement by rewriting the slots of
 * global offset tables (JUMP_SLOT, GLOB_DAT and absolute relocations) in every loaded object, so
 * that calls between libraries are seen as well. Objects that are opened later are followed.
 *
 * A replacement is a plain function of the same type. It must behave as if it were not there: same
 * results, same errno, and it calls the original with the same arguments.
 *
 * Objects of kymo, the loader and libc itself are never rewritten, but for libc's calls of
 * functions that it lets programs replace (malloc) and whose wrapper wants them. Slots in read-only
 * relocated data (RELRO) are made writable for the moment of the store and read-only again.
 *
 * Threads: got_add_wrappers and got_scan_and_rewrite serialise themselves; a store to a slot is a
 * single aligned store, so calls in flight see the old or the new function. Not signal-safe; takes
 * the loader's lock through dl_iterate_phdr, so it is never called from handlers or from kymo's own
 * threads.
 */
#ifndef KYMO_WRAPPERS_GOT_GOT_H
#define KYMO_WRAPPERS_GOT_GOT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct got_wrapper {
	const char *symbol;
	void *replacement;
	/* Where the original goes. Set before the first slot is rewritten; a wrapper whose original
	 * is not defined in any loaded object yet is installed when one is opened that defines it.
	 */
	_Atomic(void *) *original;
	/* Only where the symbol resolves into an object whose file name begins with one of these
	 * ("libgomp|libomp"), or NULL for any. */
	const char *library;
	uint32_t rewritten_slot_count; /* slots so far */
	/* Calls that libc makes itself are led to the replacement as well. */
	bool is_wrapped_within_libc;
};

struct spool_writer;

/* Where it is counted what could not be rewritten. */
void got_set_spool(struct spool_writer *spool);
/* The table must live for ever. Takes effect at the next got_scan_and_rewrite(). 0 or negative
 * errno. */
int got_add_wrappers(struct got_wrapper *table, size_t count);
/* Rewrites what is not rewritten yet, in all objects that are loaded now. */
void got_scan_and_rewrite(void);
/* Puts back the original functions everywhere (detach). Replacements may still be running. */
void got_restore_originals(void);
/* After got_restore_originals(): the next got_scan_and_rewrite() rewrites again. */
void got_allow_rewriting_again(void);

#endif
