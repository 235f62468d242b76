/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who made others wait; see blame.h.
 */
#include "analysis/nccl/blame.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/private.h"

#define HOP_IN_HOST_NS              NCCL_LATENESS_LEAST_NS
#define HOP_BETWEEN_HOSTS_NS        5000
#define LEVELLING_COMMUNICATORS_MAX 64   /* that are remembered: the last ones */
#define WAITS_LOOKED_BACK_MAX       1024 /* for what was waited in; the sums need no look back */
#define CHAIN_LENGTH_MAX            64
#define SHARE_OF_TIME_LEAST         0.01 /* that others wait for one rank, to call it late */
#define ALIKE_DIVISOR               2    /* who is waited for half as long is as late */
#define DEVIATIONS_LEAST            4.0  /* by how many it differs from the others */

uint32_t nccl_get_leaving_lag(uint32_t rank_count, bool is_between_hosts)
{
	uint32_t hops = 1;

	while (hops < 31 && UINT32_C(1) << hops < rank_count)
		hops++;
	return hops * (is_between_hosts ? HOP_BETWEEN_HOSTS_NS : HOP_IN_HOST_NS);
}

int nccl_wait_entries_add(struct nccl_wait_entries *entries, const struct nccl_wait_entry *entry)
{
	if (array_reserve_one_more((void **)&entries->entries, &entries->capacity, entries->count,
				   sizeof(*entries->entries)) < 0)
		return -ENOMEM;
	entries->entries[entries->count++] = *entry;
	return 0;
}

static int compare_entries_by_rank_and_begin(const void *left, const void *right, void *context)
{
	const struct nccl_data *data = context;
	const struct nccl_wait_entry *a = left, *b = right;
	uint32_t first = data->members[a->member].job_rank_index,
		 second = data->members[b->member].job_rank_index;

	if (first != second)
		return first < second ? -1 : 1;
	if (a->begin_ns != b->begin_ns)
		return a->begin_ns < b->begin_ns ? -1 : 1;
	return a->member < b->member ? -1 : a->member > b->member;
}

/* ---- with whom a rank was level, and how long it had waited by then ---- */

/* The entries of one rank of the job, in order. Times of waiting that overlap count once. */
struct rank_history {
	const struct nccl_data *data;
	struct nccl_joined_collectives *joined;
	struct nccl_wait_entry *entries;
	size_t count;
	uint64_t closed_ns, open_begin_ns, open_end_ns; /* waited so far; the last span of it */
	size_t levelled[LEVELLING_COMMUNICATORS_MAX];   /* collectives, newest first */
	uint32_t levelled_count;
	uint64_t caused_until_ns;       /* begin of the last transfer that somebody waited for */
	struct id_map transfer_by_peer; /* rank of the job -> the last entry with it */
};

static uint64_t get_waited_until(const struct rank_history *history, uint64_t time_ns)
{
	uint64_t end = time_ns < history->open_end_ns ? time_ns : history->open_end_ns;

	return history->closed_ns +
	       (end > history->open_begin_ns ? end - history->open_begin_ns : 0);
}

static void add_waiting(struct rank_history *history, const struct nccl_wait_entry *entry)
{
	uint64_t end = entry->begin_ns + entry->wait_ns;

	if (entry->begin_ns > history->open_end_ns) {
		history->closed_ns += history->open_end_ns - history->open_begin_ns;
		history->open_begin_ns = entry->begin_ns;
		history->open_end_ns = end;
	} else if (end > history->open_end_ns) {
		history->open_end_ns = end;
	}
}

/* It waited no longer than until its next operation began. */
static void bound_unknown_waits(struct rank_history *history)
{
	for (size_t i = 0; i < history->count; i++) {
		struct nccl_wait_entry *entry = &history->entries[i];
		uint64_t next = i + 1 < history->count ? entry[1].begin_ns : entry->begin_ns;

		if (entry->wait_ns > UINT64_MAX - entry->begin_ns)
			entry->wait_ns = next - entry->begin_ns;
	}
}

static bool communicator_has_rank(const struct rank_history *history, uint32_t communicator,
				  uint32_t job_rank)
{
	return id_map_get(&history->joined->member_by_rank_and_communicator,
			  (uint64_t)job_rank << 32 | communicator) != ID_MAP_NONE;
}

static bool communicator_has_ranks_of(const struct rank_history *history, uint32_t communicator,
				      uint32_t part)
{
	const struct nccl_communicator *of = &history->data->communicators[part];

	if (communicator == part)
		return true;
	if (history->data->communicators[communicator].member_count < of->member_count)
		return false;
	for (uint32_t i = 0; i < of->member_count; i++) {
		if (!communicator_has_rank(history, communicator,
					   history->data->members[of->members[i]].job_rank_index))
			return false;
	}
	return true;
}

static bool levels_ranks_of(const struct rank_history *history, size_t earlier,
			    const struct nccl_wait_entry *entry)
{
	const struct nccl_communicator_rank *members = history->data->members;
	uint32_t communicator = members[history->entries[earlier].member].communicator;

	if (!entry->is_transfer)
		return communicator_has_ranks_of(history, communicator,
						 members[entry->member].communicator);
	return entry->other_member != NCCL_INDEX_NONE &&
	       communicator_has_rank(history, communicator,
				     members[entry->other_member].job_rank_index);
}

/* When it was last level with those that `entry` is with; -1: never. */
static ptrdiff_t find_level_entry(const struct rank_history *history,
				  const struct nccl_wait_entry *entry)
{
	ptrdiff_t found = -1;

	for (uint32_t i = 0; found < 0 && i < history->levelled_count; i++) {
		if (levels_ranks_of(history, history->levelled[i], entry))
			found = (ptrdiff_t)history->levelled[i];
	}
	if (entry->is_transfer && entry->other_member != NCCL_INDEX_NONE) {
		uint32_t transfer =
			id_map_get(&history->transfer_by_peer,
				   history->data->members[entry->other_member].job_rank_index);

		if (transfer != ID_MAP_NONE && (ptrdiff_t)transfer > found)
			found = (ptrdiff_t)transfer;
	}
	return found;
}

static void remember_level_collective(struct rank_history *history, size_t index)
{
	const struct nccl_wait_entry *entries = history->entries;
	uint32_t at = 0;

	while (at < history->levelled_count &&
	       entries[history->levelled[at]].member != entries[index].member)
		at++;
	if (at == LEVELLING_COMMUNICATORS_MAX)
		at--;
	else if (at == history->levelled_count)
		history->levelled_count++;
	memmove(&history->levelled[1], &history->levelled[0], at * sizeof(history->levelled[0]));
	history->levelled[0] = index;
}

/* It leaves the operation as late as the others, so what it waited up to then is no reason to come
 * late afterwards. */
static int remember_level(struct rank_history *history, size_t index)
{
	struct nccl_wait_entry *entry = &history->entries[index];

	if (!entry->levels)
		return 0;
	entry->waited_before_ns = get_waited_until(history, entry->begin_ns + entry->wait_ns);
	if (!entry->is_transfer) {
		remember_level_collective(history, index);
		return 0;
	}
	return id_map_set(&history->transfer_by_peer,
			  history->data->members[entry->other_member].job_rank_index,
			  (uint32_t)index);
}

/* ---- what is its own, and what it passes on ---- */

static struct nccl_passed_wait *find_or_add_passed_wait(struct nccl_joined_collectives *joined,
							const struct nccl_passed_wait *wait)
{
	uint64_t key = id_map_hash_key(((uint64_t)wait->member << 32 | wait->waiting_member) + 1) ^
		       wait->awaited_member;
	uint32_t index = id_map_get(&joined->passed_wait_index_by_key, key);

	if (index != ID_MAP_NONE)
		return &joined->passed_waits[index];
	if (array_reserve_one_more((void **)&joined->passed_waits, &joined->passed_wait_capacity,
				   joined->passed_wait_count, sizeof(*joined->passed_waits)) < 0 ||
	    id_map_set(&joined->passed_wait_index_by_key, key,
		       (uint32_t)joined->passed_wait_count) < 0)
		return NULL;
	joined->passed_waits[joined->passed_wait_count] = *wait;
	return &joined->passed_waits[joined->passed_wait_count++];
}

/* The longest of its waits since then is what it passes on. */
static int add_passed_wait(struct rank_history *history, size_t index, ptrdiff_t level, uint64_t ns)
{
	const struct nccl_wait_entry *entries = history->entries, *longest = NULL;
	struct nccl_passed_wait *wait;

	for (size_t i = index;
	     i-- > 0 && (ptrdiff_t)i > level && index - i <= WAITS_LOOKED_BACK_MAX;) {
		if (entries[i].wait_ns && (!longest || entries[i].wait_ns > longest->wait_ns))
			longest = &entries[i];
	}
	if (!longest)
		return 0;
	wait = find_or_add_passed_wait(
		history->joined,
		&(struct nccl_passed_wait){.member = entries[index].member,
					   .waiting_member = longest->member,
					   .awaited_member = longest->other_member});
	if (!wait)
		return -ENOMEM;
	wait->count++;
	wait->ns += ns;
	history->joined->ranks[entries[index].member].passed_on_wait_ns += ns;
	return 0;
}

/* Transfers run side by side, and their partners wait at the same time: that time counts once. */
static uint64_t get_caused_wait(struct rank_history *history, const struct nccl_wait_entry *entry)
{
	uint64_t alone;

	if (!entry->is_transfer)
		return entry->caused_ns;
	alone = entry->begin_ns - history->caused_until_ns;
	history->caused_until_ns = entry->begin_ns;
	return entry->caused_ns < alone ? entry->caused_ns : alone;
}

/* Who leaves an operation behind the others begins the next one as much later. */
static uint64_t get_usual_lateness(const struct rank_history *history, size_t index,
				   ptrdiff_t level)
{
	const struct nccl_wait_entry *entries = history->entries;
	uint32_t lag = entries[index].leaving_lag_ns;

	if (index && entries[index - 1].leaving_lag_ns > lag)
		lag = entries[index - 1].leaving_lag_ns;
	if (level >= 0 && entries[level].leaving_lag_ns > lag)
		lag = entries[level].leaving_lag_ns;
	return lag;
}

static int blame_rank_for_entry(struct rank_history *history, size_t index)
{
	const struct nccl_wait_entry *entry = &history->entries[index];
	struct nccl_rank_wait_sums *sum = &history->joined->ranks[entry->member];
	ptrdiff_t level = find_level_entry(history, entry);
	uint64_t now = get_waited_until(history, entry->begin_ns),
		 then = level < 0 ? 0 : history->entries[level].waited_before_ns;
	uint64_t inherited = now > then ? now - then : 0;
	uint64_t caused = get_caused_wait(history, entry);
	uint64_t passed = inherited < caused ? inherited : caused,
		 usual = get_usual_lateness(history, index, level);

	if (caused - passed > usual) {
		sum->caused_wait_ns += caused - passed;
		sum->caused_wait_square_sum +=
			(double)(caused - passed) * (double)(caused - passed);
		if (entry->is_transfer)
			sum->last_transfers++;
		else
			sum->last++;
	}
	return passed > usual ? add_passed_wait(history, index, level, passed) : 0;
}

static int blame_rank(const struct nccl_data *data, struct nccl_wait_entry *entries, size_t count,
		      struct nccl_joined_collectives *joined)
{
	struct rank_history history = {
		.data = data, .joined = joined, .entries = entries, .count = count};
	int result = 0;

	bound_unknown_waits(&history);
	for (size_t i = 0; result == 0 && i < count; i++) {
		if (entries[i].caused_ns)
			result = blame_rank_for_entry(&history, i);
		add_waiting(&history, &entries[i]);
		if (result == 0)
			result = remember_level(&history, i);
	}
	id_map_deinit(&history.transfer_by_peer);
	return result;
}

int nccl_blame_ranks_of_process(const struct nccl_data *data, struct nccl_wait_entries *entries,
				struct nccl_joined_collectives *joined)
{
	struct nccl_wait_entry *all = entries->entries;
	size_t from = 0;
	int result = 0;

	/* Whole communicators may be lost with the end of a file, and what was waited in them. */
	if (entries->count &&
	    data->processes[data->members[all[0].member].process].file.missing_bytes)
		return 0;
	if (entries->count > 1)
		qsort_r(all, entries->count, sizeof(*all), compare_entries_by_rank_and_begin,
			(void *)data);
	while (result == 0 && from < entries->count) {
		uint32_t rank = data->members[all[from].member].job_rank_index;
		size_t to = from;

		while (to < entries->count && data->members[all[to].member].job_rank_index == rank)
			to++;
		result = blame_rank(data, &all[from], to - from, joined);
		from = to;
	}
	return result;
}

/* ---- who began it ---- */

int nccl_index_longest_passed_waits(const struct nccl_data *data,
				    struct nccl_joined_collectives *joined)
{
	uint32_t *longest =
		malloc(((size_t)data->job_rank_count + 1) * sizeof(*joined->longest_passed_waits));

	if (!longest)
		return -ENOMEM;
	memset(longest, 0xff, ((size_t)data->job_rank_count + 1) * sizeof(*longest));
	for (uint32_t i = 0; i < joined->passed_wait_count; i++) {
		uint32_t *of =
			&longest[data->members[joined->passed_waits[i].member].job_rank_index];

		if (*of == NCCL_INDEX_NONE ||
		    joined->passed_waits[i].ns > joined->passed_waits[*of].ns)
			*of = i;
	}
	joined->longest_passed_waits = longest;
	return 0;
}

uint32_t nccl_find_root_of_passed_wait(const struct nccl_data *data,
				       const struct nccl_joined_collectives *joined,
				       const struct nccl_passed_wait *wait)
{
	for (unsigned i = 0; i < CHAIN_LENGTH_MAX; i++) {
		struct nccl_rank_wait_sums sum;
		uint32_t job_rank;

		if (wait->awaited_member == NCCL_INDEX_NONE)
			return NCCL_INDEX_NONE;
		job_rank = data->members[wait->awaited_member].job_rank_index;
		sum = nccl_sum_waits_of_job_rank(data, joined, job_rank);
		if (sum.caused_wait_ns >= sum.passed_on_wait_ns)
			return job_rank;
		if (joined->longest_passed_waits[job_rank] == NCCL_INDEX_NONE)
			return NCCL_INDEX_NONE;
		wait = &joined->passed_waits[joined->longest_passed_waits[job_rank]];
	}
	return NCCL_INDEX_NONE;
}

/* ---- who stands out ---- */

/* Somebody is always the last. In a job without a late rank it is everybody now and then, as often
 * as a throw of dice, and for a time of its own: the sum of so many varies by the root of the sum
 * of their squares, and that of the luckless one of many ranks by some more. `others`: of so many.
 */
static bool rank_stands_out(const struct nccl_rank_wait_sums *rank,
			    const struct nccl_rank_wait_sums *sum_of_others, uint32_t others,
			    uint64_t duration_ns)
{
	double count = others ? others : 1;
	double entries = (double)(sum_of_others->last + sum_of_others->last_transfers);
	double caused = (double)sum_of_others->caused_wait_ns / count;
	double square = entries > 0 ? sum_of_others->caused_wait_square_sum / entries
				    : (double)NCCL_LATENESS_LEAST_NS * NCCL_LATENESS_LEAST_NS;
	double chance = (DEVIATIONS_LEAST + sqrt(2 * log(count + 1))) *
			sqrt((entries / count + 1) * square);

	return (double)rank->caused_wait_ns > caused + chance &&
	       (double)rank->caused_wait_ns >= SHARE_OF_TIME_LEAST * (double)duration_ns;
}

static int compare_late_ranks(const void *left, const void *right)
{
	const struct nccl_late_rank *a = left, *b = right;

	if (a->sum.caused_wait_ns != b->sum.caused_wait_ns)
		return a->sum.caused_wait_ns > b->sum.caused_wait_ns ? -1 : 1;
	return a->job_rank < b->job_rank ? -1 : a->job_rank > b->job_rank;
}

/* Where more ranks than that are late alike it is how the job works: the first stage of a pipeline,
 * say, for which the next one waits in each step. */
static uint32_t get_most_late_ranks(uint32_t rank_count)
{
	uint32_t most = rank_count < 4 ? 1 : rank_count < 12 ? 2 : rank_count / 4;

	return most < NCCL_LATE_RANKS_MAX ? most : NCCL_LATE_RANKS_MAX;
}

/* `ranks`: most waited for first. */
static uint32_t count_late_ranks(const struct nccl_late_rank *ranks, uint32_t rank_count)
{
	struct nccl_rank_wait_sums others = {0};
	uint64_t duration_ns = 0;
	uint32_t alike = 0;

	while (alike < rank_count && ranks[alike].sum.caused_wait_ns &&
	       ranks[alike].sum.caused_wait_ns >= ranks[0].sum.caused_wait_ns / ALIKE_DIVISOR)
		alike++;
	if (!alike || alike > get_most_late_ranks(rank_count))
		return 0;
	for (uint32_t i = 0; i < rank_count; i++) {
		duration_ns += ranks[i].sum.duration_ns / rank_count;
		if (i < alike)
			continue;
		others.last += ranks[i].sum.last;
		others.last_transfers += ranks[i].sum.last_transfers;
		others.caused_wait_ns += ranks[i].sum.caused_wait_ns;
		others.caused_wait_square_sum += ranks[i].sum.caused_wait_square_sum;
	}
	for (uint32_t i = 0; i < alike; i++) {
		if (!rank_stands_out(&ranks[i].sum, &others, rank_count - alike, duration_ns))
			return i;
	}
	return alike;
}

int nccl_find_late_ranks(const struct nccl_data *data, const struct nccl_joined_collectives *joined,
			 struct nccl_late_ranks *ret)
{
	struct nccl_late_rank *ranks = calloc((size_t)data->job_rank_count + 1, sizeof(*ranks));

	*ret = (struct nccl_late_ranks){0};
	if (!ranks)
		return -ENOMEM;
	for (uint32_t i = 0; i < data->job_rank_count; i++) {
		ranks[i].job_rank = i;
		ranks[i].sum = nccl_sum_waits_of_job_rank(data, joined, i);
	}
	if (data->job_rank_count > 1)
		qsort(ranks, data->job_rank_count, sizeof(*ranks), compare_late_ranks);
	ret->count = count_late_ranks(ranks, data->job_rank_count);
	ret->longest_caused_wait_ns = ranks[0].sum.caused_wait_ns;
	memcpy(ret->ranks, ranks, ret->count * sizeof(*ranks));
	free(ranks);
	return 0;
}
