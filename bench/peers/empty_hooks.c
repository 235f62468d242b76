/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What programs built with -finstrument-functions call, doing nothing: the least that recompiling
 * for it costs.
 */
#define OUTSIDE __attribute__((no_instrument_function))

OUTSIDE void __cyg_profile_func_enter(void *function, void *caller);
OUTSIDE void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
	(void)function;
	(void)caller;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}
