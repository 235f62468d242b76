/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Writes spool files as the library would, record by record, for tests, fuzz seeds and benches. An
 * encoder of its own, written from kymo/spool.h: what it and the reader agree on is the format.
 *
 * Ticks are ns of CLOCK_MONOTONIC here; FIXTURE_BOOT is what CLOCK_BOOTTIME is ahead.
 */
#ifndef KYMO_TESTS_SPOOL_FIXTURE_H
#define KYMO_TESTS_SPOOL_FIXTURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "kymo/spool.h"

#define FIXTURE_START UINT64_C(1000000000000) /* ticks at the start */
#define FIXTURE_BOOT  UINT64_C(5000000000)
#define FIXTURE_REAL  UINT64_C(1700000000000000000)
#define FIXTURE_DEPTH 512

struct spool_fixture {
	FILE *file;
	struct spool_file_header header;
	uint8_t *chunk; /* header and records of the open chunk */
	size_t used, capacity;
	uint64_t sequence;
	/* Encoder state of the open span. */
	uint64_t time, weight, metrics[SPOOL_METRIC_COUNT];
	uint64_t stack[FIXTURE_DEPTH]; /* outermost first */
	uint32_t depth;
	uint64_t region_ticks; /* of the open region span */
};

/* What is open where a span of regions begins. */
struct fixture_open {
	uint64_t region, since;
};

struct fixture_component {
	const char *name, *unit;
	enum spool_component_kind kind;
	uint64_t scale;
};

/* A node of a profile part, with one value. */
struct fixture_node {
	struct spool_profile_node node;
	struct spool_profile_value values[4];
	const struct spool_profile_open *open; /* of all nodes of a part, or NULL in all */
};

struct fixture_sample {
	uint64_t ticks, weight;
	enum spool_sample_source source;
	enum spool_stack_end end;
	const uint64_t *stack; /* outermost first */
	uint32_t depth, event, metric_bitmap;
	uint64_t metrics[SPOOL_METRIC_COUNT];
	enum spool_interpreter_state interpreter_state;
};

/* Opens PATH for a process; aborts on failure. The header can be changed until the end. */
void fixture_open(struct spool_fixture *fixture, const char *path, uint32_t pid, uint32_t image);
void fixture_close(struct spool_fixture *fixture);
/* <directory>/spool/<pid>-<image>.spool, directories made as needed. */
void fixture_open_in(struct spool_fixture *fixture, const char *directory, uint32_t pid,
		     uint32_t image);
/* Records go into the open chunk; one is opened where there is none. */
void fixture_end_chunk(struct spool_fixture *fixture);
size_t fixture_chunk_used(const struct spool_fixture *fixture);

void fixture_record(struct spool_fixture *fixture, uint8_t kind, const void *payload, size_t size);
void fixture_clock(struct spool_fixture *fixture, uint64_t ticks);
void fixture_process(struct spool_fixture *fixture, const char *executable, const char *arguments,
		     size_t arguments_size);
void fixture_module(struct spool_fixture *fixture, uint64_t ticks, uint64_t id, uint64_t start,
		    uint64_t end, uint64_t offset, const char *path);
void fixture_module_gone(struct spool_fixture *fixture, uint64_t ticks, uint64_t id);
void fixture_thread_start(struct spool_fixture *fixture, uint64_t ticks, uint64_t internal_id,
			  uint64_t tid, uint64_t parent_plus_one, const char *name, uint64_t how);
void fixture_thread_name(struct spool_fixture *fixture, uint64_t internal_id, const char *name);
void fixture_thread_end(struct spool_fixture *fixture, uint64_t ticks, uint64_t internal_id,
			uint64_t cpu_ns, uint64_t covered_ns, uint64_t samples);
void fixture_metric(struct spool_fixture *fixture, uint64_t ticks, uint64_t metric, uint64_t value);
void fixture_notice(struct spool_fixture *fixture, uint64_t ticks, uint64_t kind, uint64_t argument,
		    const char *text);
void fixture_span(struct spool_fixture *fixture, uint64_t internal_id, uint64_t tid,
		  uint64_t ticks);
void fixture_sample(struct spool_fixture *fixture, const struct fixture_sample *sample);
void fixture_repeat(struct spool_fixture *fixture, uint64_t ticks, uint64_t weight);

/* ---- regions: times are absolute, the encoder makes differences ---- */
void fixture_region(struct spool_fixture *fixture, uint64_t id, const char *category,
		    const char *name);
void fixture_region_function(struct spool_fixture *fixture, uint64_t id, const char *category,
			     uint64_t address);
void fixture_region_span(struct spool_fixture *fixture, uint64_t internal_id, uint64_t tid,
			 uint64_t ticks, const struct fixture_open *open, size_t open_count);
void fixture_begin(struct spool_fixture *fixture, uint64_t ticks, uint64_t region);
void fixture_end(struct spool_fixture *fixture, uint64_t ticks);
void fixture_end_other(struct spool_fixture *fixture, uint64_t ticks, uint64_t region,
		       unsigned how);
void fixture_whole(struct spool_fixture *fixture, uint64_t ticks, uint64_t duration,
		   uint64_t region);
void fixture_mark(struct spool_fixture *fixture, uint64_t ticks, uint64_t region);
void fixture_counter(struct spool_fixture *fixture, uint64_t ticks, uint64_t region, double value);
void fixture_progress(struct spool_fixture *fixture, uint64_t ticks, unsigned kind,
		      uint64_t region);
void fixture_value(struct spool_fixture *fixture, enum spool_value_type type, const char *name,
		   uint64_t bits);
void fixture_text_value(struct spool_fixture *fixture, const char *name, const char *text);
void fixture_components(struct spool_fixture *fixture, const struct fixture_component *components,
			size_t count);
/* In a chunk of its own; `values` stored ones a node. */
void fixture_profile(struct spool_fixture *fixture, const struct spool_profile_part *part,
		     const struct fixture_node *nodes, uint32_t values);
void fixture_window(struct spool_fixture *fixture, uint64_t ticks, uint64_t open);
void fixture_rank(struct spool_fixture *fixture, uint64_t rank, uint64_t size, const char *source);

/* The small program of most tests: two threads, all record kinds; see the definition. */
void fixture_write_small(const char *directory);
/* Two threads in regions, their trace alone; see the definition. */
void fixture_write_regions(const char *directory);

#endif
