/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The library of nasty_dl.
 */
#include "nasty.h"
#include <stdexcept>

static volatile int times[4];

extern "C" {

NASTY_KEEP int plugin_throw(int depth, int (*back)(int))
{
	if (depth == 0)
		throw std::out_of_range(back(1) == 2 ? "far" : "near");
	return plugin_throw(depth - 1, back) + 1;
}

NASTY_KEEP int plugin_catch(int depth, int (*back)(int))
{
	try {
		return plugin_throw(depth, back);
	} catch (const std::out_of_range &what) {
		return static_cast<int>(strlen(what.what())) + back(depth);
	}
}

__attribute__((constructor)) NASTY_KEEP void plugin_begins(void)
{
	times[0] += times[1] + 1;
}

__attribute__((destructor)) NASTY_KEEP void plugin_ends(void)
{
	times[2] += times[0];
}
}
