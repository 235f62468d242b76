/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See file.h.
 */
#include "planning/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/rewrite/rewrite.h"
#include "common/foreign_file.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "launch/parts.h"
#include "launch/result_path.h"
#include "launch/target.h"
#include "planning/dependencies.h"
#include "planning/misses.h"

/* The files looked at. */
struct planned_file_module_list {
	struct planned_module **list;
	size_t count;
};

static int add_file_module(struct planned_file_module_list *modules,
			   const struct instrumentation_setup *setup, const char *path,
			   bool is_program, struct problem *problem)
{
	struct planned_module **list =
		reallocarray(modules->list, modules->count + 1, sizeof(void *));
	struct planned_module *module = calloc(1, sizeof(*module));

	if (list)
		modules->list = list;
	if (!list || !module) {
		free(module);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	planned_module_load_from_path(setup, path, path, is_program, module);
	list[modules->count++] = module;
	return 0;
}

static void free_file_modules(struct planned_file_module_list *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		planned_module_deinit(modules->list[i]);
		free(modules->list[i]);
	}
	free(modules->list);
}

/* ---- finding ---- */

/* A path, a file here, or a program in PATH; absolute. */
static int find_program_file(const char *name, char ret[PATH_MAX], struct problem *problem)
{
	struct target target;
	struct stat status;
	int error;

	if (strchr(name, '/') || !stat(name, &status)) {
		if (realpath(name, ret))
			return 0;
		problem_set(problem, 0, "cannot read '%s': %s", name, strerror(errno));
		return EXIT_PROGRAM_NOT_FOUND;
	}
	error = target_find_program(name, &target, problem);
	if (error)
		return error;
	if (realpath(target.path, ret))
		return 0;
	problem_set(problem, 0, "cannot read '%s': %s", target.path, strerror(errno));
	return EXIT_PROGRAM_NOT_FOUND;
}

/* What elf_open() would say less helpfully. */
static int check_program_is_no_script(const char *path, struct problem *problem)
{
	char head[128] = "";
	static const struct foreign_open_policy how = {.directory = AT_FDCWD};
	int file = foreign_open_file(&how, path, NULL);
	ssize_t length;

	if (file == -ENODEV || file == -EISDIR)
		return 0; /* elf_open() says what it is not */
	if (file < 0)
		return problem_set(problem, file, "cannot read '%s': %s", path, strerror(-file));
	length = read(file, head, sizeof(head) - 1);
	close(file);
	if (length > 2 && !strncmp(head, "#!", 2)) {
		head[strcspn(head, "\r\n")] = '\0';
		return problem_set(problem, -ENOEXEC,
				   "'%s' is a script; instrument its interpreter instead (%s)",
				   path, head + 2 + strspn(head + 2, " \t"));
	}
	return 0;
}

static int add_library_modules(struct planned_file_module_list *modules,
			       const struct instrumentation_setup *setup, const char *program,
			       struct problem *problem)
{
	char **libraries;
	int error = instrument_list_dependencies(program, &libraries, problem);

	for (char **library = libraries; !error && library && *library; library++)
		error = add_file_module(modules, setup, *library, false, problem);
	instrument_dependencies_destroy(libraries);
	return error;
}

/* ---- reports ---- */

static bool is_list_format_requested(const struct launch *launch, const char *format)
{
	struct text_slice rest, word;

	rest = setting_slice_from_text(
		effective_setting_text(launch->settings, SETTING_INSTRUMENT_FORMATS));
	while (setting_next_list_word(&rest, &word)) {
		if (setting_slice_equals_word(word, format))
			return true;
	}
	return false;
}

int instrument_print_and_write_lists(const struct function_list_output_args *lists,
				     const struct launch *launch,
				     const struct instrument_command_options *options, FILE *out,
				     struct problem *problem)
{
	char directory[PATH_MAX];
	int error;

	for (unsigned i = 0; i < PRINT_LIST_COUNT; i++) {
		if (options->print[i])
			function_lists_print_one(lists, (enum function_list_kind)i,
						 options->print[i], out);
	}
	if (fflush(out) || ferror(out))
		return problem_set(problem, -EIO, "cannot write what is to be printed");
	function_lists_print_summary(lists);
	instrument_warn_of_unmatched_names(lists, launch->settings, !options->rewritten_file_path);
	snprintf(directory, sizeof(directory), "%s/instrumentation", launch->result);
	error = result_make_directories(directory);
	if (error)
		return problem_set(problem, error, "cannot make '%s': %s", directory,
				   strerror(-error));
	return function_lists_write_files(lists, directory,
					  is_list_format_requested(launch, "text"),
					  is_list_format_requested(launch, "json"), problem);
}

/* ---- rewriting ---- */

/* The copy needs libkymo-dl, which finds libkymo beside itself. */
static void set_needed_front_library(struct rewrite_options *options, char directory[PATH_MAX])
{
	char *slash;

	part_find_path(PART_LIBKYMO_DL, directory);
	slash = strrchr(directory, '/');
	if (!slash)
		return;
	*slash = '\0';
	options->needed_library = "libkymo-dl.so";
	options->added_runpath = directory;
}

/* What is there already; symbolic links are followed. */
static int check_output_path(const struct planned_module *module, const char *out, bool force,
			     struct problem *problem)
{
	struct stat there;

	if (stat(out, &there))
		return 0;
	/* A device node that is replaced, /dev/null say, is missed by every other program. */
	if (!S_ISREG(there.st_mode))
		return problem_set(problem, -EINVAL,
				   "'%s' is not a regular file: the copy needs another name", out);
	/* Also by another name: a link, or another path. */
	if (there.st_dev == module->device && there.st_ino == module->inode)
		return problem_set(
			problem, -EINVAL,
			"'%s' is the file to be instrumented: the copy needs another name", out);
	if (!force)
		return problem_set(problem, -EEXIST, "'%s' is there already; --force overwrites it",
				   out);
	return 0;
}

static int write_instrumented_module_copy(const struct planned_module *module, const char *out,
					  bool force, struct problem *problem)
{
	struct rewrite_options options = {0};
	struct rewrite_result result;
	char directory[PATH_MAX] = "";
	int error = check_output_path(module, out, force, problem);

	if (error)
		return error;
	set_needed_front_library(&options, directory);
	if (!options.needed_library)
		return problem_set(problem, -ENOENT,
				   "cannot find libkymo-dl.so, which the copy would need");
	error = rewrite_elf_file(module->path, out, &module->plan, module->selection.modes,
				 &options, &result, problem);
	if (error)
		return error;
	message_note("'%s': %u functions instrumented, %llu bytes", out, result.functions,
		     (unsigned long long)result.size);
	if (result.trailing_bytes)
		message_warning("'%s': %llu bytes after the ELF file are no longer at its end", out,
				(unsigned long long)result.trailing_bytes);
	if (result.has_moved_program_headers)
		message_warning("'%s': its program headers had to move; running it needs Linux "
				"5.18 or later",
				out);
	return 0;
}

/* ---- */

/* Everything up to the lists. */
static int load_modules_and_rewrite_program(const struct launch *launch,
					    struct instrumentation_request *request,
					    const struct instrument_command_options *options,
					    const char *path,
					    struct planned_file_module_list *modules,
					    struct problem *problem)
{
	const struct planned_module *program;
	int error = check_program_is_no_script(path, problem);

	if (options->rewritten_file_path)
		request->setup.plan.arena_placement = PLAN_ARENA_PLACEMENT_BEHIND_MODULE;
	if (!error)
		error = add_file_module(modules, &request->setup, path, true, problem);
	if (error)
		return error;
	program = modules->list[0];
	if (program->status)
		return problem_set(problem, program->status, "%s", program->problem.text);
	if (!options->rewritten_file_path)
		return add_library_modules(modules, &request->setup, path, problem);
	if (options->is_simulation)
		return 0;
	if (program->verdict)
		return problem_set(problem, -ENOENT, "'%s' is left alone: %s", path,
				   selection_verdict_to_text(program->verdict));
	if (!program->selection.chosen_count)
		return problem_set(problem, -ENOENT,
				   "no function of '%s' is selected (--simulate --print-excluded "
				   "pair lists the reasons)",
				   path);
	return write_instrumented_module_copy(
		program, options->rewritten_file_path,
		effective_setting_bool(launch->settings, SETTING_FORCE), problem);
}

static int create_result_and_report_lists(struct launch *launch,
					  const struct instrumentation_request *request,
					  const struct instrument_command_options *options,
					  const struct planned_file_module_list *modules,
					  struct problem *problem)
{
	struct result_key_values keys = {launch->arguments[0], launch->start, getpid()};
	struct function_list_output_args lists = {
		(const struct planned_module *const *)modules->list, modules->count,
		request->signature_part_flags, request->rules};
	int error = result_directory_create(launch->settings, &keys, &launch->place, problem);

	launch->result = error ? NULL : launch->place.path;
	return error ? error
		     : instrument_print_and_write_lists(&lists, launch, options, stdout, problem);
}

int instrument_list_or_rewrite_file(struct launch *launch, struct instrumentation_request *request,
				    const struct instrument_command_options *options)
{
	struct planned_file_module_list modules = {0};
	struct problem problem = {""};
	char path[PATH_MAX];
	int status = find_program_file(launch->arguments[0], path, &problem);

	if (!status &&
	    (load_modules_and_rewrite_program(launch, request, options, path, &modules, &problem) ||
	     create_result_and_report_lists(launch, request, options, &modules, &problem)))
		status = EXIT_KYMO_FAILED;
	if (status)
		message_error("%s", problem.text);
	else
		message_note("lists of functions: %s/instrumentation", launch->place.shown);
	free_file_modules(&modules);
	return status;
}
