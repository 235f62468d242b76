/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See wrappers.h.
 */
#include "wrappers/wrappers.h"

void wrappers_start(const struct options_wrappers *options)
{
	(void)options;
}

void wrappers_stop(void)
{
}
