/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The parts of the summary; see summary.c.
 */
#ifndef KYMO_OUTPUT_SUMMARY_PRIVATE_H
#define KYMO_OUTPUT_SUMMARY_PRIVATE_H

#include "output/summary/summary.h"

#define SUMMARY_COLUMNS_DEFAULT 100
#define SUMMARY_COLUMNS_MIN     40
#define SUMMARY_COLUMNS_MAX     200

/* Of a summary that is passed on: `text` is what was written to the stream. It begins with the name
 * of a row when there are cells. */
#define SUMMARY_CAPTURE_CELLS_MAX 12
struct summary_capture {
	const struct summary_receiver *receiver;
	char *text;
	size_t size, passed, cell_count;
	char cells[SUMMARY_CAPTURE_CELLS_MAX][64];
};

struct summary_writer {
	struct session *session;
	FILE *stream;
	enum view_measure_kind measure;
	uint64_t total, samples; /* of the measure */
	size_t top, columns;
	bool colour;
	struct summary_capture *capture; /* NULL: the stream is what people read */
};

/* One number of a table's row. The highest ranks are left out where a name would have no room; 0
 * never. `width` counts the blanks before it; negative: left-aligned, with blanks behind it. */
struct summary_cell {
	const char *text;
	int width;
	unsigned rank;
};

/* Writes two blanks behind the cells that fit; returns the columns that are left for the name. */
size_t summary_write_cells(const struct summary_writer *summary, const struct summary_cell *cells,
			   size_t count);
/* The same with the name, cut to what is left, and the line's end. NULL: no name. */
void summary_write_row(const struct summary_writer *summary, const struct summary_cell *cells,
		       size_t count, const char *name);
/* Self and total, each as a share and in the measure's unit. */
#define SUMMARY_WEIGHT_CELL_COUNT 4
#define SUMMARY_WEIGHT_HEADINGS                                                                    \
	(const struct summary_cell[])                                                              \
	{                                                                                          \
		{"self", 10, 0}, {"", 10, 2}, {"total", 10, 1},                                    \
		{                                                                                  \
			"", 10, 3                                                                  \
		}                                                                                  \
	}
size_t summary_write_weight_cells(const struct summary_writer *summary, uint64_t self,
				  uint64_t total, uint64_t whole);

/* A heading, and text in the given role where colour is on. */
void summary_write_heading(const struct summary_writer *summary, const char *title);
/* Prints lines of at most the summary's columns, broken at blanks, all indented by two. */
__attribute__((format(printf, 2, 3))) void summary_write_line(const struct summary_writer *summary,
							      const char *format, ...);
/* The same, as a warning. */
__attribute__((format(printf, 2, 3))) void
summary_write_warning(const struct summary_writer *summary, const char *format, ...);

/* How real time divides; ns. */
struct summary_time_parts {
	uint64_t running_ns, queued_ns, blocked_ns;
};
struct summary_time_parts summary_get_thread_time_parts(const struct model_thread *thread);
uint64_t summary_sum_time_parts(struct summary_time_parts times);
/* CPU time, and what the samples cover of it. */
void summary_write_cpu_time(const struct summary_writer *summary);
/* What is left where the oldest records were overwritten; nothing where none were. */
void summary_write_overwritten_span(const struct summary_writer *summary);
/* Why there are no samples; nothing where there are, or where none are missed. */
void summary_write_no_samples_reason(const struct summary_writer *summary);
void summary_add_time_parts(struct summary_time_parts *sum, struct summary_time_parts times);
void summary_write_real_time(const struct summary_writer *summary);
/* Nothing where no interpreter was met, or only one thread of it. */
void summary_write_interpreter_states(const struct summary_writer *summary);

int summary_write_functions(const struct summary_writer *summary);
/* Nothing where no interpreted code ran. */
int summary_write_interpreted_lines(const struct summary_writer *summary);
int summary_write_call_paths(const struct summary_writer *summary);
int summary_write_regions(const struct summary_writer *summary);
int summary_write_mpi(const struct summary_writer *summary);
int summary_write_instrumented_calls(const struct summary_writer *summary);
int summary_write_python_calls(const struct summary_writer *summary);
/* USE_SAMPLING was off: nothing is missing where there are no samples. */
bool summary_was_told_not_to_sample(const struct summary_writer *summary);
int summary_write_memory(const struct summary_writer *summary);
int summary_write_nccl(const struct summary_writer *summary);
void summary_write_gpu(const struct summary_writer *summary);
void summary_write_device_steps(const struct summary_writer *summary);
/* Nothing where no call paths of launches were recorded. */
int summary_write_launch_paths(const struct summary_writer *summary);
void summary_write_counters(const struct summary_writer *summary);
/* Such a run may have no samples, and none are missed. */
bool summary_has_counters(const struct summary_writer *summary);
int summary_write_processes(const struct summary_writer *summary);
/* Where threads blocked, and who woke them (waits.c). */
int summary_write_waits(const struct summary_writer *summary);
/* The whole machine was sampled (machine.c): by control group and by CPU. */
bool summary_is_of_machine(const struct summary_writer *summary);
int summary_write_machine(const struct summary_writer *summary);
int summary_write_threads(const struct summary_writer *summary);
void summary_write_program_and_machine(const struct summary_writer *summary);
void summary_write_unresolved_code(const struct summary_writer *summary);
void summary_write_losses(const struct summary_writer *summary);
void summary_write_notices(const struct summary_writer *summary);
void summary_write_overhead(const struct summary_writer *summary);

#endif
