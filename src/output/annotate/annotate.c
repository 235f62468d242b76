/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See annotate.h.
 */
#include "output/annotate/annotate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int annotation_try_places(struct annotation *annotation, const char *path,
			  bool (*open)(const char *path, void *context), void *context,
			  const char **ret, const char **ret_tried)
{
	const char *directory =
		annotation->options->debug_path != NULL ? annotation->options->debug_path : "";
	const char *base = annotation->session->launch.working_directory;
	bool is_relative = path[0] != '/' && base != NULL && base[0] != 0;

	*ret = arena_format_text(&annotation->arena, "%s%s%s", is_relative ? base : "",
				 is_relative ? "/" : "", path);
	*ret_tried = *ret;
	for (;;) {
		if (*ret == NULL || *ret_tried == NULL)
			return -ENOMEM;
		if (open(*ret, context))
			return 0;
		directory += strspn(directory, ":");
		size_t size = strcspn(directory, ":");
		*ret = NULL;
		if (size == 0)
			return 0;
		*ret = arena_format_text(&annotation->arena, "%.*s/%s", (int)size, directory,
					 path + (path[0] == '/'));
		*ret_tried = arena_format_text(&annotation->arena, "%s, %s", *ret_tried,
					       *ret != NULL ? *ret : "");
		directory += size;
	}
}

static void sum_session(struct annotation *annotation)
{
	const struct session *session = annotation->session;

	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];
		uint64_t weight = view_get_node_self_weight(node, annotation->options->measure);
		annotation->whole += weight;
		if (session->frames[node->frame].kind == FRAME_THREAD_STATE &&
		    node->parent != MODEL_ENTRY_INDEX_NONE &&
		    session->frames[session->nodes[node->parent].frame].function_id ==
			    annotation->function.function_id)
			annotation->waiting_for_cpu += weight;
	}
}

int annotation_init(struct annotation *annotation, const struct session *session,
		    const struct annotated_function *function,
		    const struct annotation_options *options)
{
	int error = 0;

	*annotation =
		(struct annotation){.session = session, .options = options, .function = *function};
	sum_session(annotation);
	if (options->wants_source)
		error = annotation_add_sources(annotation);
	if (error == 0 && options->wants_assembly)
		error = annotation_add_code(annotation);
	return error;
}

void annotation_deinit(struct annotation *annotation)
{
	for (size_t i = 0; i < annotation->source_count; i++)
		free(annotation->sources[i].lines);
	for (size_t i = 0; i < annotation->code_count; i++)
		free(annotation->codes[i].instructions);
	free(annotation->sources);
	free(annotation->codes);
	arena_deinit(&annotation->arena);
}
