/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A log collector of an everyday kind: one thread reads lines of a web server's access log, another
 * counts them in a SQLite database, a batch a transaction. It compiles its statement for each
 * record, unless it is told to keep it. It knows nothing of profilers; a batch is a call of
 * store_batch().
 *
 * usage: ingest BATCHES [keep]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LINES           4096
#define PATHS           500
#define BATCH           128
#define BATCHES_WAITING 8

struct record {
	char path[64];
	long day;
	long bytes;
};

struct batch {
	struct record records[BATCH];
};

static char lines[LINES][160];
static struct batch queue[BATCHES_WAITING];
static unsigned put_in, taken;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static sqlite3 *database;
static int keep;

static void fail(const char *what)
{
	fprintf(stderr, "ingest: %s: %s\n", what, database ? sqlite3_errmsg(database) : "");
	exit(1);
}

/* ---- the thread that reads ---- */

static void write_log(void)
{
	unsigned seed = 1;
	for (int i = 0; i < LINES; i++) {
		seed = seed * 1103515245 + 12345;
		snprintf(lines[i], sizeof lines[i],
			 "192.0.2.%u - - [%02u/Oct/2026:13:55:%02u +0000] \"GET "
			 "/articles/%u.html%%3Fpage%%3D%u "
			 "HTTP/1.1\" 200 %u",
			 seed >> 24, 1 + (seed >> 8) % 28, (seed >> 12) % 60, (seed >> 16) % PATHS,
			 (seed >> 10) % 3, 1000 + (seed >> 16) % 9000);
	}
}

/* %xx as the character it stands for. */
static void decode_path(char *to, size_t size, const char *from, const char *end)
{
	size_t used = 0;
	while (from < end && used + 1 < size) {
		if (*from == '%' && end - from > 2) {
			const char digits[3] = {from[1], from[2], 0};
			to[used++] = (char)strtol(digits, NULL, 16);
			from += 3;
		} else {
			to[used++] = *from++;
		}
	}
	to[used] = 0;
}

__attribute__((noinline)) static void parse_line(struct record *record, const char *line)
{
	struct tm when = {0};
	const char *date = strchr(line, '[');
	const char *path = date ? strchr(date, '"') : NULL;
	const char *end = path ? strchr(path + 5, ' ') : NULL;
	const char *size = end ? strrchr(end, ' ') : NULL;
	if (!size || !strptime(date + 1, "%d/%b/%Y:%H:%M:%S", &when))
		fail("not a line of a log");
	decode_path(record->path, sizeof record->path, path + 5, end);
	record->day = timegm(&when) / 86400;
	record->bytes = strtol(size, NULL, 10);
}

static void *read_lines(void *batches)
{
	for (long i = 0; i < *(long *)batches; i++) {
		pthread_mutex_lock(&lock);
		while (put_in - taken == BATCHES_WAITING)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		struct batch *batch = &queue[put_in % BATCHES_WAITING];
		for (int j = 0; j < BATCH; j++)
			parse_line(&batch->records[j], lines[(i * BATCH + j) % LINES]);
		pthread_mutex_lock(&lock);
		put_in++;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* ---- the thread that stores ---- */

static void execute(const char *sql)
{
	if (sqlite3_exec(database, sql, NULL, NULL, NULL))
		fail(sql);
}

__attribute__((noinline)) static sqlite3_stmt *statement(void)
{
	static sqlite3_stmt *kept;
	if (kept && keep)
		return kept;
	sqlite3_finalize(kept);
	if (sqlite3_prepare_v2(database,
			       "INSERT INTO visits(path, day, hits, bytes) VALUES(?, ?, 1, ?) "
			       "ON CONFLICT(path, day) DO UPDATE SET hits = hits + 1, "
			       "bytes = bytes + excluded.bytes",
			       -1, &kept, NULL))
		fail("prepare");
	return kept;
}

__attribute__((noinline)) static void count_visit(const struct record *record)
{
	sqlite3_stmt *how = statement();
	sqlite3_bind_text(how, 1, record->path, -1, SQLITE_STATIC);
	sqlite3_bind_int64(how, 2, record->day);
	sqlite3_bind_int64(how, 3, record->bytes);
	if (sqlite3_step(how) != SQLITE_DONE)
		fail("step");
	sqlite3_reset(how);
}

void store_batch(const struct batch *batch);
__attribute__((noinline)) void store_batch(const struct batch *batch)
{
	execute("BEGIN");
	for (int i = 0; i < BATCH; i++)
		count_visit(&batch->records[i]);
	execute("COMMIT");
}

static void store(long batches)
{
	for (long i = 0; i < batches; i++) {
		pthread_mutex_lock(&lock);
		while (put_in == taken)
			pthread_cond_wait(&changed, &lock);
		pthread_mutex_unlock(&lock);
		store_batch(&queue[taken % BATCHES_WAITING]);
		pthread_mutex_lock(&lock);
		taken++;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&lock);
	}
}

int main(int argc, char **argv)
{
	long batches = argc > 1 ? atol(argv[1]) : 1000;
	pthread_t reader;
	struct timespec begin, end;
	keep = argc > 2 && strcmp(argv[2], "keep") == 0;
	write_log();
	if (sqlite3_open(":memory:", &database))
		fail("open");
	execute("CREATE TABLE visits(path TEXT, day INTEGER, hits INTEGER, bytes INTEGER, "
		"PRIMARY KEY(path, day)) WITHOUT ROWID");
	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (pthread_create(&reader, NULL, read_lines, &batches))
		fail("thread");
	store(batches);
	clock_gettime(CLOCK_MONOTONIC, &end);
	pthread_join(reader, NULL);
	printf("%ld batches, %.2f us each\n", batches,
	       ((double)(end.tv_sec - begin.tv_sec) * 1e6 +
		(double)(end.tv_nsec - begin.tv_nsec) / 1e3) /
		       (double)batches);
	return 0;
}
