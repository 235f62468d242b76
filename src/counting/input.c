/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See input.h. JSON is YAML, too, but for tabs between its words: what Jansson has found to
 * be JSON is read by the reader of YAML, which knows the places of what it has read.
 */
#include "counting/input.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/foreign_file.h"
#include "common/settings_value.h"
#include "console/message.h"
#include "counters/yaml.h"
#include "settings/suggest.h"

#define INPUT_FILE_BYTES_MAX (1u << 20)
#define PASSES_MAX           1000u

#define UTF8_BYTE_ORDER_MARK "\xef\xbb\xbf" /* editors of Windows put it in front */

/* The keys of a job: what is taken, and what rocprofv3 has besides. */
static const char supported_job_keys[] =
	"pmc,pmc_groups,kernel_include_regex,kernel_exclude_regex,kernel_iteration_range";
static const char ignored_job_keys[] =
	"pmc_group_interval,output_file,output_directory,output_format,output_config,log_level,"
	"extra_counters,runtime_trace,sys_trace,hip_trace,marker_trace,kernel_trace,"
	"memory_copy_trace,memory_allocation_trace,scratch_memory_trace,hsa_trace,rccl_trace,"
	"kokkos_trace,rocdecode_trace,rocjpeg_trace,hip_runtime_trace,hip_compiler_trace,"
	"hsa_core_trace,hsa_amd_trace,hsa_image_trace,hsa_finalizer_trace,stats,summary,"
	"summary_per_domain,summary_groups,summary_output_file,summary_units,mangled_kernels,"
	"truncate_kernels,kernel_rename,collection_period,collection_period_unit,perfetto_backend,"
	"perfetto_buffer_size,perfetto_buffer_fill_policy,perfetto_shmem_size_hint,agent_index,"
	"preload,minimum_output_data,selected_regions,group_by_queue";

struct input_file_parser {
	const char *path;
	struct counter_input_file *input;
	struct problem *problem;
};

__attribute__((format(printf, 4, 5))) static int
set_input_problem(const struct input_file_parser *parse, unsigned line, unsigned column,
		  const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return problem_set(parse->problem, -EINVAL, "%s:%u:%u: %s", parse->path, line, column,
			   text);
}

static int set_input_out_of_memory(const struct input_file_parser *parse)
{
	return problem_set(parse->problem, -ENOMEM, "out of memory reading '%s'", parse->path);
}

static int add_counter_pass(const struct input_file_parser *parse, unsigned line, unsigned column,
			    struct counter_pass **ret)
{
	struct counter_input_file *input = parse->input;
	struct counter_pass *larger;

	if (input->count == PASSES_MAX)
		return set_input_problem(parse, line, column, "more than %u runs", PASSES_MAX);
	larger = realloc(input->passes, (input->count + 1) * sizeof(*larger));
	if (!larger)
		return set_input_out_of_memory(parse);
	input->passes = larger;
	*ret = &larger[input->count++];
	**ret = (struct counter_pass){.line = line};
	return 0;
}

/* list := list,word */
static bool append_to_comma_list(char **list, const char *word, size_t length)
{
	size_t before = *list ? strlen(*list) : 0;
	char *larger = realloc(*list, before + length + 2);

	if (!larger)
		return false;
	*list = larger;
	if (before)
		larger[before++] = ',';
	memcpy(larger + before, word, length);
	larger[before + length] = '\0';
	return true;
}

/* ---- text ---- */

static int parse_pmc_text_line(const struct input_file_parser *parse, struct text_slice line,
			       unsigned number)
{
	static const char *const others[] = {"gpu:", "range:", "kernel:"};
	struct text_slice word;
	struct counter_pass *pass;

	for (size_t i = 0; i < line.length; i++) {
		if (line.text[i] == '#')
			line.length = i;
	}
	line = setting_trim_blanks(line);
	if (!line.length)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (line.length >= strlen(others[i]) &&
		    !memcmp(line.text, others[i], strlen(others[i]))) {
			message_warning("%s:%u: '%s' is ignored", parse->path, number, others[i]);
			return 0;
		}
	}
	if (memchr(line.text, '\0', line.length))
		return set_input_problem(parse, number, 1, "a zero byte: this is not a text file");
	if (line.length < 4 || memcmp(line.text, "pmc:", 4))
		return set_input_problem(parse, number, 1,
					 "'%.*s' is not a line such as 'pmc: COUNTER COUNTER'",
					 (int)(line.length < 60 ? line.length : 60), line.text);
	line.text += 4;
	line.length -= 4;
	pass = NULL;
	while (setting_next_list_word(&line, &word)) {
		int error = pass ? 0 : add_counter_pass(parse, number, 1, &pass);

		if (error)
			return error;
		if (!append_to_comma_list(&pass->counters, word.text, word.length))
			return set_input_out_of_memory(parse);
	}
	return pass ? 0 : set_input_problem(parse, number, 1, "'pmc:' without a counter");
}

static int parse_text_input(const struct input_file_parser *parse, const char *text, size_t size)
{
	unsigned number = 0;
	int error = 0;

	parse->input->is_text_format = true;
	if (size >= 3 && !memcmp(text, UTF8_BYTE_ORDER_MARK, 3)) {
		text += 3;
		size -= 3;
	}
	while (!error && size) {
		const char *end = memchr(text, '\n', size);
		size_t length = end ? (size_t)(end - text) : size;

		error = parse_pmc_text_line(parse, (struct text_slice){text, length}, ++number);
		length += end != NULL;
		text += length;
		size -= length;
	}
	return error;
}

/* ---- YAML, JSON ---- */

static int copy_yaml_scalar_text(const struct input_file_parser *parse,
				 const struct yaml_node *node, char **ret)
{
	if (node->kind != YAML_SCALAR)
		return set_input_problem(parse, node->line, node->column, "expected a text");
	if (!node->length ||
	    (node->is_plain && (!strcmp(node->text, "null") || !strcmp(node->text, "~"))))
		return 0;
	free(*ret);
	*ret = strndup(node->text, node->length);
	return *ret ? 0 : set_input_out_of_memory(parse);
}

/* [A, B], or "A B". */
static int append_yaml_counter_list(const struct input_file_parser *parse,
				    const struct yaml_node *node, char **list)
{
	int error = 0;

	if (node->kind == YAML_MAPPING)
		return set_input_problem(parse, node->line, node->column,
					 "expected a list of counters");
	if (node->kind == YAML_SCALAR) {
		struct text_slice rest = {node->text, node->length}, word;

		while (setting_next_list_word(&rest, &word)) {
			if (!append_to_comma_list(list, word.text, word.length))
				return set_input_out_of_memory(parse);
		}
		return 0;
	}
	for (const struct yaml_node *item = node->first; !error && item; item = item->next) {
		if (item->kind != YAML_SCALAR)
			return set_input_problem(parse, item->line, item->column,
						 "expected the name of a counter");
		error = append_yaml_counter_list(parse, item, list);
	}
	return error;
}

static int append_yaml_range_items(const struct input_file_parser *parse,
				   const struct yaml_node *list, char **ret)
{
	int error = 0;

	for (const struct yaml_node *item = list->first; !error && item; item = item->next) {
		if (item->kind == YAML_SEQUENCE)
			error = append_yaml_range_items(parse, item, ret);
		else if (item->kind != YAML_SCALAR)
			error = set_input_problem(
				parse, item->line, item->column,
				"expected the number of a launch, or a range such as 2-5");
		else if (!append_to_comma_list(ret, item->text, item->length))
			error = set_input_out_of_memory(parse);
	}
	return error;
}

/* "[1,[3-4]]", a text or a list, as kymo writes it: "1,3-4". */
static int parse_kernel_range(const struct input_file_parser *parse, const struct yaml_node *node,
			      char **ret)
{
	char *to;
	int error = node->kind == YAML_SEQUENCE ? append_yaml_range_items(parse, node, ret)
						: copy_yaml_scalar_text(parse, node, ret);

	if (error || !*ret)
		return error;
	to = *ret;
	for (const char *from = *ret; *from; from++) {
		if (!strchr("[] ", *from))
			*to++ = *from;
	}
	*to = '\0';
	return 0;
}

static int parse_job_key_and_value(const struct input_file_parser *parse,
				   const struct yaml_node *value, struct counter_pass *pass)
{
	const struct yaml_node *key = value->key;
	struct text_slice name = {key->text, key->length};
	struct suggestion suggestion;
	char hint[128];

	if (setting_slice_equals_word(name, "pmc"))
		return append_yaml_counter_list(parse, value, &pass->counters);
	if (setting_slice_equals_word(name, "kernel_include_regex"))
		return copy_yaml_scalar_text(parse, value, &pass->kernel_include_regex);
	if (setting_slice_equals_word(name, "kernel_exclude_regex"))
		return copy_yaml_scalar_text(parse, value, &pass->kernel_exclude_regex);
	if (setting_slice_equals_word(name, "kernel_iteration_range"))
		return parse_kernel_range(parse, value, &pass->kernel_iteration_range);
	if (setting_slice_equals_word(name, "pmc_groups"))
		return 0;
	if (setting_find_choice_index(name, ignored_job_keys) >= 0) {
		message_warning("%s:%u:%u: '%s' is ignored", parse->path, key->line, key->column,
				key->text);
		return 0;
	}
	suggestion_init(&suggestion, key->text, key->length);
	suggestion_offer_list(&suggestion, supported_job_keys);
	return set_input_problem(
		parse, key->line, key->column, "unknown key '%.60s'%s (a job has %s)", key->text,
		suggestion_format_hint(&suggestion, "", hint, sizeof(hint)), supported_job_keys);
}

static bool copy_pass_filters(const struct counter_pass *from, struct counter_pass *to)
{
	to->kernel_include_regex =
		from->kernel_include_regex ? strdup(from->kernel_include_regex) : NULL;
	to->kernel_exclude_regex =
		from->kernel_exclude_regex ? strdup(from->kernel_exclude_regex) : NULL;
	to->kernel_iteration_range =
		from->kernel_iteration_range ? strdup(from->kernel_iteration_range) : NULL;
	return (to->kernel_include_regex || !from->kernel_include_regex) &&
	       (to->kernel_exclude_regex || !from->kernel_exclude_regex) &&
	       (to->kernel_iteration_range || !from->kernel_iteration_range);
}

/* Groups of counters that rocprofv3 takes by turns: a run each, so that each kernel is counted
 * with all of them. */
static int append_counter_group_passes(const struct input_file_parser *parse,
				       const struct yaml_node *groups, size_t job)
{
	int error = 0;

	if (groups->kind != YAML_SEQUENCE)
		return set_input_problem(parse, groups->line, groups->column,
					 "expected a list of lists of counters");
	for (const struct yaml_node *group = groups->first; !error && group; group = group->next) {
		struct counter_pass *pass;

		error = add_counter_pass(parse, group->line, group->column, &pass);
		if (error)
			return error;
		if (!copy_pass_filters(&parse->input->passes[job], pass))
			return set_input_out_of_memory(parse);
		error = append_yaml_counter_list(parse, group, &pass->counters);
		if (!error && !pass->counters)
			error = set_input_problem(parse, group->line, group->column,
						  "a group without a counter");
	}
	return error;
}

static void remove_pass(struct counter_input_file *input, size_t place)
{
	struct counter_pass *pass = &input->passes[place];

	free(pass->counters);
	free(pass->kernel_include_regex);
	free(pass->kernel_exclude_regex);
	free(pass->kernel_iteration_range);
	memmove(pass, pass + 1, (--input->count - place) * sizeof(*pass));
}

static int parse_job_node(const struct input_file_parser *parse, const struct yaml_node *job)
{
	const struct yaml_node *groups = yaml_find_value(job, "pmc_groups");
	size_t place = parse->input->count;
	struct counter_pass *pass;
	int error;

	if (job->kind != YAML_MAPPING)
		return set_input_problem(parse, job->line, job->column,
					 "expected a job with 'pmc: [COUNTER, …]'");
	error = add_counter_pass(parse, job->line, job->column, &pass);
	if (error)
		return error;
	for (const struct yaml_node *value = job->first; !error && value; value = value->next)
		error = parse_job_key_and_value(parse, value, &parse->input->passes[place]);
	if (!error && groups)
		error = append_counter_group_passes(parse, groups, place);
	if (error)
		return error;
	if (!parse->input->passes[place].counters && !groups)
		return set_input_problem(parse, job->line, job->column, "a job without 'pmc'");
	if (!parse->input->passes[place].counters)
		remove_pass(parse->input, place);
	return 0;
}

static int parse_yaml_input(const struct input_file_parser *parse, const char *text, size_t size)
{
	struct memory_pool memory = {.failed = false};
	struct yaml_problem why;
	const struct yaml_node *root = yaml_parse(&memory, text, size, &why), *jobs;
	int error = 0;

	if (!root) {
		error = memory.failed
				? set_input_out_of_memory(parse)
				: set_input_problem(parse, why.line, why.column, "%s", why.text);
		memory_pool_free_all(&memory);
		return error;
	}
	jobs = yaml_find_value(root, "jobs");
	if (!jobs)
		error = set_input_problem(parse, root->line, root->column,
					  "there is no list 'jobs'");
	else if (jobs->kind != YAML_SEQUENCE)
		error = set_input_problem(parse, jobs->line, jobs->column, "'jobs' is not a list");
	for (const struct yaml_node *job = error ? NULL : jobs->first; !error && job;
	     job = job->next)
		error = parse_job_node(parse, job);
	memory_pool_free_all(&memory);
	return error;
}

/* Tabs between words become blanks; in strings there are none. */
static void replace_tabs_by_blanks(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\t')
			text[i] = ' ';
	}
}

static int parse_json_input(const struct input_file_parser *parse, const char *text, size_t size)
{
	bool marked = size >= 3 && !memcmp(text, UTF8_BYTE_ORDER_MARK, 3);
	char *copy = malloc(size + 1);
	json_error_t bad;
	json_t *root;
	int error;

	if (!copy)
		return set_input_out_of_memory(parse);
	size -= marked ? 3 : 0;
	memcpy(copy, text + (marked ? 3 : 0), size);
	root = json_loadb(copy, size, JSON_REJECT_DUPLICATES, &bad);
	if (root) {
		replace_tabs_by_blanks(copy, size);
		error = parse_yaml_input(parse, copy, size);
	} else {
		error = set_input_problem(parse, bad.line > 0 ? (unsigned)bad.line : 1,
					  bad.column > 0 ? (unsigned)bad.column : 1, "%s",
					  bad.text);
	}
	json_decref(root);
	free(copy);
	return error;
}

/* ---- files ---- */

static bool path_ends_with(const char *path, const char *ending)
{
	size_t length = strlen(path), tail = strlen(ending);

	return length >= tail && !strcmp(path + length - tail, ending);
}

int counter_input_file_parse(const char *path, const char *text, size_t size,
			     struct counter_input_file *ret, struct problem *problem)
{
	struct input_file_parser parse = {path, ret, problem};
	int error;

	*ret = (struct counter_input_file){.count = 0};
	if (path_ends_with(path, ".json"))
		error = parse_json_input(&parse, text, size);
	else if (path_ends_with(path, ".yaml") || path_ends_with(path, ".yml"))
		error = parse_yaml_input(&parse, text, size);
	else
		error = parse_text_input(&parse, text, size);
	if (!error && !ret->count)
		error = problem_set(problem, -EINVAL, "'%s' names no counters", path);
	if (error)
		counter_input_file_deinit(ret);
	return error;
}

int counter_input_file_read(const char *path, struct counter_input_file *ret,
			    struct problem *problem)
{
	FILE *stream = foreign_open_user_named_stream(path);
	char *text = malloc(INPUT_FILE_BYTES_MAX + 1);
	size_t size = stream && text ? fread(text, 1, INPUT_FILE_BYTES_MAX + 1, stream) : 0;
	int error = 0;

	if (!stream || !text || ferror(stream))
		error = problem_set(problem, stream ? -EIO : -errno, "cannot read '%s': %s", path,
				    foreign_error_to_text(errno));
	else if (size > INPUT_FILE_BYTES_MAX)
		error = problem_set(problem, -EFBIG, "'%s' is larger than %u bytes", path,
				    INPUT_FILE_BYTES_MAX);
	else
		error = counter_input_file_parse(path, text, size, ret, problem);
	if (stream)
		fclose(stream);
	free(text);
	return error;
}

void counter_input_file_deinit(struct counter_input_file *input)
{
	while (input->count)
		remove_pass(input, input->count - 1);
	free(input->passes);
	input->passes = NULL;
}
