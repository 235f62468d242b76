/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Lines about calls that the ranks of a communicator do not agree on.
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/nccl/calls.h"
#include "output/nccl/nccl.h"

struct call_text {
	char text[160];
};

/* "AllGather", or with what differs where the function does not. */
static struct call_text format_call(const struct nccl_data *data, uint32_t index, uint32_t other)
{
	const struct nccl_call_shape *shape = &data->call_shapes[index],
				     *against = &data->call_shapes[other];
	struct call_text call;

	if (shape->function != against->function)
		snprintf(call.text, sizeof(call.text), "%.40s",
			 data->functions[shape->function].name);
	else if (shape->bytes != against->bytes)
		snprintf(call.text, sizeof(call.text), "%.40s with %" PRIu64 " bytes",
			 data->functions[shape->function].name, shape->bytes);
	else if (strcmp(shape->data_type, against->data_type) != 0)
		snprintf(call.text, sizeof(call.text), "%.40s of %.40s",
			 data->functions[shape->function].name, shape->data_type);
	else
		snprintf(call.text, sizeof(call.text), "%.40s with root %d",
			 data->functions[shape->function].name, shape->root);
	return call;
}

static void write_differing_call(const struct nccl_data *data,
				 const struct nccl_differing_call *call, unsigned indent,
				 FILE *stream)
{
	struct nccl_label_text rank = nccl_format_rank_label(data, call->member),
			       of = nccl_format_communicator_label(data, call->communicator);
	struct call_text own = format_call(data, call->shape, call->other_shape),
			 other = format_call(data, call->other_shape, call->shape);
	char again[64] = "";

	if (call->count > 1)
		snprintf(again, sizeof(again), ", and %" PRIu64 " more of its calls differ",
			 call->count - 1);
	switch (call->difference) {
	case NCCL_CALL_IS_SKIPPED:
		nccl_print_wrapped_line(
			stream, indent,
			"#%" PRIu64 ": %s skips %s, which the others call, and goes "
			"on with what they call one later (call %" PRIu64 " of %s)",
			call->position, rank.text, other.text, call->position, of.text);
		break;
	case NCCL_CALL_IS_EXTRA:
		nccl_print_wrapped_line(
			stream, indent,
			"#%" PRIu64 ": %s calls %s once more than the others, which "
			"call %s there (call %" PRIu64 " of %s)",
			call->position, rank.text, own.text, other.text, call->position, of.text);
		break;
	case NCCL_CALL_IS_DISPUTED:
		nccl_print_wrapped_line(
			stream, indent,
			"#%" PRIu64 ": %s calls %s and %s calls %s, and no majority says which one "
			"is wrong (call %" PRIu64 " of %s)",
			call->position, rank.text, own.text,
			nccl_format_rank_label(data, call->other_member).text, other.text,
			call->position, of.text);
		break;
	default:
		nccl_print_wrapped_line(stream, indent,
					"#%" PRIu64 ": %s calls %s where the others call %s (call "
					"%" PRIu64 " of %s)%s",
					call->position, rank.text, own.text, other.text,
					call->position, of.text, again);
		break;
	}
}

size_t nccl_write_differing_calls(const struct nccl_data *data, unsigned indent, size_t most,
				  FILE *stream)
{
	size_t written = 0;

	for (; written < data->differing_call_count && written < most; written++)
		write_differing_call(data, &data->differing_calls[written], indent, stream);
	return written;
}
