/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_file.h.
 */
#include "cmd/instrument_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/rewrite.h"
#include "cmd/instrument_dependencies.h"
#include "cmd/instrument_misses.h"
#include "cmd/message.h"
#include "cmd/result_path.h"
#include "cmd/target.h"
#include "common/settings_value.h"

/* The files looked at. */
struct file_modules {
	struct instrument_module **list;
	size_t count;
};

static int modules_add(struct file_modules *modules, const struct instrument_setup *setup,
		       const char *path, bool is_program, struct problem *problem)
{
	struct instrument_module **list =
		reallocarray(modules->list, modules->count + 1, sizeof(void *));
	struct instrument_module *module = calloc(1, sizeof(*module));

	if (list)
		modules->list = list;
	if (!list || !module) {
		free(module);
		return problem_set(problem, -ENOMEM, "out of memory");
	}
	instrument_module_load(setup, path, path, is_program, module);
	list[modules->count++] = module;
	return 0;
}

static void modules_deinit(struct file_modules *modules)
{
	for (size_t i = 0; i < modules->count; i++) {
		instrument_module_deinit(modules->list[i]);
		free(modules->list[i]);
	}
	free(modules->list);
}

/* ---- finding ---- */

/* A path, a file here, or a program in PATH; absolute. */
static int file_find(const char *name, char ret[PATH_MAX], struct problem *problem)
{
	struct target target;
	struct stat status;
	int error;

	if (strchr(name, '/') || !stat(name, &status)) {
		if (realpath(name, ret))
			return 0;
		problem_set(problem, 0, "cannot read '%s': %s", name, strerror(errno));
		return EXIT_NOT_FOUND;
	}
	error = target_resolve(name, &target, problem);
	if (error)
		return error;
	if (realpath(target.path, ret))
		return 0;
	problem_set(problem, 0, "cannot read '%s': %s", target.path, strerror(errno));
	return EXIT_NOT_FOUND;
}

/* What elf_open() would say less helpfully. */
static int file_check(const char *path, struct problem *problem)
{
	char head[128] = "";
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (file < 0)
		return problem_set(problem, -errno, "cannot read '%s': %s", path, strerror(errno));
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

static int modules_add_libraries(struct file_modules *modules, const struct instrument_setup *setup,
				 const char *program, struct problem *problem)
{
	char **libraries;
	int error = instrument_dependencies(program, &libraries, problem);

	for (char **library = libraries; !error && library && *library; library++)
		error = modules_add(modules, setup, *library, false, problem);
	instrument_dependencies_destroy(libraries);
	return error;
}

/* ---- reports ---- */

static bool report_has_format(const struct launch *launch, const char *format)
{
	struct setting_slice rest, word;

	rest = setting_slice(resolved_text(launch->settings, SETTING_INSTRUMENT_FORMATS));
	while (setting_list_next(&rest, &word)) {
		if (setting_slice_is(word, format))
			return true;
	}
	return false;
}

int instrument_report(const struct instrument_lists *lists, const struct launch *launch,
		      const struct instrument_options *options, FILE *out, struct problem *problem)
{
	char directory[PATH_MAX];
	int error;

	for (unsigned i = 0; i < PRINT_LISTS; i++) {
		if (options->print[i])
			instrument_lists_print(lists, (enum instrument_print)i, options->print[i],
					       out);
	}
	if (fflush(out) || ferror(out))
		return problem_set(problem, -EIO, "cannot write what is to be printed");
	instrument_lists_summary(lists);
	instrument_misses_warn(lists, launch->settings, !options->rewrite);
	snprintf(directory, sizeof(directory), "%s/instrumentation", launch->result);
	error = result_make_directories(directory);
	if (error)
		return problem_set(problem, error, "cannot make '%s': %s", directory,
				   strerror(-error));
	return instrument_lists_write(lists, directory, report_has_format(launch, "text"),
				      report_has_format(launch, "json"), problem);
}

/* ---- rewriting ---- */

/* The copy needs libkymo-dl, which finds libkymo beside itself. */
static void rewrite_front(struct rewrite_options *options, char directory[PATH_MAX])
{
	char *library, *slash;

	if (launch_find_library(&library, NULL))
		return;
	launch_front_library(library, directory);
	free(library);
	slash = strrchr(directory, '/');
	if (!slash)
		return;
	*slash = '\0';
	options->needed = "libkymo-dl.so";
	options->runpath = directory;
}

/* What is there already; symbolic links are followed. */
static int out_check(const struct instrument_module *module, const char *out, bool force,
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

static int file_rewrite(const struct instrument_module *module, const char *out, bool force,
			struct problem *problem)
{
	struct rewrite_options options = {0};
	struct rewrite_result result;
	char directory[PATH_MAX] = "";
	int error = out_check(module, out, force, problem);

	if (error)
		return error;
	rewrite_front(&options, directory);
	if (!options.needed)
		return problem_set(problem, -ENOENT,
				   "cannot find libkymo-dl.so, which the copy would need");
	error = rewrite_elf(module->path, out, &module->plan, module->selection.modes, &options,
			    &result, problem);
	if (error)
		return error;
	message_note("'%s': %u functions instrumented, %llu bytes", out, result.functions,
		     (unsigned long long)result.size);
	if (result.trailing)
		message_warning("'%s': %llu bytes behind the ELF file are no longer at its end",
				out, (unsigned long long)result.trailing);
	if (result.table_moved)
		message_warning("'%s': its program headers had to move; as an executable it needs "
				"Linux 5.18",
				out);
	return 0;
}

/* ---- */

/* Everything up to the lists. */
static int file_work(const struct launch *launch, struct instrument_request *request,
		     const struct instrument_options *options, const char *path,
		     struct file_modules *modules, struct problem *problem)
{
	const struct instrument_module *program;
	int error = file_check(path, problem);

	if (options->rewrite)
		request->setup.plan.placement = PLAN_PLACEMENT_BEHIND;
	if (!error)
		error = modules_add(modules, &request->setup, path, true, problem);
	if (error)
		return error;
	program = modules->list[0];
	if (program->status)
		return problem_set(problem, program->status, "%s", program->problem.text);
	if (!options->rewrite)
		return modules_add_libraries(modules, &request->setup, path, problem);
	if (options->simulate)
		return 0;
	if (program->verdict)
		return problem_set(problem, -ENOENT, "'%s' is left alone: %s", path,
				   selection_verdict_text(program->verdict));
	if (!program->selection.chosen)
		return problem_set(problem, -ENOENT,
				   "no function of '%s' is chosen (--simulate --print-excluded "
				   "pair says why)",
				   path);
	return file_rewrite(program, options->rewrite,
			    resolved_bool(launch->settings, SETTING_FORCE), problem);
}

static int file_lists(struct launch *launch, const struct instrument_request *request,
		      const struct instrument_options *options, const struct file_modules *modules,
		      struct problem *problem)
{
	struct result_keys keys = {launch->arguments[0], launch->start, getpid()};
	struct instrument_lists lists = {(const struct instrument_module *const *)modules->list,
					 modules->count, request->labels, request->rules};
	int error = result_directory_create(launch->settings, &keys, &launch->result, problem);

	return error ? error : instrument_report(&lists, launch, options, stdout, problem);
}

int instrument_file(struct launch *launch, struct instrument_request *request,
		    const struct instrument_options *options)
{
	struct file_modules modules = {0};
	struct problem problem = {""};
	char path[PATH_MAX];
	int status = file_find(launch->arguments[0], path, &problem);

	if (!status && (file_work(launch, request, options, path, &modules, &problem) ||
			file_lists(launch, request, options, &modules, &problem)))
		status = EXIT_OWN_FAILURE;
	if (status)
		message_error("%s", problem.text);
	else
		message_note("lists of functions: %s/instrumentation", launch->result);
	modules_deinit(&modules);
	return status;
}
