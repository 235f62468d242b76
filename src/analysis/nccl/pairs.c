/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sends with their receives; see pairs.h.
 */
#include "analysis/nccl/pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/blame.h"
#include "analysis/nccl/links.h"
#include "analysis/nccl/private.h"

/* One side of a transfer. */
struct transfer_half {
	uint32_t communicator, member;
	int32_t from, to;
	uint64_t sequence, bytes;
	uint64_t begin_ns, begin_error_ns;
	uint64_t duration_ns; /* of its own, or of its batch; 0 unknown */
	bool sends, is_batched, is_waiting;
	uint32_t next; /* of the same slot, or of the free ones, + 1 */
};

struct pairing_context {
	struct nccl_data *data;
	struct nccl_joined_collectives *joined;
	struct nccl_paired_transfers *pairs;
	struct transfer_half *halves;
	size_t half_count, half_capacity, open_count;
	uint32_t *slots;
	size_t slot_count;
	uint32_t first_free;
};

/* ---- halves without the other one ---- */

static size_t hash_half_to_slot(const struct pairing_context *context,
				const struct transfer_half *half)
{
	uint64_t ranks = (uint64_t)(uint32_t)half->from << 32 | (uint32_t)half->to;

	return (size_t)id_map_hash_key(id_map_hash_key(ranks + half->communicator) ^
				       id_map_hash_key(~half->sequence)) &
	       (context->slot_count - 1);
}

static int grow_slots(struct pairing_context *context)
{
	size_t count = context->slot_count ? context->slot_count * 2 : 1024;
	uint32_t *old = context->slots, *slots = calloc(count, sizeof(*slots));
	size_t old_count = context->slot_count;

	if (!slots)
		return -ENOMEM;
	context->slots = slots;
	context->slot_count = count;
	for (size_t i = 0; i < old_count; i++) {
		for (uint32_t at = old[i], next; at; at = next) {
			struct transfer_half *half = &context->halves[at - 1];
			size_t slot = hash_half_to_slot(context, half);

			next = half->next;
			half->next = slots[slot];
			slots[slot] = at;
		}
	}
	free(old);
	return 0;
}

static int keep_half(struct pairing_context *context, const struct transfer_half *half)
{
	uint32_t at = context->first_free;
	size_t slot;

	if (context->open_count >= context->slot_count && grow_slots(context) < 0)
		return -ENOMEM;
	if (at) {
		context->first_free = context->halves[at - 1].next;
	} else {
		if (context->half_count >= UINT32_MAX - 1 ||
		    array_reserve_one_more((void **)&context->halves, &context->half_capacity,
					   context->half_count, sizeof(*context->halves)) < 0)
			return -ENOMEM;
		at = (uint32_t)++context->half_count;
	}
	slot = hash_half_to_slot(context, half);
	context->halves[at - 1] = *half;
	context->halves[at - 1].next = context->slots[slot];
	context->slots[slot] = at;
	context->open_count++;
	return 0;
}

/* Takes the other side out of those that are kept. */
static bool take_other_half(struct pairing_context *context, const struct transfer_half *half,
			    struct transfer_half *ret)
{
	uint32_t *link =
		context->slot_count ? &context->slots[hash_half_to_slot(context, half)] : NULL;

	for (; link && *link; link = &context->halves[*link - 1].next) {
		struct transfer_half *other = &context->halves[*link - 1];
		uint32_t at = *link;

		if (other->sends == half->sends || other->communicator != half->communicator ||
		    other->from != half->from || other->to != half->to ||
		    other->sequence != half->sequence)
			continue;
		*ret = *other;
		*link = other->next;
		other->next = context->first_free;
		context->first_free = at;
		context->open_count--;
		return true;
	}
	return false;
}

/* ---- pairs ---- */

static void keep_faulty_pair(struct nccl_paired_transfers *pairs,
			     const struct nccl_faulty_pair *pair)
{
	if (pairs->faulty_pair_count < NCCL_FAULTY_PAIRS_KEPT_MAX)
		pairs->faulty[pairs->faulty_pair_count] = *pair;
	pairs->faulty_pair_count++;
}

static void keep_waiting_pair(struct nccl_paired_transfers *pairs,
			      const struct nccl_waiting_pair *pair)
{
	uint32_t at = pairs->waiting_count;

	if (at == NCCL_WAITING_PAIRS_KEPT_MAX && pairs->waiting[at - 1].wait_ns >= pair->wait_ns)
		return;
	if (at == NCCL_WAITING_PAIRS_KEPT_MAX)
		at--;
	else
		pairs->waiting_count++;
	for (; at > 0 && pairs->waiting[at - 1].wait_ns < pair->wait_ns; at--)
		pairs->waiting[at] = pairs->waiting[at - 1];
	pairs->waiting[at] = *pair;
}

/* Who came last, and how long the other one waited. A send that fits into buffers is over before
 * its receive begins: then nobody waited, however late the other one came. */
static const struct transfer_half *find_late_half(const struct transfer_half *one,
						  const struct transfer_half *other,
						  uint64_t *ret_wait_ns)
{
	bool clocks = one->begin_error_ns != UINT64_MAX && other->begin_error_ns != UINT64_MAX;
	const struct transfer_half *late = one->begin_ns > other->begin_ns ? one : other,
				   *early = late == one ? other : one;
	uint64_t apart = late->begin_ns - early->begin_ns;
	bool batched = one->is_batched || other->is_batched;

	*ret_wait_ns = 0;
	if (!one->duration_ns || !other->duration_ns)
		return NULL;
	if (!clocks || apart <= one->begin_error_ns + other->begin_error_ns ||
	    apart <= NCCL_LATENESS_LEAST_NS) {
		if (batched)
			return NULL; /* its duration is that of other transfers, too */
		late = one->duration_ns < other->duration_ns ? one : other;
		early = late == one ? other : one;
		if (early->duration_ns - late->duration_ns <= NCCL_LATENESS_LEAST_NS)
			return NULL;
		*ret_wait_ns = early->duration_ns - late->duration_ns;
		return late;
	}
	if (!batched)
		*ret_wait_ns = early->duration_ns > late->duration_ns
				       ? early->duration_ns - late->duration_ns
				       : 0;
	else
		*ret_wait_ns = apart < early->duration_ns ? apart : early->duration_ns;
	return late;
}

/* `other`: NULL where it is not known, or whether they left together. */
static int add_wait_entry(struct pairing_context *context, const struct transfer_half *half,
			  const struct transfer_half *other, uint64_t wait_ns, uint64_t caused_ns)
{
	const struct nccl_data *data = context->data;
	uint32_t process = data->members[half->member].process;
	uint32_t peer = other ? data->members[other->member].process : process;
	struct nccl_wait_entry entry = {
		.begin_ns = half->begin_ns,
		.wait_ns = wait_ns,
		.caused_ns = caused_ns,
		.leaving_lag_ns = nccl_get_leaving_lag(2, data->processes[process].host !=
								  data->processes[peer].host),
		.member = half->member,
		.other_member = other ? other->member : NCCL_INDEX_NONE,
		.is_transfer = true,
		.levels = other != NULL};

	return nccl_wait_entries_add(&context->pairs->entries_by_process[process], &entry);
}

static int add_pair_to_rank_sums(struct pairing_context *context, const struct transfer_half *one,
				 const struct transfer_half *other)
{
	struct nccl_rank_wait_sums *ranks = context->joined->ranks;
	uint64_t wait_ns;
	const struct transfer_half *late = find_late_half(one, other, &wait_ns);
	const struct transfer_half *early = late == one ? other : one;

	if (!one->duration_ns || !other->duration_ns)
		return add_wait_entry(context, one, NULL, UINT64_MAX, 0) < 0 ||
				       add_wait_entry(context, other, NULL, UINT64_MAX, 0) < 0
			       ? -ENOMEM
			       : 0;
	ranks[one->member].joined_transfers++;
	ranks[other->member].joined_transfers++;
	ranks[one->member].duration_ns += one->is_batched ? 0 : one->duration_ns;
	ranks[other->member].duration_ns += other->is_batched ? 0 : other->duration_ns;
	if (!late || !wait_ns)
		return 0;
	/* Of a batch's waits each is seen by both directions: one counts. */
	if (!early->is_batched || !early->sends)
		ranks[early->member].waited_ns += wait_ns;
	keep_waiting_pair(context->pairs, &(struct nccl_waiting_pair){
						  .communicator = one->communicator,
						  .from = one->from,
						  .to = one->to,
						  .late_member = late->member,
						  .sequence = one->sequence,
						  .transfer_ns = late->duration_ns,
						  .wait_ns = wait_ns,
					  });
	return add_wait_entry(context, early, late, wait_ns, 0) < 0 ||
			       add_wait_entry(context, late, early, 0, wait_ns) < 0
		       ? -ENOMEM
		       : 0;
}

static int add_pair_to_link(struct pairing_context *context, const struct transfer_half *send,
			    const struct transfer_half *receive)
{
	uint64_t transfer_ns =
		send->duration_ns < receive->duration_ns ? send->duration_ns : receive->duration_ns;
	struct nccl_rank_to_peer_link *link;
	uint32_t index;

	if (!transfer_ns || send->is_batched || receive->is_batched)
		return 0;
	if (nccl_find_or_add_link(context->joined, send->member, send->to, true, false, &index) < 0)
		return -ENOMEM;
	link = &context->joined->links[index];
	link->transfer_count++;
	link->paired_transfer_count++;
	link->bytes += send->bytes;
	link->ns += transfer_ns;
	link->sender_wait_ns += send->duration_ns - transfer_ns;
	link->receiver_wait_ns += receive->duration_ns - transfer_ns;
	if (transfer_ns > link->slowest_transfer_ns)
		link->slowest_transfer_ns = transfer_ns;
	context->pairs->timed_pair_count++;
	context->pairs->transfer_ns += 2 * transfer_ns;
	context->pairs->waiting_ns += send->duration_ns + receive->duration_ns - 2 * transfer_ns;
	return 0;
}

static int add_pair(struct pairing_context *context, const struct transfer_half *one,
		    const struct transfer_half *other)
{
	const struct transfer_half *send = one->sends ? one : other,
				   *receive = one->sends ? other : one;

	context->pairs->pair_count++;
	if (send->bytes != receive->bytes)
		keep_faulty_pair(context->pairs,
				 &(struct nccl_faulty_pair){
					 send->communicator, send->from, send->to, send->sequence,
					 send->bytes, receive->bytes, NCCL_PAIR_BYTES_DIFFER});
	if (add_pair_to_rank_sums(context, one, other) < 0)
		return -ENOMEM;
	return add_pair_to_link(context, send, receive);
}

/* ---- all operations ---- */

static struct transfer_half make_half(const struct nccl_data *data,
				      const struct nccl_operation_view *view)
{
	const struct nccl_communicator_rank *member = &data->members[view->member];
	bool sends = data->functions[view->function].function == NCCL_FUNCTION_SEND;
	bool batched = view->timing_source == NCCL_TIMING_SHARED_BY_SEVERAL;

	return (struct transfer_half){
		.communicator = member->communicator,
		.member = view->member,
		.from = sends ? member->rank : view->record->peer,
		.to = sends ? view->record->peer : member->rank,
		.sequence = view->record->sequence,
		.bytes = view->record->bytes,
		.begin_ns = view->begin_ns,
		.begin_error_ns =
			view->is_begin_known ? nccl_get_begin_error(data, view) : UINT64_MAX,
		.duration_ns =
			batched || nccl_timing_source_is_of_one_operation(view->timing_source)
				? view->duration_ns
				: 0,
		.sends = sends,
		.is_batched = batched,
		.is_waiting = view->is_waiting};
}

/* Nobody knows what of it is waiting: `paired_transfer_count` tells. */
static int add_half_to_link(struct pairing_context *context, const struct transfer_half *half)
{
	struct nccl_rank_to_peer_link *link;
	uint32_t index;

	if (!half->duration_ns || half->is_batched)
		return 0;
	if (nccl_find_or_add_link(context->joined, half->member,
				  half->sends ? half->to : half->from, half->sends, false,
				  &index) < 0)
		return -ENOMEM;
	link = &context->joined->links[index];
	link->transfer_count++;
	link->bytes += half->bytes;
	link->ns += half->duration_ns;
	if (half->duration_ns > link->slowest_transfer_ns)
		link->slowest_transfer_ns = half->duration_ns;
	return 0;
}

static int pair_operation(const struct nccl_operation_view *view, void *pointer)
{
	struct pairing_context *context = pointer;
	struct transfer_half half, other;

	if (view->record->kind != NCCL_KIND_P2P || view->record->peer < 0)
		return 0;
	half = make_half(context->data, view);
	if (view->flags & NCCL_OPERATION_NO_SEQUENCE ||
	    context->data->members[view->member].rank < 0)
		return add_half_to_link(context, &half);
	if (take_other_half(context, &half, &other))
		return add_pair(context, &half, &other);
	return keep_half(context, &half);
}

/* Whose records have all that it did. */
static bool peer_has_complete_records(const struct nccl_data *data,
				      const struct transfer_half *half)
{
	const struct nccl_communicator *communicator = &data->communicators[half->communicator];
	int32_t peer = half->sends ? half->to : half->from;

	for (uint32_t i = 0; i < communicator->member_count; i++) {
		const struct nccl_communicator_rank *member =
			&data->members[communicator->members[i]];
		const struct nccl_process *process = &data->processes[member->process];

		if (member->rank == peer)
			return !process->lost_operation_count &&
			       !process->overwritten_operation_count &&
			       process->ended == NCCL_PROCESS_EXITED;
	}
	return false;
}

/* One in flight waits for its other side, which the part about what hangs says. */
static int add_remaining_halves(struct pairing_context *context)
{
	for (size_t slot = 0; slot < context->slot_count; slot++) {
		for (uint32_t at = context->slots[slot]; at; at = context->halves[at - 1].next) {
			const struct transfer_half *half = &context->halves[at - 1];

			/* What of it is waiting is not known, so all of it may be. */
			if (add_half_to_link(context, half) < 0 ||
			    add_wait_entry(context, half, NULL,
					   half->duration_ns ? half->duration_ns : UINT64_MAX,
					   0) < 0)
				return -ENOMEM;
			if (half->is_waiting || !peer_has_complete_records(context->data, half))
				continue;
			keep_faulty_pair(context->pairs,
					 &(struct nccl_faulty_pair){
						 half->communicator, half->from, half->to,
						 half->sequence, half->sends ? half->bytes : 0,
						 half->sends ? 0 : half->bytes,
						 half->sends ? NCCL_PAIR_SEND_ALONE
							     : NCCL_PAIR_RECEIVE_ALONE});
		}
	}
	return 0;
}

/* Most jobs have neither, and need no pass over their records for it. */
static bool has_sends_or_receives(const struct nccl_data *data)
{
	for (uint32_t i = 0; i < data->function_count; i++) {
		if (data->functions[i].function == NCCL_FUNCTION_SEND ||
		    data->functions[i].function == NCCL_FUNCTION_RECV)
			return true;
	}
	return false;
}

int nccl_pair_transfers(struct nccl_data *data, struct nccl_joined_collectives *joined,
			struct problem *problem)
{
	struct pairing_context context = {.data = data, .joined = joined};
	int result = 0;

	context.pairs = joined->pairs = calloc(1, sizeof(*joined->pairs));
	if (!context.pairs)
		return -ENOMEM;
	context.pairs->entries_by_process =
		calloc((size_t)data->process_count + 1, sizeof(struct nccl_wait_entries));
	if (!context.pairs->entries_by_process)
		return -ENOMEM;
	for (uint32_t i = 0; result == 0 && has_sends_or_receives(data) && i < data->process_count;
	     i++)
		result = nccl_visit_operations_of_process(data, i, pair_operation, &context,
							  problem);
	if (result == 0)
		result = add_remaining_halves(&context);
	free(context.halves);
	free(context.slots);
	return result;
}

void nccl_paired_transfers_free(struct nccl_paired_transfers *pairs, uint32_t process_count)
{
	if (!pairs)
		return;
	for (uint32_t i = 0; pairs->entries_by_process && i < process_count; i++)
		free(pairs->entries_by_process[i].entries);
	free(pairs->entries_by_process);
	free(pairs);
}
