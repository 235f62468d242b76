/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the parts of kymo are: in the build tree, in the installation that the running command is
 * part of (wherever it was moved to), or where this build installs to. All parts are of the same
 * place, the one that has libkymo.so.
 */
#ifndef KYMO_LAUNCH_PARTS_H
#define KYMO_LAUNCH_PARTS_H

#include <limits.h>
#include <stdbool.h>

#include "common/problem.h"

enum installed_part_kind {
	PART_LIBKYMO,             /* libkymo.so */
	PART_LIBKYMO_DL,          /* libkymo-dl.so */
	PART_LIBKYMO_SDK,         /* libkymo-sdk.so */
	PART_LIBKYMO_GPU,         /* libkymo-gpu.so */
	PART_LIBKYMO_OPENCL,      /* libkymo-opencl.so */
	PART_NCCL_PLUGIN,         /* libnccl-profiler-kymo.so */
	PART_COUNTER_DEFINITIONS, /* counter_defs.yaml */
	PART_PYTHON_START,        /* python/start/sitecustomize.py */
	PART_COUNT
};

/* The part's absolute path without symbolic links; false and "" where there is none. */
bool part_find_path(enum installed_part_kind part, char path[PATH_MAX]);

/* The same as an error that says where kymo looked. */
int part_find_path_or_set_problem(enum installed_part_kind part, char path[PATH_MAX],
				  struct problem *problem);

/* A path of a library that variables such as LD_PRELOAD can name, which end a path at a blank or a
 * colon: where the true one has such bytes or is longer than `most`, it leads through a symbolic
 * link in a directory of the user's in /var/tmp or /tmp. False and "": there is none, or no link
 * can be made. */
bool part_find_or_link_preload_path(enum installed_part_kind part, unsigned most,
				    char path[PATH_MAX]);

#endif
