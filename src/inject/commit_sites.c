/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sites of a commit: collected and sorted before the stop, read and written a run of pages at a
 * time in it.
 *
 * A page of a file that is written for the first time is copied by the kernel, which is most of
 * what writing costs; so one byte of each page is written before the stop, as it is.
 */
#include "inject/commit_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_START_MASK (~(uint64_t)(PLAN_PAGE - 1))

static const struct plan_site *get_plan_site_table(const struct plan_header *plan)
{
	return (const void *)((const char *)plan + plan->sites.offset);
}

static const struct plan_move *get_plan_move_table(const struct plan_header *plan)
{
	return (const void *)((const char *)plan + plan->moves.offset);
}

/* ---- collecting ---- */

static bool site_is_wanted(const struct patched_module *module, const struct plan_site *site)
{
	return site->function < module->plan->functions.count &&
	       module->modes[site->function] != PLAN_MODE_OFF;
}

/* Which of a plan's sites are wanted, with those that are written with them; the number of them. */
static uint32_t mark_wanted_sites(const struct patched_module *module, bool *marks)
{
	const struct plan_site *plan = get_plan_site_table(module->plan);
	uint32_t total = (uint32_t)module->plan->sites.count, count = 0;

	for (uint32_t i = 0; i < total; i++) {
		if (!site_is_wanted(module, &plan[i]))
			continue;
		marks[i] = true;
		if (plan[i].island && plan[i].island <= total)
			marks[plan[i].island - 1] = true;
	}
	for (uint32_t i = 0; i < total; i++)
		count += marks[i];
	return count;
}

/* `places` becomes where in our list a plan's site is. */
static void add_marked_sites(struct commit_sites *sites, uint32_t number, const bool *marks,
			     uint32_t *places)
{
	const struct patched_module *module = &sites->modules[number];
	const struct plan_site *plan = get_plan_site_table(module->plan);
	uint32_t total = (uint32_t)module->plan->sites.count, first = sites->count;

	for (uint32_t i = 0; i < total; i++) {
		if (!marks[i])
			continue;
		places[i] = sites->count;
		sites->list[sites->count++] = (struct commit_site){
			.address = module->bias + plan[i].vaddr,
			.plan = &plan[i],
			.module = number,
			.paired_site_index = COMMIT_SITE_WITHOUT_PAIR,
		};
	}
	for (uint32_t i = first; i < sites->count; i++) {
		uint32_t island = sites->list[i].plan->island;

		if (island && island <= total) {
			sites->list[i].paired_site_index = places[island - 1];
			sites->list[places[island - 1]].paired_site_index = i;
		}
	}
}

static int collect_sites(struct commit_sites *sites, size_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t total = sites->modules[i].plan->sites.count;
		bool *marks = calloc(total + 1, sizeof(*marks));
		uint32_t *places = calloc(total + 1, sizeof(*places));
		uint32_t wanted = marks ? mark_wanted_sites(&sites->modules[i], marks) : 0;
		struct commit_site *larger =
			realloc(sites->list, (sites->count + wanted + 1) * sizeof(*larger));

		if (larger)
			sites->list = larger;
		if (larger && marks && places)
			add_marked_sites(sites, i, marks, places);
		free(marks);
		free(places);
		if (!larger || !marks || !places)
			return -ENOMEM;
	}
	return 0;
}

static int compare_sites_by_address(const void *left, const void *right, void *list)
{
	uint64_t a = ((const struct commit_site *)list)[*(const uint32_t *)left].address;
	uint64_t b = ((const struct commit_site *)list)[*(const uint32_t *)right].address;

	return (a > b) - (a < b);
}

static int sort_sites_by_address(struct commit_sites *sites)
{
	sites->order = malloc((sites->count + 1) * sizeof(*sites->order));
	if (!sites->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < sites->count; i++)
		sites->order[i] = i;
	qsort_r(sites->order, sites->count, sizeof(*sites->order), compare_sites_by_address,
		sites->list);
	return 0;
}

static const struct commit_site *get_site_in_address_order(const struct commit_sites *sites,
							   uint32_t place)
{
	return &sites->list[sites->order[place]];
}

static int build_write_ranges(struct commit_sites *sites)
{
	struct commit_write_range *run = NULL;

	sites->write_ranges = malloc((sites->count + 1) * sizeof(*sites->write_ranges));
	if (!sites->write_ranges)
		return -ENOMEM;
	for (uint32_t i = 0; i < sites->count; i++) {
		const struct commit_site *site = get_site_in_address_order(sites, i);
		uint64_t end = site->address + site->plan->length;

		if (!run || (site->address & PAGE_START_MASK) >
				    ((run->start + run->size - 1) & PAGE_START_MASK) + PLAN_PAGE) {
			run = &sites->write_ranges[sites->write_range_count++];
			*run = (struct commit_write_range){.start = site->address, .first = i};
		}
		run->count++;
		if (end - run->start > run->size)
			run->size = end - run->start;
	}
	for (size_t i = 0; i < sites->write_range_count; i++) {
		sites->write_ranges[i].at = sites->buffer_size;
		sites->buffer_size += sites->write_ranges[i].size;
	}
	sites->buffer = malloc(sites->buffer_size + 1);
	return sites->buffer ? 0 : -ENOMEM;
}

/* ---- reading and writing ---- */

static uint8_t *get_buffered_bytes_of_site(const struct commit_sites *sites,
					   const struct commit_write_range *run,
					   const struct commit_site *site)
{
	return sites->buffer + run->at + (site->address - run->start);
}

static void set_site_and_pair_skipped(struct commit_sites *sites, struct commit_site *site)
{
	site->state = COMMIT_SITE_SKIPPED;
	if (site->paired_site_index != COMMIT_SITE_WITHOUT_PAIR)
		sites->list[site->paired_site_index].state = COMMIT_SITE_SKIPPED;
}

static void set_site_state_by_bytes(struct commit_sites *sites,
				    const struct commit_write_range *run, struct commit_site *site)
{
	const struct plan_site *plan = site->plan;
	const uint8_t *now = get_buffered_bytes_of_site(sites, run, site);
	const uint8_t *from = sites->is_undo ? plan->patched : plan->original;
	const uint8_t *to = sites->is_undo ? plan->original : plan->patched;

	if (site->state == COMMIT_SITE_SKIPPED)
		return;
	if (!memcmp(now, from, plan->length))
		site->state = COMMIT_SITE_WANTED;
	else if (!memcmp(now, to, plan->length))
		site->state = COMMIT_SITE_ALREADY_DONE;
	else
		set_site_and_pair_skipped(sites, site);
}

/* A library that was unloaded since, with its patches. */
static bool range_is_unmapped(const struct commit_sites *sites,
			      const struct commit_write_range *run)
{
	uint8_t byte;

	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		if (process_read_memory(sites->memory, get_site_in_address_order(sites, i)->address,
					&byte, 1))
			return false;
	}
	return true;
}

static void mark_sites_of_range_skipped(struct commit_sites *sites,
					const struct commit_write_range *run)
{
	for (uint32_t i = run->first; i < run->first + run->count; i++)
		set_site_and_pair_skipped(sites, &sites->list[sites->order[i]]);
}

bool commit_sites_read_and_check(struct commit_sites *sites)
{
	for (size_t i = 0; i < sites->write_range_count; i++) {
		const struct commit_write_range *run = &sites->write_ranges[i];

		if (!process_read_memory_by_vm_readv(sites->pid, sites->memory, run->start,
						     sites->buffer + run->at, run->size)) {
			if (!sites->is_undo || !range_is_unmapped(sites, run))
				return false;
			mark_sites_of_range_skipped(sites, run);
			continue;
		}
		for (uint32_t j = run->first; j < run->first + run->count; j++)
			set_site_state_by_bytes(sites, run, &sites->list[sites->order[j]]);
	}
	return true;
}

static bool write_sites_of_range(struct commit_sites *sites, const struct commit_write_range *run)
{
	bool any = false;

	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		struct commit_site *site = &sites->list[sites->order[i]];

		if (site->state != COMMIT_SITE_WANTED)
			continue;
		memcpy(get_buffered_bytes_of_site(sites, run, site),
		       sites->is_undo ? site->plan->original : site->plan->patched,
		       site->plan->length);
		site->state = COMMIT_SITE_WRITTEN;
		any = true;
	}
	return !any ||
	       process_write_memory(sites->memory, run->start, sites->buffer + run->at, run->size);
}

static void restore_sites_of_range(struct commit_sites *sites, const struct commit_write_range *run)
{
	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		struct commit_site *site = &sites->list[sites->order[i]];

		if (site->state != COMMIT_SITE_WRITTEN)
			continue;
		memcpy(get_buffered_bytes_of_site(sites, run, site),
		       sites->is_undo ? site->plan->patched : site->plan->original,
		       site->plan->length);
		site->state = COMMIT_SITE_SKIPPED;
	}
	process_write_memory(sites->memory, run->start, sites->buffer + run->at, run->size);
}

bool commit_sites_write(struct commit_sites *sites)
{
	for (size_t i = 0; i < sites->write_range_count; i++) {
		if (write_sites_of_range(sites, &sites->write_ranges[i]))
			continue;
		for (size_t j = i + 1; j-- > 0;)
			restore_sites_of_range(sites, &sites->write_ranges[j]);
		return false;
	}
	return true;
}

/* Pages that are not to be written at all are found later. */
static void touch_pages_of_wanted_sites(struct commit_sites *sites)
{
	uint64_t page = 0;

	for (uint32_t i = 0; i < sites->count; i++) {
		const struct commit_site *site = get_site_in_address_order(sites, i);
		uint64_t last = site->address + site->plan->length - 1;
		uint8_t byte;

		if (site->state != COMMIT_SITE_WANTED)
			continue;
		for (uint64_t at = site->address; at <= last; at = last > at ? last : at + 1) {
			if ((at & PAGE_START_MASK) == page)
				continue;
			page = at & PAGE_START_MASK;
			if (process_read_memory(sites->memory, at, &byte, 1))
				process_write_memory(sites->memory, at, &byte, 1);
		}
	}
}

int commit_sites_prepare(struct commit_sites *sites, const struct patched_module *modules,
			 size_t count, bool undo, pid_t pid, int memory, struct problem *problem)
{
	int error;

	*sites = (struct commit_sites){
		.modules = modules, .is_undo = undo, .pid = pid, .memory = memory};
	error = collect_sites(sites, count);
	if (!error)
		error = sort_sites_by_address(sites);
	if (!error)
		error = build_write_ranges(sites);
	if (error)
		return problem_set(problem, error, "out of memory");
	if (!commit_sites_read_and_check(sites))
		return problem_set(problem, -EFAULT, "the process has unmapped or moved a file");
	touch_pages_of_wanted_sites(sites);
	return 0;
}

void commit_sites_free(struct commit_sites *sites)
{
	free(sites->list);
	free(sites->order);
	free(sites->write_ranges);
	free(sites->buffer);
	memset(sites, 0, sizeof(*sites));
}

uint32_t commit_sites_count_in_state(const struct commit_sites *sites,
				     enum commit_site_state_kind state)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < sites->count; i++)
		count += sites->list[i].state == state;
	return count;
}

/* ---- windows ---- */

void commit_sites_get_range(const struct commit_sites *sites, uint64_t *ret_low, uint64_t *ret_high)
{
	const struct commit_site *last =
		sites->count ? get_site_in_address_order(sites, sites->count - 1) : NULL;

	*ret_low = last ? get_site_in_address_order(sites, 0)->address : 0;
	*ret_high = last ? last->address + last->plan->window + 2u : 0;
}

/* The site whose window the address is strictly inside of. */
static struct commit_site *find_site_by_window_address(struct commit_sites *sites, uint64_t address)
{
	uint32_t low = 0, high = sites->count;
	struct commit_site *site;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (get_site_in_address_order(sites, middle)->address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	site = &sites->list[sites->order[low - 1]];
	return site->state == COMMIT_SITE_WANTED && address - site->address < site->plan->window
		       ? site
		       : NULL;
}

/* The length of the `syscall` instruction. */
#define SYSCALL_INSTRUCTION_LENGTH 2

bool commit_sites_find_moved_address(struct commit_sites *sites, uint64_t address, bool call,
				     uint64_t *ret)
{
	uint64_t back = call ? SYSCALL_INSTRUCTION_LENGTH : 0;
	struct commit_site *site = find_site_by_window_address(sites, address - back);
	const struct patched_module *module;
	const struct plan_move *moves;

	if (!site && call) {
		back = 0;
		site = find_site_by_window_address(sites, address);
	}
	if (!site)
		return false;
	module = &sites->modules[site->module];
	moves = get_plan_move_table(module->plan) + site->plan->first_move;
	for (uint32_t i = 0; i < site->plan->move_count; i++) {
		if (moves[i].from == address - back - site->address) {
			*ret = module->bias + module->plan->arena_vaddr + moves[i].to + back;
			return true;
		}
	}
	set_site_and_pair_skipped(sites, site);
	*ret = 0;
	return true;
}
