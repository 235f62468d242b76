/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Libraries that are opened while the program runs: noticed when they are mapped, before any of
 * their code runs.
 */
#ifndef KYMO_INSTRUMENT_LOADED_H
#define KYMO_INSTRUMENT_LOADED_H

/* From now on `mapped` is called whenever the loader has mapped objects or removed some, and
 * `removing` before it removes any, on the thread that does it, which holds the loader's lock. Once
 * in the life of the process. 0, or a negative errno: this loader looks different; what is loaded
 * must be noticed otherwise. */
int loaded_watch_loader(void (*mapped)(void), void (*removing)(void));

#endif
