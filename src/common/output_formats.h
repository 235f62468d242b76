/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The one list of outputs, in the order in which they are shown and written: X(identifier, word,
 * when). Each is a `struct output_format output_format_<identifier>` in its writer's file below
 * src/output/, which a row here adds to the table of outputs (output/formats/formats.h) and to the
 * words of OUTPUT_FORMATS (settings_table.c).
 *
 *   ALWAYS  written where OUTPUT_FORMATS is not set
 *   NAMED   written where OUTPUT_FORMATS names it
 *   DATA    no word of OUTPUT_FORMATS: written where there is data of its kind
 */
#ifndef KYMO_COMMON_OUTPUT_FORMATS_H
#define KYMO_COMMON_OUTPUT_FORMATS_H

/* clang-format off */
#define OUTPUT_FORMAT_LIST(X)                                  \
	X(text, "text", ALWAYS)                                \
	X(json, "json", ALWAYS)                                \
	X(perfetto, "perfetto", ALWAYS)                        \
	X(folded, "folded", ALWAYS)                            \
	X(regions_folded, "regions-folded", NAMED)             \
	X(pprof, "pprof", ALWAYS)                              \
	X(report, "report", ALWAYS)                            \
	X(html, "html", NAMED)                                 \
	X(memory, "memory", ALWAYS)                            \
	X(db, "db", NAMED)                                     \
	X(speedscope, "speedscope", NAMED)                     \
	X(gecko, "gecko", NAMED)                               \
	X(otlp, "otlp", NAMED)                                 \
	X(nccl, "nccl", DATA)                                  \
	X(nccl_json, "nccl-json", DATA)                        \
	X(nccl_operations, "nccl-operations", DATA)            \
	X(nccl_collectives, "nccl-collectives", DATA)          \
	X(counters, "counters", DATA)                          \
	X(device_counters, "device-counters", DATA)            \
	X(counters_json, "counters-json", DATA)                \
	X(counters_db, "counters-db", DATA)                    \
	X(coverage, "coverage", ALWAYS)                        \
	X(coverage_json, "coverage-json", ALWAYS)              \
	X(lcov, "lcov", NAMED)
/* clang-format on */

/* Words for the settings, each with a comma before it; the first comma is left out. */
#define OUTPUT_FORMAT_WORD_ALWAYS(word) "," word
#define OUTPUT_FORMAT_WORD_NAMED(word)
#define OUTPUT_FORMAT_WORD_DATA(word)
#define OUTPUT_FORMAT_CHOICE_ALWAYS(word) "," word
#define OUTPUT_FORMAT_CHOICE_NAMED(word)  "," word
#define OUTPUT_FORMAT_CHOICE_DATA(word)
#define OUTPUT_FORMAT_WORD_IF_DEFAULT_ROW(name, word, when) OUTPUT_FORMAT_WORD_##when(word)
#define OUTPUT_FORMAT_WORD_IF_CHOICE_ROW(name, word, when)  OUTPUT_FORMAT_CHOICE_##when(word)

#define OUTPUT_FORMATS_DEFAULT (&(OUTPUT_FORMAT_LIST(OUTPUT_FORMAT_WORD_IF_DEFAULT_ROW))[1])
#define OUTPUT_FORMATS_CHOICES (&(OUTPUT_FORMAT_LIST(OUTPUT_FORMAT_WORD_IF_CHOICE_ROW))[1])
/* All of them: what a recorded session can be written as. */
#define OUTPUT_FORMAT_WORD_ROW(name, word, when) "," word
#define OUTPUT_FORMATS_ALL                       (&(OUTPUT_FORMAT_LIST(OUTPUT_FORMAT_WORD_ROW))[1])

#endif
