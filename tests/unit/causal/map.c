/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Maps in the process: which files are taken for one, what is found in them, and how they come from
 * a server that may answer late, wrongly, or not at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "causal/causal.h"
#include "causal/map.h"
#include "causal/map_file.h"
#include "common/array.h"

struct image {
	struct causal_map_header header;
	uint32_t words[64];
};

/* Three ranges: targets 5; none; 6 in 5. */
static size_t image_make(struct image *image, uint64_t base)
{
	static const uint32_t words[] = {0, 16, 40, 1, 0, 3, 0, 5, 0, 6, 5, 0};

	*image = (struct image){.header = {.magic = CAUSAL_MAP_MAGIC,
					   .version = CAUSAL_MAP_VERSION,
					   .count = 3,
					   .id_count = 6,
					   .base = base,
					   .end = base + 50}};
	memcpy(image->words, words, sizeof(words));
	return sizeof(image->header) + sizeof(words);
}

static const char *ids_text(const uint32_t *ids)
{
	static char text[64];
	size_t used = 0;

	for (text[0] = '\0'; *ids; ids++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %u", *ids);
	return text;
}

static void ranges_are_found(void **state)
{
	static const struct {
		uint64_t offset;
		const char *ids;
	} expected[] = {{0, ""},    {999, ""},      {1000, " 5"},   {1015, " 5"}, {1016, ""},
			{1039, ""}, {1040, " 6 5"}, {1049, " 6 5"}, {1050, ""},   {UINT64_MAX, ""}};
	struct image image;

	(void)state;
	assert_true(causal_map_file_is_valid(&image, image_make(&image, 1000)));
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		assert_string_equal(
			ids_text(causal_map_file_find_targets(&image.header, expected[i].offset)),
			expected[i].ids);
}

static void every_search_is_right(void **state)
{
	enum { MOST = 70 };
	static union {
		struct causal_map_header header;
		uint32_t words[sizeof(struct causal_map_header) / 4 + 4 * MOST + 1];
	} image;

	(void)state;
	for (uint32_t count = 1; count <= MOST; count++) {
		uint32_t *starts = (uint32_t *)(&image.header + 1);

		image.header = (struct causal_map_header){.magic = CAUSAL_MAP_MAGIC,
							  .version = CAUSAL_MAP_VERSION,
							  .count = count,
							  .id_count = 2 * count + 1,
							  .end = 3ull * count};
		for (uint32_t i = 0; i < count; i++) {
			starts[i] = 3 * i;
			starts[count + i] = 2 * i + 1;
		}
		starts[2 * count] = 0;
		for (uint32_t i = 0; i < count; i++) {
			starts[2 * count + 2 * i + 1] = i + 1;
			starts[2 * count + 2 * i + 2] = 0;
		}
		assert_true(causal_map_file_is_valid(
			&image, sizeof(image.header) + (4ull * count + 1) * sizeof(uint32_t)));
		for (uint32_t offset = 0; offset < 3 * count; offset++)
			assert_int_equal(*causal_map_file_find_targets(&image.header, offset),
					 offset / 3 + 1);
	}
}

static void what_leads_outside_is_no_map(void **state)
{
	struct image image;
	size_t size;

	(void)state;
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		size = image_make(&image, 1000);                                                   \
		change;                                                                            \
		assert_false(causal_map_file_is_valid(&image, size));                              \
	} while (0)
	REFUSED(size = 0);
	REFUSED(size--);
	REFUSED(size += 4);
	REFUSED(image.header.magic++);
	REFUSED(image.header.version++);
	REFUSED(image.header.count = 0);
	REFUSED(image.header.count = UINT32_MAX);
	REFUSED(image.header.id_count = 0);
	REFUSED(image.header.id_count++);
	REFUSED(image.header.end = 1000);
	REFUSED(image.words[1] = 0);              /* starts do not rise */
	REFUSED(image.words[2] = 16);             /* nor here */
	REFUSED(image.words[3] = 6);              /* a list behind the ids */
	REFUSED(image.words[6] = 1);              /* the empty list is not */
	REFUSED(image.words[11] = 1);             /* the last list has no end */
	REFUSED(image.words[7] = CAUSAL_TARGETS); /* no target */
}

/* ---- with a server ---- */

enum server_mood { ANSWERS, SAYS_NOTHING_THERE, GIVES_NO_MAP, ENDS, IS_SLOW };

struct server {
	char directory[64], map[96];
	int listener;
	pthread_t thread;
	enum server_mood mood;
	_Atomic bool may_answer;
	unsigned asked;
	bool right_file;
};

static struct runtime runtime;
static struct causal_control *control;

/* What the map says about. */
__attribute__((noinline, aligned(64))) static int mapped_function(int x)
{
	__asm__ volatile(".skip 64, 0x90");
	return x;
}

static uint64_t offset_in_program(uint64_t address)
{
	FILE *file = fopen("/proc/self/maps", "r");
	uint64_t start, end, offset, found = 0;
	char line[512];

	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
		    address >= start && address < end)
			found = address - start + offset;
	}
	fclose(file);
	return found;
}

static void server_answer(struct server *server, int client)
{
	struct causal_request request;
	struct causal_answer answer = {.status = -ENOENT};
	struct stat program;

	while (recv(client, &request, sizeof(request), 0) == sizeof(request)) {
		server->asked++;
		if (server->mood == ENDS)
			return;
		stat("/proc/self/exe", &program);
		answer.status = -ENOENT;
		if (request.kind == CAUSAL_REQUEST_MAP && request.inode == program.st_ino) {
			server->right_file =
				request.pid == (uint32_t)getpid() && request.path[0] == '/';
			while (server->mood == IS_SLOW && !server->may_answer)
				usleep(1000);
			if (server->mood != SAYS_NOTHING_THERE)
				answer.status = 0;
			snprintf(answer.map, sizeof(answer.map), "%s", server->map);
		}
		send(client, &answer, sizeof(answer), 0);
	}
}

static void *server_run(void *argument)
{
	struct server *server = argument;
	int client = accept(server->listener, NULL, NULL);

	server_answer(server, client);
	close(client);
	return NULL;
}

static void server_start(struct server *server, enum server_mood mood)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct image image;
	FILE *file;

	*server = (struct server){.mood = mood};
	snprintf(server->directory, sizeof(server->directory), "/tmp/kymo-map-XXXXXX");
	assert_non_null(mkdtemp(server->directory));
	snprintf(server->map, sizeof(server->map), "%s/map", server->directory);
	size_t size = image_make(&image, offset_in_program((uint64_t)mapped_function));
	file = fopen(server->map, "w");
	assert_int_equal(fwrite(&image, 1, mood == GIVES_NO_MAP ? size - 1 : size, file),
			 mood == GIVES_NO_MAP ? size - 1 : size);
	fclose(file);
	server->listener = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", server->directory);
	assert_int_equal(bind(server->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->listener, 1), 0);
	assert_int_equal(pthread_create(&server->thread, NULL, server_run, server), 0);
}

/* The process connects once, and lets go at its end only. */
static void server_end(struct server *server)
{
	char path[96];

	causal_map_reset_after_fork();
	for (int fd = 3; fd < 64; fd++) {
		if (fd != server->listener)
			shutdown(fd, SHUT_RDWR);
	}
	pthread_join(server->thread, NULL);
	close(server->listener);
	snprintf(path, sizeof(path), "%s/socket", server->directory);
	unlink(path);
	unlink(server->map);
	rmdir(server->directory);
}

static void rounds(unsigned count)
{
	while (count--)
		causal_map_request_and_publish(&runtime);
}

static const char *targets_of(const void *address)
{
	return ids_text(causal_map_find_targets_of_address((uint64_t)address));
}

/* Each scenario is a process of its own: the first answer about a file is the last one. */
static void in_child(void (*scenario)(void))
{
	pid_t child = fork();
	int status;

	if (!child) {
		control = calloc(1, sizeof(*control));
		runtime.modules.generation = 1;
		atomic_store(&kymo_causal, control);
		assert_int_equal(mapped_function(1), 1);
		scenario();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* cmocka's assertions jump to the parent's frames. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                    \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void answered(void)
{
	struct server server;

	server_start(&server, ANSWERS);
	REQUIRE(!*targets_of((const void *)mapped_function));
	rounds(1); /* not started */
	REQUIRE(!*targets_of((const void *)mapped_function));
	causal_map_start_requests(&runtime, server.directory);
	for (int i = 0; i < 1000 && !control->maps; i++)
		rounds(1);
	rounds(1);
	REQUIRE(!strcmp(targets_of((const void *)mapped_function), " 5"));
	REQUIRE(!strcmp(targets_of((const char *)(uintptr_t)mapped_function + 40), " 6 5"));
	REQUIRE(!*targets_of((const char *)(uintptr_t)mapped_function + 50));
	REQUIRE(!*targets_of((const void *)printf));
	REQUIRE(!*targets_of(NULL));
	REQUIRE(server.right_file);
	/* New modules change nothing about it, nor do forks. */
	runtime.modules.generation++;
	rounds(3);
	REQUIRE(control->maps == 1 && control->maps_pending == 0);
	causal_map_reset_after_fork();
	REQUIRE(!strcmp(targets_of((const void *)mapped_function), " 5"));
	server_end(&server);
}

static void refused(enum server_mood mood)
{
	struct server server;

	server_start(&server, mood);
	causal_map_start_requests(&runtime, server.directory);
	for (int i = 0; i < 200; i++)
		rounds(1);
	REQUIRE(!*targets_of((const void *)mapped_function));
	REQUIRE(!control->maps && !control->maps_pending);
	REQUIRE(mood != ENDS || server.asked == 1);
	server_end(&server);
}

static void nothing_there(void)
{
	refused(SAYS_NOTHING_THERE);
}

static void no_map(void)
{
	refused(GIVES_NO_MAP);
}

static void server_gone(void)
{
	refused(ENDS);
}

static void slow(void)
{
	struct server server;

	server_start(&server, IS_SLOW);
	causal_map_start_requests(&runtime, server.directory);
	for (int i = 0; i < 1000 && !control->maps_pending; i++)
		rounds(1);
	rounds(20); /* none of them waits for it */
	REQUIRE(!*targets_of((const void *)mapped_function));
	REQUIRE(control->maps_pending == 1);
	server.may_answer = true;
	for (int i = 0; i < 10000 && !control->maps; i++)
		rounds(1);
	rounds(1);
	REQUIRE(!strcmp(targets_of((const void *)mapped_function), " 5"));
	REQUIRE(!control->maps_pending);
	server_end(&server);
}

static void nobody(void)
{
	causal_map_start_requests(&runtime, "/nonexistent");
	rounds(10);
	REQUIRE(!*targets_of((const void *)mapped_function));
	REQUIRE(!control->maps_pending);
}

#define SCENARIO(name)                                                                             \
	static void name##_in_process(void **state)                                                \
	{                                                                                          \
		(void)state;                                                                       \
		in_child(name);                                                                    \
	}
SCENARIO(answered)
SCENARIO(nothing_there)
SCENARIO(no_map)
SCENARIO(server_gone)
SCENARIO(slow)
SCENARIO(nobody)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_found),
		cmocka_unit_test(every_search_is_right),
		cmocka_unit_test(what_leads_outside_is_no_map),
		cmocka_unit_test(answered_in_process),
		cmocka_unit_test(nothing_there_in_process),
		cmocka_unit_test(no_map_in_process),
		cmocka_unit_test(server_gone_in_process),
		cmocka_unit_test(slow_in_process),
		cmocka_unit_test(nobody_in_process),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
