/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_work.h.
 */
#include "core/base/own_work.h"

#include "core/base/fork_state.h"

KYMO_FORK_STATE struct own_work kymo_own_work = {.origin = SPOOL_IMAGE_EXECUTED};
