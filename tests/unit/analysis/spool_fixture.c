/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "unit/analysis/spool_fixture.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct payload {
	uint8_t bytes[FIXTURE_DEPTH * 10 + 4096];
	size_t size;
};

static void check(int good, const char *what)
{
	if (!good) {
		perror(what);
		abort();
	}
}

static void put_unsigned(struct payload *payload, uint64_t value)
{
	do {
		uint8_t byte = value & 0x7f;

		value >>= 7;
		payload->bytes[payload->size++] = value ? byte | 0x80 : byte;
	} while (value);
}

static void put_signed(struct payload *payload, int64_t value)
{
	put_unsigned(payload, value < 0 ? ~((uint64_t)value << 1) : (uint64_t)value << 1);
}

static void put_fixed(struct payload *payload, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		payload->bytes[payload->size++] = (uint8_t)(value >> 8 * i);
}

static void put_bytes(struct payload *payload, const void *bytes, size_t size)
{
	put_unsigned(payload, size);
	if (size)
		memcpy(payload->bytes + payload->size, bytes, size);
	payload->size += size;
}

static void put_string(struct payload *payload, const char *text)
{
	put_bytes(payload, text, strlen(text));
}

void fixture_open(struct spool_fixture *fixture, const char *path, uint32_t pid, uint32_t image)
{
	struct spool_file_header *header = &fixture->header;

	memset(fixture, 0, sizeof(*fixture));
	fixture->file = fopen(path, "w");
	check(fixture->file != NULL, path);
	memcpy(header->magic, SPOOL_MAGIC, sizeof(header->magic));
	header->version_major = SPOOL_VERSION_MAJOR;
	header->version_minor = SPOOL_VERSION_MINOR;
	header->header_size = SPOOL_ALIGNMENT;
	header->pid = pid;
	header->parent_pid = 1;
	header->image = image;
	header->tick_clock = 1;
	header->tick_hz = 1000000000;
	header->start_ticks = FIXTURE_START;
	header->start_monotonic_ns = FIXTURE_START;
	header->start_boottime_ns = FIXTURE_START + FIXTURE_BOOT;
	header->start_realtime_ns = FIXTURE_START + FIXTURE_REAL;
	header->state = SPOOL_STATE_EXITED;
	header->exit_status = -1;
	header->end_ticks = FIXTURE_START;
	check(fseek(fixture->file, SPOOL_ALIGNMENT, SEEK_SET) == 0, "fseek");
}

void fixture_open_in(struct spool_fixture *fixture, const char *directory, uint32_t pid,
		     uint32_t image)
{
	char path[4096];

	check(mkdir(directory, 0777) == 0 || errno == EEXIST, directory);
	snprintf(path, sizeof(path), "%s/spool", directory);
	check(mkdir(path, 0777) == 0 || errno == EEXIST, path);
	snprintf(path, sizeof(path), "%s/spool/%u-%u.spool", directory, pid, image);
	fixture_open(fixture, path, pid, image);
}

void fixture_end_chunk(struct spool_fixture *fixture)
{
	size_t size = (fixture->used + SPOOL_ALIGNMENT - 1) / SPOOL_ALIGNMENT * SPOOL_ALIGNMENT;
	struct spool_chunk_header header = {
		.magic = SPOOL_CHUNK_MAGIC,
		.size = (uint32_t)size,
		.committed = (uint32_t)(fixture->used - SPOOL_CHUNK_HEADER_SIZE),
		.state = 2,
		.sequence = ++fixture->sequence};

	if (fixture->used == 0)
		return;
	memcpy(fixture->chunk, &header, sizeof(header));
	memset(fixture->chunk + fixture->used, 0, size - fixture->used);
	check(fwrite(fixture->chunk, 1, size, fixture->file) == size, "fwrite");
	fixture->used = 0;
}

void fixture_close(struct spool_fixture *fixture)
{
	fixture_end_chunk(fixture);
	check(fseek(fixture->file, 0, SEEK_SET) == 0, "fseek");
	check(fwrite(&fixture->header, sizeof(fixture->header), 1, fixture->file) == 1, "fwrite");
	check(fclose(fixture->file) == 0, "fclose");
	free(fixture->chunk);
}

size_t fixture_chunk_used(const struct spool_fixture *fixture)
{
	return fixture->used;
}

void fixture_record(struct spool_fixture *fixture, uint8_t kind, const void *payload, size_t size)
{
	struct payload head;

	head.size = 0;
	head.bytes[head.size++] = kind;
	put_unsigned(&head, size);
	if (fixture->used == 0)
		fixture->used = SPOOL_CHUNK_HEADER_SIZE;
	while (fixture->used + head.size + size + SPOOL_ALIGNMENT > fixture->capacity) {
		fixture->capacity = fixture->capacity ? fixture->capacity * 2 : 1 << 16;
		fixture->chunk = realloc(fixture->chunk, fixture->capacity);
		check(fixture->chunk != NULL, "realloc");
	}
	memcpy(fixture->chunk + fixture->used, head.bytes, head.size);
	if (size)
		memcpy(fixture->chunk + fixture->used + head.size, payload, size);
	fixture->used += head.size + size;
}

static void emit(struct spool_fixture *fixture, uint8_t kind, const struct payload *payload)
{
	fixture_record(fixture, kind, payload->bytes, payload->size);
}

void fixture_clock(struct spool_fixture *fixture, uint64_t ticks)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_fixed(&payload, ticks);
	put_fixed(&payload, ticks + FIXTURE_BOOT);
	put_fixed(&payload, ticks + FIXTURE_REAL);
	emit(fixture, SPOOL_RECORD_CLOCK, &payload);
}

void fixture_process(struct spool_fixture *fixture, const char *executable, const char *arguments,
		     size_t arguments_size)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, fixture->header.pid);
	put_unsigned(&payload, fixture->header.parent_pid);
	put_unsigned(&payload, 1000);
	put_unsigned(&payload, 1000);
	put_string(&payload, executable);
	put_bytes(&payload, arguments, arguments_size);
	put_string(&payload, "/somewhere");
	put_string(&payload, "host");
	put_string(&payload, "");
	emit(fixture, SPOOL_RECORD_PROCESS, &payload);
}

void fixture_module(struct spool_fixture *fixture, uint64_t ticks, uint64_t id, uint64_t start,
		    uint64_t end, uint64_t offset, const char *path)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_unsigned(&payload, id);
	put_unsigned(&payload, start);
	put_unsigned(&payload, end);
	put_unsigned(&payload, offset);
	put_unsigned(&payload, 8);
	put_unsigned(&payload, 4711);
	put_bytes(&payload, "\1\2\3\4", 4);
	put_string(&payload, path);
	emit(fixture, SPOOL_RECORD_MODULE, &payload);
}

void fixture_module_gone(struct spool_fixture *fixture, uint64_t ticks, uint64_t id)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_unsigned(&payload, id);
	emit(fixture, SPOOL_RECORD_MODULE_GONE, &payload);
}

void fixture_thread_start(struct spool_fixture *fixture, uint64_t ticks, uint64_t internal_id,
			  uint64_t tid, uint64_t parent_plus_one, const char *name, uint64_t how)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_unsigned(&payload, internal_id);
	put_unsigned(&payload, internal_id);
	put_unsigned(&payload, tid);
	put_unsigned(&payload, parent_plus_one);
	put_unsigned(&payload, 0);
	put_string(&payload, name);
	put_unsigned(&payload, how);
	emit(fixture, SPOOL_RECORD_THREAD_START, &payload);
}

void fixture_thread_name(struct spool_fixture *fixture, uint64_t internal_id, const char *name)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, internal_id);
	put_string(&payload, name);
	emit(fixture, SPOOL_RECORD_THREAD_NAME, &payload);
}

void fixture_thread_end(struct spool_fixture *fixture, uint64_t ticks, uint64_t internal_id,
			uint64_t cpu_ns, uint64_t covered_ns, uint64_t samples)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_unsigned(&payload, internal_id);
	put_unsigned(&payload, cpu_ns);
	put_unsigned(&payload, covered_ns);
	put_unsigned(&payload, samples);
	put_unsigned(&payload, samples);
	emit(fixture, SPOOL_RECORD_THREAD_END, &payload);
}

void fixture_metric(struct spool_fixture *fixture, uint64_t ticks, uint64_t metric, uint64_t value)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_unsigned(&payload, 1);
	put_unsigned(&payload, metric);
	put_unsigned(&payload, value);
	emit(fixture, SPOOL_RECORD_PROCESS_METRICS, &payload);
}

void fixture_notice(struct spool_fixture *fixture, uint64_t ticks, uint64_t kind, uint64_t argument,
		    const char *text)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_unsigned(&payload, kind);
	put_unsigned(&payload, argument);
	put_string(&payload, text);
	emit(fixture, SPOOL_RECORD_NOTICE, &payload);
}

void fixture_span(struct spool_fixture *fixture, uint64_t internal_id, uint64_t tid, uint64_t ticks)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, internal_id);
	put_unsigned(&payload, tid);
	put_fixed(&payload, ticks);
	emit(fixture, SPOOL_RECORD_SPAN, &payload);
	fixture->time = ticks >> SPOOL_SAMPLE_TIME_SHIFT;
	fixture->weight = 0;
	fixture->depth = 0;
	memset(fixture->metrics, 0, sizeof(fixture->metrics));
}

static void put_stack(struct spool_fixture *fixture, struct payload *payload,
		      const struct fixture_sample *sample)
{
	uint32_t common = 0;
	uint64_t base = 0;

	while (common < sample->depth && common < fixture->depth &&
	       fixture->stack[common] == sample->stack[common])
		common++;
	put_unsigned(payload, common);
	put_unsigned(payload, sample->depth - common);
	if (common < fixture->depth)
		base = fixture->stack[common];
	else if (common)
		base = fixture->stack[common - 1];
	for (uint32_t i = common; i < sample->depth; i++) {
		put_signed(payload, (int64_t)(sample->stack[i] - base));
		base = fixture->stack[i] = sample->stack[i];
	}
	fixture->depth = sample->depth;
}

void fixture_sample(struct spool_fixture *fixture, const struct fixture_sample *sample)
{
	struct payload payload;
	uint64_t time = sample->ticks >> SPOOL_SAMPLE_TIME_SHIFT;

	uint8_t flags =
		(uint8_t)(sample->source | (sample->metric_bitmap ? 4 : 0) | sample->end << 4);
	bool compact = fixture->header.samples & 1; /* both encodings, in turns */

	payload.size = 0;
	if (!compact)
		payload.bytes[payload.size++] = flags;
	put_unsigned(&payload, time - fixture->time);
	put_signed(&payload, (int64_t)(sample->weight - fixture->weight));
	put_stack(fixture, &payload, sample);
	if (sample->source == SPOOL_SOURCE_OVERFLOW)
		put_unsigned(&payload, sample->event);
	if (sample->metric_bitmap)
		put_unsigned(&payload, sample->metric_bitmap);
	for (unsigned i = 0; i < SPOOL_METRIC_COUNT; i++) {
		if (!(sample->metric_bitmap >> i & 1))
			continue;
		put_unsigned(&payload, sample->metrics[i] - fixture->metrics[i]);
		fixture->metrics[i] = sample->metrics[i];
	}
	if (sample->interpreter_state)
		put_unsigned(&payload, sample->interpreter_state);
	emit(fixture,
	     (uint8_t)(compact ? SPOOL_RECORD_SAMPLE_COMPACT + flags : SPOOL_RECORD_SAMPLE),
	     &payload);
	fixture->time = time;
	fixture->weight = sample->weight;
	fixture->header.samples++;
}

void fixture_repeat(struct spool_fixture *fixture, uint64_t ticks, uint64_t weight)
{
	struct payload payload;

	payload.size = 0;
	uint64_t time = ticks >> SPOOL_SAMPLE_TIME_SHIFT;

	put_unsigned(&payload, time - fixture->time);
	put_unsigned(&payload, weight);
	emit(fixture, SPOOL_RECORD_SAMPLE_REPEAT, &payload);
	fixture->time = time;
	fixture->header.samples++;
}

/* ---- regions ---- */

void fixture_region(struct spool_fixture *fixture, uint64_t id, const char *category,
		    const char *name)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, id);
	put_unsigned(&payload, SPOOL_REGION_NAMED);
	put_string(&payload, category);
	put_string(&payload, name);
	emit(fixture, SPOOL_RECORD_REGION, &payload);
}

void fixture_region_function(struct spool_fixture *fixture, uint64_t id, const char *category,
			     uint64_t address)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, id);
	put_unsigned(&payload, SPOOL_REGION_FUNCTION);
	put_string(&payload, category);
	put_fixed(&payload, address);
	emit(fixture, SPOOL_RECORD_REGION, &payload);
}

void fixture_region_span(struct spool_fixture *fixture, uint64_t internal_id, uint64_t tid,
			 uint64_t ticks, const struct fixture_open *open, size_t open_count)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, internal_id);
	put_unsigned(&payload, tid);
	put_fixed(&payload, ticks);
	put_unsigned(&payload, open_count);
	for (size_t i = 0; i < open_count; i++) {
		put_unsigned(&payload, open[i].region);
		put_unsigned(&payload, open[i].since);
	}
	emit(fixture, SPOOL_RECORD_REGION_SPAN, &payload);
	fixture->region_ticks = ticks;
}

/* Starts the payload of an event. */
static void put_time(struct spool_fixture *fixture, struct payload *payload, uint64_t ticks)
{
	payload->size = 0;
	put_unsigned(payload, ticks - fixture->region_ticks);
	fixture->region_ticks = ticks;
	fixture->header.region_events++;
}

void fixture_begin(struct spool_fixture *fixture, uint64_t ticks, uint64_t region)
{
	struct payload payload;

	put_time(fixture, &payload, ticks);
	put_unsigned(&payload, region);
	emit(fixture, SPOOL_RECORD_REGION_BEGIN, &payload);
}

void fixture_end(struct spool_fixture *fixture, uint64_t ticks)
{
	struct payload payload;

	put_time(fixture, &payload, ticks);
	emit(fixture, SPOOL_RECORD_REGION_END, &payload);
}

void fixture_end_other(struct spool_fixture *fixture, uint64_t ticks, uint64_t region, unsigned how)
{
	struct payload payload;

	put_time(fixture, &payload, ticks);
	put_unsigned(&payload, region);
	put_unsigned(&payload, how);
	emit(fixture, SPOOL_RECORD_REGION_END_OTHER, &payload);
}

void fixture_whole(struct spool_fixture *fixture, uint64_t ticks, uint64_t duration,
		   uint64_t region)
{
	struct payload payload;

	put_time(fixture, &payload, ticks);
	put_unsigned(&payload, duration);
	put_unsigned(&payload, region);
	emit(fixture, SPOOL_RECORD_REGION_WHOLE, &payload);
}

void fixture_mark(struct spool_fixture *fixture, uint64_t ticks, uint64_t region)
{
	struct payload payload;

	put_time(fixture, &payload, ticks);
	put_unsigned(&payload, region);
	emit(fixture, SPOOL_RECORD_MARK, &payload);
}

void fixture_counter(struct spool_fixture *fixture, uint64_t ticks, uint64_t region, double value)
{
	struct payload payload;
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_time(fixture, &payload, ticks);
	put_unsigned(&payload, region);
	put_fixed(&payload, bits);
	emit(fixture, SPOOL_RECORD_COUNTER, &payload);
}

void fixture_progress(struct spool_fixture *fixture, uint64_t ticks, unsigned kind, uint64_t region)
{
	struct payload payload;

	put_time(fixture, &payload, ticks);
	put_unsigned(&payload, kind);
	put_unsigned(&payload, region);
	emit(fixture, SPOOL_RECORD_PROGRESS, &payload);
}

void fixture_value(struct spool_fixture *fixture, enum spool_value_type type, const char *name,
		   uint64_t bits)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, type);
	put_string(&payload, name);
	put_fixed(&payload, bits);
	emit(fixture, SPOOL_RECORD_ANNOTATION, &payload);
}

void fixture_text_value(struct spool_fixture *fixture, const char *name, const char *text)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, SPOOL_VALUE_TEXT);
	put_string(&payload, name);
	put_string(&payload, text);
	emit(fixture, SPOOL_RECORD_ANNOTATION, &payload);
}

void fixture_components(struct spool_fixture *fixture, const struct fixture_component *components,
			size_t count)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, count);
	for (size_t i = 0; i < count; i++) {
		put_string(&payload, components[i].name);
		put_string(&payload, components[i].unit);
		put_string(&payload, "for tests");
		put_unsigned(&payload, components[i].kind);
		put_unsigned(&payload, components[i].scale);
	}
	emit(fixture, SPOOL_RECORD_COMPONENTS, &payload);
}

void fixture_profile(struct spool_fixture *fixture, const struct spool_profile_part *part,
		     const struct fixture_node *nodes, uint32_t values)
{
	size_t values_size = values * sizeof(struct spool_profile_value);
	size_t open_size = nodes[0].open ? sizeof(*nodes[0].open) : 0;
	size_t node_size = sizeof(struct spool_profile_node) + values_size + open_size;
	size_t size = sizeof(*part) + part->node_count * node_size;
	struct spool_profile_part head = *part;
	uint8_t *bytes = malloc(size), *at = bytes + sizeof(head);

	check(bytes != NULL, "malloc");
	head.node_size = (uint32_t)node_size;
	head.components = values;
	memcpy(bytes, &head, sizeof(head));
	for (uint32_t i = 0; i < part->node_count; i++, at += node_size) {
		memcpy(at, &nodes[i].node, sizeof(nodes[i].node));
		memcpy(at + sizeof(nodes[i].node), nodes[i].values, values_size);
		if (open_size)
			memcpy(at + sizeof(nodes[i].node) + values_size, nodes[i].open, open_size);
	}
	fixture_end_chunk(fixture);
	fixture_record(fixture, SPOOL_RECORD_PROFILE, bytes, size);
	fixture_end_chunk(fixture);
	free(bytes);
}

void fixture_window(struct spool_fixture *fixture, uint64_t ticks, uint64_t open)
{
	struct payload payload;

	payload.size = 0;
	put_fixed(&payload, ticks);
	put_unsigned(&payload, open);
	emit(fixture, SPOOL_RECORD_REGION_WINDOW, &payload);
}

void fixture_rank(struct spool_fixture *fixture, uint64_t rank, uint64_t size, const char *source)
{
	struct payload payload;

	payload.size = 0;
	put_unsigned(&payload, rank);
	put_unsigned(&payload, size);
	put_string(&payload, source);
	emit(fixture, SPOOL_RECORD_RANK, &payload);
}

/* Main thread (times in ms): main 0-10 { compute 1-4 { compute 2-3 }, lock (whole) 5-6, compute 7-9
 * }, then "late" from 11 on, which never ends. Worker: task 1-3, task 4-8 { lock (whole) 5-5.5 }.
 */
void fixture_write_regions(const char *directory)
{
	enum { MAIN = 1, COMPUTE, LOCK, TASK, LATE };
	const uint64_t start = FIXTURE_START, ms = 1000000;
	struct spool_fixture fixture;

	fixture_open_in(&fixture, directory, 100, 0);
	fixture_clock(&fixture, start);
	fixture_process(&fixture, "/usr/bin/regions", "regions", 7);
	fixture_thread_start(&fixture, start, 0, 100, 0, "", 0);
	fixture_thread_start(&fixture, start + ms, 1, 101, 1, "worker", 1);
	fixture_region(&fixture, MAIN, "user", "main");
	fixture_region(&fixture, COMPUTE, "user", "compute");
	fixture_region(&fixture, LOCK, "pthread", "pthread_mutex_lock");
	fixture_region(&fixture, TASK, "user", "task");
	fixture_region(&fixture, LATE, "user", "late");
	fixture_end_chunk(&fixture);
	fixture_region_span(&fixture, 0, 100, start, NULL, 0);
	fixture_begin(&fixture, start, MAIN);
	fixture_begin(&fixture, start + ms, COMPUTE);
	fixture_text_value(&fixture, "what", "outer");
	fixture_begin(&fixture, start + 2 * ms, COMPUTE);
	fixture_end(&fixture, start + 3 * ms);
	fixture_end(&fixture, start + 4 * ms);
	fixture_whole(&fixture, start + 6 * ms, ms, LOCK);
	fixture_end_chunk(&fixture);
	fixture_region_span(&fixture, 1, 101, start + ms, NULL, 0);
	fixture_begin(&fixture, start + ms, TASK);
	fixture_end(&fixture, start + 3 * ms);
	fixture_begin(&fixture, start + 4 * ms, TASK);
	fixture_whole(&fixture, start + 5 * ms + ms / 2, ms / 2, LOCK);
	fixture_end(&fixture, start + 8 * ms);
	fixture_end_chunk(&fixture);
	fixture_region_span(&fixture, 0, 100, start + 7 * ms, &(struct fixture_open){MAIN, 7 * ms},
			    1);
	fixture_begin(&fixture, start + 7 * ms, COMPUTE);
	fixture_end(&fixture, start + 9 * ms);
	fixture_end(&fixture, start + 10 * ms);
	fixture_begin(&fixture, start + 11 * ms, LATE);
	fixture_end_chunk(&fixture);
	fixture_thread_end(&fixture, start + 9 * ms, 1, 4 * ms, 0, 0);
	fixture_clock(&fixture, start + 12 * ms);
	fixture.header.end_ticks = start + 12 * ms;
	fixture_close(&fixture);
}

/* Main thread: three CPU samples of 1 ms (main > work, main > work, main > rest) and one truncated;
 * 4.5 ms of CPU time in all. Worker: one blocked sample and its repeat. */
void fixture_write_small(const char *directory)
{
	static const uint64_t work[] = {0x401010, 0x401020}, rest[] = {0x401010, 0x401030};
	static const uint64_t waiting[] = {0x401040, 0x700010};
	const uint64_t start = FIXTURE_START, ms = 1000000;
	struct spool_fixture fixture;

	fixture_open_in(&fixture, directory, 100, 0);
	fixture_clock(&fixture, start);
	fixture_process(&fixture, "/usr/bin/small", "small\0two words", 15);
	fixture_module(&fixture, start, 1, 0x400000, 0x500000, 0, "/nowhere/small");
	fixture_module(&fixture, start, 2, 0x700000, 0x800000, 0x1000, "/nowhere/libwait.so");
	fixture_thread_start(&fixture, start, 0, 100, 0, "", 0);
	fixture_thread_start(&fixture, start + ms, 1, 101, 1, "worker", 1);
	fixture_notice(&fixture, start, SPOOL_NOTICE_SOURCE, SPOOL_CPU_SOURCE_TIMER, "because");
	fixture_metric(&fixture, start + ms, SPOOL_PROCESS_RSS_BYTES, 1 << 20);
	fixture_end_chunk(&fixture);
	fixture_span(&fixture, 0, 100, start);
	fixture_sample(&fixture,
		       &(struct fixture_sample){
			       .ticks = start + ms, .weight = ms, .stack = work, .depth = 2});
	fixture_sample(&fixture, &(struct fixture_sample){.ticks = start + 2 * ms,
							  .weight = ms,
							  .stack = work,
							  .depth = 2,
							  .metric_bitmap = 1,
							  .metrics = {2 * ms}});
	fixture_sample(&fixture,
		       &(struct fixture_sample){
			       .ticks = start + 3 * ms, .weight = ms, .stack = rest, .depth = 2});
	fixture_sample(&fixture, &(struct fixture_sample){.ticks = start + 4 * ms,
							  .weight = ms,
							  .stack = rest + 1,
							  .depth = 1,
							  .end = SPOOL_STACK_BAD_CFA});
	fixture_end_chunk(&fixture);
	fixture_span(&fixture, 1, 101, start + ms);
	fixture_sample(&fixture, &(struct fixture_sample){.ticks = start + 2 * ms,
							  .weight = 3 * ms,
							  .source = SPOOL_SOURCE_WALL,
							  .stack = waiting,
							  .depth = 2});
	fixture_repeat(&fixture, start + 5 * ms, 3 * ms);
	fixture_end_chunk(&fixture);
	fixture_thread_name(&fixture, 1, "renamed");
	fixture_thread_end(&fixture, start + 6 * ms, 0, 4 * ms + ms / 2, 4 * ms, 4);
	fixture_clock(&fixture, start + 6 * ms);
	fixture.header.cpu_covered_ns = 4 * ms;
	fixture.header.end_ticks = start + 6 * ms;
	fixture.header.losses[SPOOL_LOSS_NO_CHUNK] = 7;
	fixture_close(&fixture);
}
