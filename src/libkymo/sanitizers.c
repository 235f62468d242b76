/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Programs built with -fsanitize=address against a shared ASan runtime (gcc's default) end at once
 * when another library was loaded before that runtime, as a preloaded one is
 * (AsanCheckDynamicRTPrereqs in the runtime's asan_linux.cpp). kymo's wrappers lead on to the
 * runtime's interceptors, so the order does no harm here, and the check is switched off by the way
 * that the runtime has for it (sanitizer manual, __asan_default_options). A program that defines
 * this function itself comes first in look-up and keeps its own.
 */
#include "libkymo/real.h"

const char *__asan_default_options(void);

EXPORTED const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
