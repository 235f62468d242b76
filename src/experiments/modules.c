/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See modules.h.
 */
#include "experiments/modules.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/causal/map.h"
#include "launch/mapped_file.h"

struct causal_module_entry {
	dev_t device;
	ino_t inode;
	struct timespec changed;
	char *shown_path; /* path in the process; targets and places refer to it */
	int map_status; /* 0: there is a map; -ENOENT: nothing is in scope; else what went wrong */
	char map[PATH_MAX];
	struct causal_named_place_address points[CAUSAL_ANSWER_POINTS];
	size_t point_count;
};

int causal_modules_init(struct causal_modules *ret, const struct causal_server_options *options,
			struct problem *problem)
{
	int error;

	pthread_mutex_init(&ret->lock, NULL);
	ret->places = options->places;
	ret->instrumented = options->instrumented;
	ret->say = options->say;
	ret->context = options->context;
	ret->directory = strdup(options->directory);
	ret->debug_search_path =
		options->debug_search_path ? strdup(options->debug_search_path) : NULL;
	ret->found = calloc(ret->places ? ret->places->count + 1 : 1, sizeof(*ret->found));
	if (!ret->directory || !ret->found ||
	    (options->debug_search_path && !ret->debug_search_path) ||
	    causal_targets_create(&ret->targets))
		error = problem_set(problem, -ENOMEM, "out of memory");
	else
		error = causal_scopes_create(&options->scope, &ret->scopes, problem);
	return error;
}

void causal_modules_deinit(struct causal_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		free(modules->list[i]->shown_path);
		free(modules->list[i]);
	}
	free(modules->list);
	free(modules->found);
	free(modules->directory);
	free(modules->debug_search_path);
	causal_targets_destroy(modules->targets);
	causal_scopes_destroy(modules->scopes);
	pthread_mutex_destroy(&modules->lock);
}

/* ---- making ---- */

static struct causal_module_entry *find_known_module(const struct causal_modules *modules,
						     const struct stat *status)
{
	for (size_t i = 0; i < modules->count; i++) {
		struct causal_module_entry *known = modules->list[i];

		if (known->device == status->st_dev && known->inode == status->st_ino &&
		    known->changed.tv_sec == status->st_mtim.tv_sec &&
		    known->changed.tv_nsec == status->st_mtim.tv_nsec)
			return known;
	}
	return NULL;
}

static struct causal_module_entry *add_known_module(struct causal_modules *modules,
						    const struct stat *status, const char *shown)
{
	struct causal_module_entry *known = calloc(1, sizeof(*known)),
				   **larger = reallocarray(modules->list, modules->count + 1,
							   sizeof(void *));

	if (larger)
		modules->list = larger;
	if (known)
		known->shown_path = strdup(shown);
	if (!larger || !known || !known->shown_path) {
		free(known);
		return NULL;
	}
	known->device = status->st_dev;
	known->inode = status->st_ino;
	known->changed = status->st_mtim;
	modules->list[modules->count++] = known;
	return known;
}

static int write_causal_map_of_module(const struct causal_modules *modules,
				      struct causal_module_entry *known, const void *image,
				      size_t size, struct problem *problem)
{
	int length = snprintf(known->map, sizeof(known->map), "%s/map-%zu", modules->directory,
			      modules->count),
	    error = 0;
	FILE *file = NULL;

	/* cutting it would end the processes of a session that is still there with SIGBUS */
	if (length < (int)sizeof(known->map) && (!unlink(known->map) || errno == ENOENT))
		file = fopen(known->map, "wxe");
	if (!file)
		return problem_set(problem, -errno, "cannot write a causal map in '%s': %s",
				   modules->directory, strerror(errno));
	if (fwrite(image, 1, size, file) != size)
		error = -errno;
	if (fclose(file) && !error)
		error = -errno;
	if (error)
		return problem_set(problem, error, "cannot write '%s': %s", known->map,
				   strerror(-error));
	return 0;
}

static int build_and_write_module_map(struct causal_modules *modules,
				      struct causal_module_entry *known,
				      struct causal_module *module, struct problem *problem)
{
	void *image;
	size_t size;
	int error = causal_target_map_build(module, modules->scopes, modules->targets, &image,
					    &size, problem);

	if (error)
		return error;
	error = write_causal_map_of_module(modules, known, image, size, problem);
	free(image);
	return error;
}

static void find_named_place_addresses_in_module(struct causal_modules *modules,
						 struct causal_module_entry *known,
						 struct causal_module *module)
{
	int count = causal_named_places_find_addresses(modules->places, module, known->points,
						       CAUSAL_ANSWER_POINTS);

	known->point_count = count > 0 ? (size_t)count : 0;
	for (size_t place = 0; place < modules->places->count; place++) {
		bool found = false;

		for (size_t i = 0; i < known->point_count; i++)
			found |= known->points[i].place == place;
		modules->found[place] += found;
	}
}

/* Fills *known; with the lock held. */
static void fill_module_entry(struct causal_modules *modules, struct causal_module_entry *known,
			      const char *path, bool is_program, struct problem *problem)
{
	bool scope = causal_binary_is_in_scope(modules->scopes, known->shown_path, is_program);
	bool points = modules->places && modules->places->count;
	struct causal_module module;

	known->map_status = -ENOENT;
	problem_set(problem, 0, "'%s' is not in scope", known->shown_path);
	if (!scope && !points)
		return;
	known->map_status = causal_module_open(&module, path, known->shown_path,
					       modules->debug_search_path, problem);
	if (known->map_status)
		return;
	if (points)
		find_named_place_addresses_in_module(modules, known, &module);
	known->map_status =
		scope ? build_and_write_module_map(modules, known, &module, problem) : -ENOENT;
	causal_module_close(&module);
}

int causal_modules_make_program_map(struct causal_modules *modules, const char *program,
				    struct problem *problem)
{
	char shown[PATH_MAX];
	struct causal_module_entry *known;
	struct stat status;
	int error = 0;

	problem_set(problem, 0, "%s", "");
	if (!realpath(program, shown) || stat(shown, &status))
		return problem_set(problem, -errno, "cannot read '%s': %s", program,
				   strerror(errno));
	pthread_mutex_lock(&modules->lock);
	known = find_known_module(modules, &status);
	if (!known) {
		known = add_known_module(modules, &status, shown);
		if (known)
			fill_module_entry(modules, known, shown, true, problem);
		else
			error = problem_set(problem, -ENOMEM, "out of memory");
	}
	pthread_mutex_unlock(&modules->lock);
	return error ? error : known->map_status;
}

/* ---- answering ---- */

static bool find_reachable_path_of_request(const struct causal_request *request, char *ret,
					   size_t size, struct stat *status)
{
	const struct mapped_file file = {
		.pid = request->pid,
		.device = request->device,
		.inode = request->inode,
		.path = request->path,
		.build_id = request->build_id,
		.build_id_size = request->build_id_size <= sizeof(request->build_id)
					 ? request->build_id_size
					 : 0,
	};

	return mapped_file_find_reachable_path(&file, ret, size, status);
}

static void fill_module_answer(const struct causal_modules *modules,
			       const struct causal_module_entry *known,
			       struct causal_answer *answer)
{
	answer->status = known->map_status;
	if (!known->map_status)
		snprintf(answer->map, sizeof(answer->map), "%s", known->map);
	answer->point_count = (uint32_t)known->point_count;
	for (size_t i = 0; i < known->point_count; i++) {
		const struct causal_named_place *place =
			&modules->places->list[known->points[i].place];

		answer->points[i].address = known->points[i].offset;
		answer->points[i].kind = place->kind;
		answer->points[i].instrumented =
			modules->instrumented && known->points[i].is_function;
		snprintf(answer->points[i].name, sizeof(answer->points[i].name), "%s", place->name);
	}
}

void causal_modules_answer_request(struct causal_modules *modules,
				   const struct causal_request *request,
				   struct causal_answer *answer)
{
	struct causal_module_entry *known;
	struct problem problem = {""};
	char path[2 * PATH_MAX];
	struct stat status;

	if (!find_reachable_path_of_request(request, path, sizeof(path), &status)) {
		answer->status = -ESTALE;
		return;
	}
	pthread_mutex_lock(&modules->lock);
	known = find_known_module(modules, &status);
	if (!known && (known = add_known_module(modules, &status, request->path))) {
		fill_module_entry(modules, known, path,
				  mapped_file_is_program(request->pid, &status), &problem);
		/* What is no ELF file has no functions: plans of ours, compiled code of others. */
		if (known->map_status && known->map_status != -ENOENT &&
		    known->map_status != -ENOEXEC && modules->say)
			modules->say(modules->context, problem.text);
	}
	answer->status = -ENOMEM;
	if (known)
		fill_module_answer(modules, known, answer);
	pthread_mutex_unlock(&modules->lock);
}

unsigned causal_modules_count_having_place(struct causal_modules *modules, size_t place)
{
	unsigned found;

	pthread_mutex_lock(&modules->lock);
	found = modules->places && place < modules->places->count ? modules->found[place] : 0;
	pthread_mutex_unlock(&modules->lock);
	return found;
}
