/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counter_input.h. JSON is YAML, too, but for tabs between its words: what Jansson has found to
 * be JSON is read by the reader of YAML, which knows the places of what it has read.
 */
#include "cmd/counter_input.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/message.h"
#include "cmd/nearest.h"
#include "common/settings_value.h"
#include "counters/yaml.h"

#define FILE_MAX_SIZE (1u << 20)
#define PASSES_MAX    1000u

#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* editors of Windows put it in front */

/* Of a job: what is taken, and what rocprofv3 has besides. */
static const char known_keys[] =
	"pmc,pmc_groups,kernel_include_regex,kernel_exclude_regex,kernel_iteration_range";
static const char other_keys[] =
	"pmc_group_interval,output_file,output_directory,output_format,output_config,log_level,"
	"extra_counters,runtime_trace,sys_trace,hip_trace,marker_trace,kernel_trace,"
	"memory_copy_trace,memory_allocation_trace,scratch_memory_trace,hsa_trace,rccl_trace,"
	"kokkos_trace,rocdecode_trace,rocjpeg_trace,hip_runtime_trace,hip_compiler_trace,"
	"hsa_core_trace,hsa_amd_trace,hsa_image_trace,hsa_finalizer_trace,stats,summary,"
	"summary_per_domain,summary_groups,summary_output_file,summary_units,mangled_kernels,"
	"truncate_kernels,kernel_rename,collection_period,collection_period_unit,perfetto_backend,"
	"perfetto_buffer_size,perfetto_buffer_fill_policy,perfetto_shmem_size_hint,agent_index,"
	"preload,minimum_output_data,selected_regions,group_by_queue";

struct parse {
	const char *path;
	struct counter_input *input;
	struct problem *problem;
};

__attribute__((format(printf, 4, 5))) static int
input_wrong(const struct parse *parse, unsigned line, unsigned column, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	return problem_set(parse->problem, -EINVAL, "%s:%u:%u: %s", parse->path, line, column,
			   text);
}

static int input_no_memory(const struct parse *parse)
{
	return problem_set(parse->problem, -ENOMEM, "out of memory reading '%s'", parse->path);
}

static int input_add(const struct parse *parse, unsigned line, unsigned column,
		     struct counter_pass **ret)
{
	struct counter_input *input = parse->input;
	struct counter_pass *larger;

	if (input->count == PASSES_MAX)
		return input_wrong(parse, line, column, "more than %u runs", PASSES_MAX);
	larger = realloc(input->passes, (input->count + 1) * sizeof(*larger));
	if (!larger)
		return input_no_memory(parse);
	input->passes = larger;
	*ret = &larger[input->count++];
	**ret = (struct counter_pass){.line = line};
	return 0;
}

/* list := list,word */
static bool input_append(char **list, const char *word, size_t length)
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

static int input_text_line(const struct parse *parse, struct setting_slice line, unsigned number)
{
	static const char *const others[] = {"gpu:", "range:", "kernel:"};
	struct setting_slice word;
	struct counter_pass *pass;

	for (size_t i = 0; i < line.length; i++) {
		if (line.text[i] == '#')
			line.length = i;
	}
	line = setting_trim(line);
	if (!line.length)
		return 0;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		if (line.length >= strlen(others[i]) &&
		    !memcmp(line.text, others[i], strlen(others[i]))) {
			message_warning("%s:%u: '%s' is not looked at", parse->path, number,
					others[i]);
			return 0;
		}
	}
	if (memchr(line.text, '\0', line.length))
		return input_wrong(parse, number, 1, "a zero byte: this is no text");
	if (line.length < 4 || memcmp(line.text, "pmc:", 4))
		return input_wrong(parse, number, 1,
				   "'%.*s' is no line such as 'pmc: COUNTER COUNTER'",
				   (int)(line.length < 60 ? line.length : 60), line.text);
	line.text += 4;
	line.length -= 4;
	pass = NULL;
	while (setting_list_next(&line, &word)) {
		int error = pass ? 0 : input_add(parse, number, 1, &pass);

		if (error)
			return error;
		if (!input_append(&pass->counters, word.text, word.length))
			return input_no_memory(parse);
	}
	return pass ? 0 : input_wrong(parse, number, 1, "'pmc:' without a counter");
}

static int input_text(const struct parse *parse, const char *text, size_t size)
{
	unsigned number = 0;
	int error = 0;

	parse->input->is_text = true;
	if (size >= 3 && !memcmp(text, BYTE_ORDER_MARK, 3)) {
		text += 3;
		size -= 3;
	}
	while (!error && size) {
		const char *end = memchr(text, '\n', size);
		size_t length = end ? (size_t)(end - text) : size;

		error = input_text_line(parse, (struct setting_slice){text, length}, ++number);
		length += end != NULL;
		text += length;
		size -= length;
	}
	return error;
}

/* ---- YAML, JSON ---- */

static int input_scalar(const struct parse *parse, const struct yaml_node *node, char **ret)
{
	if (node->kind != YAML_SCALAR)
		return input_wrong(parse, node->line, node->column, "a text is expected here");
	if (!node->length ||
	    (node->is_plain && (!strcmp(node->text, "null") || !strcmp(node->text, "~"))))
		return 0;
	free(*ret);
	*ret = strndup(node->text, node->length);
	return *ret ? 0 : input_no_memory(parse);
}

/* [A, B], or "A B". */
static int input_counters(const struct parse *parse, const struct yaml_node *node, char **list)
{
	int error = 0;

	if (node->kind == YAML_MAPPING)
		return input_wrong(parse, node->line, node->column,
				   "a list of counters is expected here");
	if (node->kind == YAML_SCALAR) {
		struct setting_slice rest = {node->text, node->length}, word;

		while (setting_list_next(&rest, &word)) {
			if (!input_append(list, word.text, word.length))
				return input_no_memory(parse);
		}
		return 0;
	}
	for (const struct yaml_node *item = node->first; !error && item; item = item->next) {
		if (item->kind != YAML_SCALAR)
			return input_wrong(parse, item->line, item->column,
					   "the name of a counter is expected here");
		error = input_counters(parse, item, list);
	}
	return error;
}

static int input_range_items(const struct parse *parse, const struct yaml_node *list, char **ret)
{
	int error = 0;

	for (const struct yaml_node *item = list->first; !error && item; item = item->next) {
		if (item->kind == YAML_SEQUENCE)
			error = input_range_items(parse, item, ret);
		else if (item->kind != YAML_SCALAR)
			error = input_wrong(parse, item->line, item->column,
					    "the number of a launch, or a range of them, is "
					    "expected here");
		else if (!input_append(ret, item->text, item->length))
			error = input_no_memory(parse);
	}
	return error;
}

/* "[1,[3-4]]", a text or a list, as kymo writes it: "1,3-4". */
static int input_range(const struct parse *parse, const struct yaml_node *node, char **ret)
{
	char *to;
	int error = node->kind == YAML_SEQUENCE ? input_range_items(parse, node, ret)
						: input_scalar(parse, node, ret);

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

static int input_key(const struct parse *parse, const struct yaml_node *value,
		     struct counter_pass *pass)
{
	const struct yaml_node *key = value->key;
	struct setting_slice name = {key->text, key->length};
	struct nearest nearest;
	char hint[128];

	if (setting_slice_is(name, "pmc"))
		return input_counters(parse, value, &pass->counters);
	if (setting_slice_is(name, "kernel_include_regex"))
		return input_scalar(parse, value, &pass->include);
	if (setting_slice_is(name, "kernel_exclude_regex"))
		return input_scalar(parse, value, &pass->exclude);
	if (setting_slice_is(name, "kernel_iteration_range"))
		return input_range(parse, value, &pass->range);
	if (setting_slice_is(name, "pmc_groups"))
		return 0;
	if (setting_choice_index(name, other_keys) >= 0) {
		message_warning("%s:%u:%u: '%s' is not looked at", parse->path, key->line,
				key->column, key->text);
		return 0;
	}
	nearest_init(&nearest, key->text, key->length);
	nearest_offer_list(&nearest, known_keys);
	return input_wrong(parse, key->line, key->column, "unknown key '%.60s'%s (a job has %s)",
			   key->text, nearest_hint(&nearest, "", hint, sizeof(hint)), known_keys);
}

static bool input_copy(const struct counter_pass *from, struct counter_pass *to)
{
	to->include = from->include ? strdup(from->include) : NULL;
	to->exclude = from->exclude ? strdup(from->exclude) : NULL;
	to->range = from->range ? strdup(from->range) : NULL;
	return (to->include || !from->include) && (to->exclude || !from->exclude) &&
	       (to->range || !from->range);
}

/* Groups of counters that rocprofv3 takes by turns: a run each, so that each kernel is counted
 * with all of them. */
static int input_groups(const struct parse *parse, const struct yaml_node *groups, size_t job)
{
	int error = 0;

	if (groups->kind != YAML_SEQUENCE)
		return input_wrong(parse, groups->line, groups->column,
				   "a list of lists of counters is expected here");
	for (const struct yaml_node *group = groups->first; !error && group; group = group->next) {
		struct counter_pass *pass;

		error = input_add(parse, group->line, group->column, &pass);
		if (error)
			return error;
		if (!input_copy(&parse->input->passes[job], pass))
			return input_no_memory(parse);
		error = input_counters(parse, group, &pass->counters);
		if (!error && !pass->counters)
			error = input_wrong(parse, group->line, group->column,
					    "a group without a counter");
	}
	return error;
}

static void input_remove(struct counter_input *input, size_t place)
{
	struct counter_pass *pass = &input->passes[place];

	free(pass->counters);
	free(pass->include);
	free(pass->exclude);
	free(pass->range);
	memmove(pass, pass + 1, (--input->count - place) * sizeof(*pass));
}

static int input_job(const struct parse *parse, const struct yaml_node *job)
{
	const struct yaml_node *groups = yaml_find(job, "pmc_groups");
	size_t place = parse->input->count;
	struct counter_pass *pass;
	int error;

	if (job->kind != YAML_MAPPING)
		return input_wrong(parse, job->line, job->column,
				   "a job with 'pmc: [COUNTER, …]' is expected here");
	error = input_add(parse, job->line, job->column, &pass);
	if (error)
		return error;
	for (const struct yaml_node *value = job->first; !error && value; value = value->next)
		error = input_key(parse, value, &parse->input->passes[place]);
	if (!error && groups)
		error = input_groups(parse, groups, place);
	if (error)
		return error;
	if (!parse->input->passes[place].counters && !groups)
		return input_wrong(parse, job->line, job->column, "a job without 'pmc'");
	if (!parse->input->passes[place].counters)
		input_remove(parse->input, place);
	return 0;
}

static int input_yaml(const struct parse *parse, const char *text, size_t size)
{
	struct memory memory = {.failed = false};
	struct yaml_problem why;
	const struct yaml_node *root = yaml_parse(&memory, text, size, &why), *jobs;
	int error = 0;

	if (!root) {
		error = memory.failed ? input_no_memory(parse)
				      : input_wrong(parse, why.line, why.column, "%s", why.text);
		memory_release(&memory);
		return error;
	}
	jobs = yaml_find(root, "jobs");
	if (!jobs)
		error = input_wrong(parse, root->line, root->column, "there is no list 'jobs'");
	else if (jobs->kind != YAML_SEQUENCE)
		error = input_wrong(parse, jobs->line, jobs->column, "'jobs' is no list");
	for (const struct yaml_node *job = error ? NULL : jobs->first; !error && job;
	     job = job->next)
		error = input_job(parse, job);
	memory_release(&memory);
	return error;
}

/* Tabs between words become blanks; in strings there are none. */
static void input_untab(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '\t')
			text[i] = ' ';
	}
}

static int input_json(const struct parse *parse, const char *text, size_t size)
{
	bool marked = size >= 3 && !memcmp(text, BYTE_ORDER_MARK, 3);
	char *copy = malloc(size + 1);
	json_error_t bad;
	json_t *root;
	int error;

	if (!copy)
		return input_no_memory(parse);
	size -= marked ? 3 : 0;
	memcpy(copy, text + (marked ? 3 : 0), size);
	root = json_loadb(copy, size, JSON_REJECT_DUPLICATES, &bad);
	if (root) {
		input_untab(copy, size);
		error = input_yaml(parse, copy, size);
	} else {
		error = input_wrong(parse, bad.line > 0 ? (unsigned)bad.line : 1,
				    bad.column > 0 ? (unsigned)bad.column : 1, "%s", bad.text);
	}
	json_decref(root);
	free(copy);
	return error;
}

/* ---- files ---- */

static bool input_ends(const char *path, const char *ending)
{
	size_t length = strlen(path), tail = strlen(ending);

	return length >= tail && !strcmp(path + length - tail, ending);
}

int counter_input_parse(const char *path, const char *text, size_t size, struct counter_input *ret,
			struct problem *problem)
{
	struct parse parse = {path, ret, problem};
	int error;

	*ret = (struct counter_input){.count = 0};
	if (input_ends(path, ".json"))
		error = input_json(&parse, text, size);
	else if (input_ends(path, ".yaml") || input_ends(path, ".yml"))
		error = input_yaml(&parse, text, size);
	else
		error = input_text(&parse, text, size);
	if (!error && !ret->count)
		error = problem_set(problem, -EINVAL, "'%s' names no counters", path);
	if (error)
		counter_input_deinit(ret);
	return error;
}

int counter_input_read(const char *path, struct counter_input *ret, struct problem *problem)
{
	FILE *stream = fopen(path, "re");
	char *text = malloc(FILE_MAX_SIZE + 1);
	size_t size = stream && text ? fread(text, 1, FILE_MAX_SIZE + 1, stream) : 0;
	int error = 0;

	if (!stream || !text || ferror(stream))
		error = problem_set(problem, stream ? -EIO : -errno, "cannot read '%s': %s", path,
				    strerror(errno));
	else if (size > FILE_MAX_SIZE)
		error = problem_set(problem, -EFBIG, "'%s' is larger than %u bytes", path,
				    FILE_MAX_SIZE);
	else
		error = counter_input_parse(path, text, size, ret, problem);
	if (stream)
		fclose(stream);
	free(text);
	return error;
}

void counter_input_deinit(struct counter_input *input)
{
	while (input->count)
		input_remove(input, input->count - 1);
	free(input->passes);
	input->passes = NULL;
}
