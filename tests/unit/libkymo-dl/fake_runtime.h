/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A libkymo that writes down what it is asked for. Opened by libkymo-dl as the real one would be
 * (KYMO_LIBRARY), so that tests see every call that reaches it, in order.
 */
#ifndef KYMO_TESTS_FAKE_RUNTIME_H
#define KYMO_TESTS_FAKE_RUNTIME_H

/* What happened since the last call, one event a line; see fake_runtime.c for their form. */
#define FAKE_RUNTIME_TAKE   "fake_runtime_take"
#define FAKE_RUNTIME_ACTIVE "fake_runtime_active"

typedef const char *fake_runtime_take_function(void);
/* Is it at work? It is, from the start. */
typedef void fake_runtime_active_function(int active);

#endif
