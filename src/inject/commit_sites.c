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

#define PAGE_START (~(uint64_t)(PLAN_PAGE - 1))

static const struct plan_site *plan_sites_of(const struct plan_header *plan)
{
	return (const void *)((const char *)plan + plan->sites.offset);
}

static const struct plan_move *plan_moves_of(const struct plan_header *plan)
{
	return (const void *)((const char *)plan + plan->moves.offset);
}

/* ---- collecting ---- */

static bool is_wanted(const struct commit_module *module, const struct plan_site *site)
{
	return site->function < module->plan->functions.count &&
	       module->modes[site->function] != PLAN_MODE_OFF;
}

/* Which of a plan's sites are wanted, with those that are written with them; the number of them. */
static uint32_t mark(const struct commit_module *module, bool *marks)
{
	const struct plan_site *plan = plan_sites_of(module->plan);
	uint32_t total = (uint32_t)module->plan->sites.count, count = 0;

	for (uint32_t i = 0; i < total; i++) {
		if (!is_wanted(module, &plan[i]))
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
static void take(struct commit_sites *sites, uint32_t number, const bool *marks, uint32_t *places)
{
	const struct commit_module *module = &sites->modules[number];
	const struct plan_site *plan = plan_sites_of(module->plan);
	uint32_t total = (uint32_t)module->plan->sites.count, first = sites->count;

	for (uint32_t i = 0; i < total; i++) {
		if (!marks[i])
			continue;
		places[i] = sites->count;
		sites->list[sites->count++] = (struct commit_site){
			.address = module->bias + plan[i].vaddr,
			.plan = &plan[i],
			.module = number,
			.pair = COMMIT_ALONE,
		};
	}
	for (uint32_t i = first; i < sites->count; i++) {
		uint32_t island = sites->list[i].plan->island;

		if (island && island <= total) {
			sites->list[i].pair = places[island - 1];
			sites->list[places[island - 1]].pair = i;
		}
	}
}

static int collect(struct commit_sites *sites, size_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t total = sites->modules[i].plan->sites.count;
		bool *marks = calloc(total + 1, sizeof(*marks));
		uint32_t *places = calloc(total + 1, sizeof(*places));
		uint32_t wanted = marks ? mark(&sites->modules[i], marks) : 0;
		struct commit_site *larger =
			realloc(sites->list, (sites->count + wanted + 1) * sizeof(*larger));

		if (larger)
			sites->list = larger;
		if (larger && marks && places)
			take(sites, i, marks, places);
		free(marks);
		free(places);
		if (!larger || !marks || !places)
			return -ENOMEM;
	}
	return 0;
}

static int compare_addresses(const void *left, const void *right, void *list)
{
	uint64_t a = ((const struct commit_site *)list)[*(const uint32_t *)left].address;
	uint64_t b = ((const struct commit_site *)list)[*(const uint32_t *)right].address;

	return (a > b) - (a < b);
}

static int sort(struct commit_sites *sites)
{
	sites->order = malloc((sites->count + 1) * sizeof(*sites->order));
	if (!sites->order)
		return -ENOMEM;
	for (uint32_t i = 0; i < sites->count; i++)
		sites->order[i] = i;
	qsort_r(sites->order, sites->count, sizeof(*sites->order), compare_addresses, sites->list);
	return 0;
}

static const struct commit_site *in_order(const struct commit_sites *sites, uint32_t place)
{
	return &sites->list[sites->order[place]];
}

static int make_runs(struct commit_sites *sites)
{
	struct commit_run *run = NULL;

	sites->runs = malloc((sites->count + 1) * sizeof(*sites->runs));
	if (!sites->runs)
		return -ENOMEM;
	for (uint32_t i = 0; i < sites->count; i++) {
		const struct commit_site *site = in_order(sites, i);
		uint64_t end = site->address + site->plan->length;

		if (!run || (site->address & PAGE_START) >
				    ((run->start + run->size - 1) & PAGE_START) + PLAN_PAGE) {
			run = &sites->runs[sites->run_count++];
			*run = (struct commit_run){.start = site->address, .first = i};
		}
		run->count++;
		if (end - run->start > run->size)
			run->size = end - run->start;
	}
	for (size_t i = 0; i < sites->run_count; i++) {
		sites->runs[i].at = sites->buffer_size;
		sites->buffer_size += sites->runs[i].size;
	}
	sites->buffer = malloc(sites->buffer_size + 1);
	return sites->buffer ? 0 : -ENOMEM;
}

/* ---- reading and writing ---- */

static uint8_t *bytes_at(const struct commit_sites *sites, const struct commit_run *run,
			 const struct commit_site *site)
{
	return sites->buffer + run->at + (site->address - run->start);
}

static void leave(struct commit_sites *sites, struct commit_site *site)
{
	site->state = COMMIT_LEFT;
	if (site->pair != COMMIT_ALONE)
		sites->list[site->pair].state = COMMIT_LEFT;
}

static void check(struct commit_sites *sites, const struct commit_run *run,
		  struct commit_site *site)
{
	const struct plan_site *plan = site->plan;
	const uint8_t *now = bytes_at(sites, run, site);
	const uint8_t *from = sites->undo ? plan->patched : plan->original;
	const uint8_t *to = sites->undo ? plan->original : plan->patched;

	if (site->state == COMMIT_LEFT)
		return;
	if (!memcmp(now, from, plan->length))
		site->state = COMMIT_WANTED;
	else if (!memcmp(now, to, plan->length))
		site->state = COMMIT_DONE;
	else
		leave(sites, site);
}

/* A library that was unloaded since, with its patches. */
static bool is_gone(const struct commit_sites *sites, const struct commit_run *run)
{
	uint8_t byte;

	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		if (process_read(sites->memory, in_order(sites, i)->address, &byte, 1))
			return false;
	}
	return true;
}

static void leave_run(struct commit_sites *sites, const struct commit_run *run)
{
	for (uint32_t i = run->first; i < run->first + run->count; i++)
		leave(sites, &sites->list[sites->order[i]]);
}

bool commit_sites_check(struct commit_sites *sites)
{
	for (size_t i = 0; i < sites->run_count; i++) {
		const struct commit_run *run = &sites->runs[i];

		if (!process_read_much(sites->pid, sites->memory, run->start,
				       sites->buffer + run->at, run->size)) {
			if (!sites->undo || !is_gone(sites, run))
				return false;
			leave_run(sites, run);
			continue;
		}
		for (uint32_t j = run->first; j < run->first + run->count; j++)
			check(sites, run, &sites->list[sites->order[j]]);
	}
	return true;
}

static bool write_run(struct commit_sites *sites, const struct commit_run *run)
{
	bool any = false;

	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		struct commit_site *site = &sites->list[sites->order[i]];

		if (site->state != COMMIT_WANTED)
			continue;
		memcpy(bytes_at(sites, run, site),
		       sites->undo ? site->plan->original : site->plan->patched,
		       site->plan->length);
		site->state = COMMIT_WRITTEN;
		any = true;
	}
	return !any || process_write(sites->memory, run->start, sites->buffer + run->at, run->size);
}

static void take_back_run(struct commit_sites *sites, const struct commit_run *run)
{
	for (uint32_t i = run->first; i < run->first + run->count; i++) {
		struct commit_site *site = &sites->list[sites->order[i]];

		if (site->state != COMMIT_WRITTEN)
			continue;
		memcpy(bytes_at(sites, run, site),
		       sites->undo ? site->plan->patched : site->plan->original,
		       site->plan->length);
		site->state = COMMIT_LEFT;
	}
	process_write(sites->memory, run->start, sites->buffer + run->at, run->size);
}

bool commit_sites_write(struct commit_sites *sites)
{
	for (size_t i = 0; i < sites->run_count; i++) {
		if (write_run(sites, &sites->runs[i]))
			continue;
		for (size_t j = i + 1; j-- > 0;)
			take_back_run(sites, &sites->runs[j]);
		return false;
	}
	return true;
}

/* Pages that are not to be written at all are found later. */
static void own_pages(struct commit_sites *sites)
{
	uint64_t page = 0;

	for (uint32_t i = 0; i < sites->count; i++) {
		const struct commit_site *site = in_order(sites, i);
		uint64_t last = site->address + site->plan->length - 1;
		uint8_t byte;

		if (site->state != COMMIT_WANTED)
			continue;
		for (uint64_t at = site->address; at <= last; at = last > at ? last : at + 1) {
			if ((at & PAGE_START) == page)
				continue;
			page = at & PAGE_START;
			if (process_read(sites->memory, at, &byte, 1))
				process_write(sites->memory, at, &byte, 1);
		}
	}
}

int commit_sites_prepare(struct commit_sites *sites, const struct commit_module *modules,
			 size_t count, bool undo, pid_t pid, int memory, struct problem *problem)
{
	int error;

	*sites = (struct commit_sites){
		.modules = modules, .undo = undo, .pid = pid, .memory = memory};
	error = collect(sites, count);
	if (!error)
		error = sort(sites);
	if (!error)
		error = make_runs(sites);
	if (error)
		return problem_set(problem, error, "out of memory");
	if (!commit_sites_check(sites))
		return problem_set(problem, -EFAULT, "a file is not mapped any more where it was");
	own_pages(sites);
	return 0;
}

void commit_sites_free(struct commit_sites *sites)
{
	free(sites->list);
	free(sites->order);
	free(sites->runs);
	free(sites->buffer);
	memset(sites, 0, sizeof(*sites));
}

uint32_t commit_sites_in_state(const struct commit_sites *sites, enum commit_site_state state)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < sites->count; i++)
		count += sites->list[i].state == state;
	return count;
}

/* ---- windows ---- */

void commit_sites_range(const struct commit_sites *sites, uint64_t *ret_low, uint64_t *ret_high)
{
	const struct commit_site *last = sites->count ? in_order(sites, sites->count - 1) : NULL;

	*ret_low = last ? in_order(sites, 0)->address : 0;
	*ret_high = last ? last->address + last->plan->window + 2u : 0;
}

/* The site whose window the address is strictly inside of. */
static struct commit_site *window_at(struct commit_sites *sites, uint64_t address)
{
	uint32_t low = 0, high = sites->count;
	struct commit_site *site;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (in_order(sites, middle)->address < address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	site = &sites->list[sites->order[low - 1]];
	return site->state == COMMIT_WANTED && address - site->address < site->plan->window ? site
											    : NULL;
}

/* The length of the `syscall` instruction. */
#define CALL_LENGTH 2

bool commit_sites_moved(struct commit_sites *sites, uint64_t address, bool call, uint64_t *ret)
{
	uint64_t back = call ? CALL_LENGTH : 0;
	struct commit_site *site = window_at(sites, address - back);
	const struct commit_module *module;
	const struct plan_move *moves;

	if (!site && call) {
		back = 0;
		site = window_at(sites, address);
	}
	if (!site)
		return false;
	module = &sites->modules[site->module];
	moves = plan_moves_of(module->plan) + site->plan->first_move;
	for (uint32_t i = 0; i < site->plan->move_count; i++) {
		if (moves[i].from == address - back - site->address) {
			*ret = module->bias + module->plan->arena_vaddr + moves[i].to + back;
			return true;
		}
	}
	leave(sites, site);
	*ret = 0;
	return true;
}
