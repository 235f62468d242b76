/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Who pays for a wait in causal profiling, for every way to wait: a thread or process waits, the
 * session's delay grows meanwhile by a known amount, and it is woken. Who wakes it pays before it
 * does; who was woken by the session pays nothing, who was woken by time pays as well. What is
 * counted is what the session really paused, less what it overslept: once or twice the amount.
 *
 * The program plays the part of another process of the session: it maps the control file itself.
 * Without one it does the same waits and counts nothing.
 *
 * usage: causal_credits [NAME...]
 *        causal_credits --layout      where things lie in the control file
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <threads.h>

#include "check.h"
#include "kymo/causal.h"

#define AMOUNT_MS 40

static struct causal_control *control;
/* The thread that is about to wait, and the child that it waits for; shared with children. */
static _Atomic int *waiters;

/* ---- the session ---- */

static void map_control(void)
{
	const char *directory = getenv("KYMO_CAUSAL");
	char path[4096];
	int fd;

	if (!directory)
		return;
	snprintf(path, sizeof(path), "%s/control", directory);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(control != MAP_FAILED);
	close(fd);
}

static void grow(void)
{
	if (control)
		control->global_delay += control->ticks_per_second / 1000 * AMOUNT_MS;
}

/* In milliseconds. */
static double paid(void)
{
	if (!control)
		return 0;
	return (double)(int64_t)(control->paid - control->overslept) * 1e3 /
	       (double)control->ticks_per_second;
}

static void ready(void)
{
	waiters[0] = (int)syscall(SYS_gettid);
}

/* It sleeps: in what it waits for, for there is nothing else to wait for. */
static void until_sleeping(int id)
{
	char path[64], text[512];

	snprintf(path, sizeof(path), "/proc/%d/stat", id);
	for (char *state = text; *state != 'S';) {
		int fd = open(path, O_RDONLY);
		ssize_t length = read(fd, text, sizeof(text) - 1);

		CHECK(length > 0);
		close(fd);
		text[length] = 0;
		state = strrchr(text, ')') + 2;
		sched_yield();
	}
}

/* A child, or a thread, is there before who made it knows: then that may still be making it. Nor
 * does the one that is waited for wait yet when the other does. */
static void until_it_waits(bool with_other)
{
	while (!waiters[0] || (with_other && !waiters[1]))
		sched_yield();
	until_sleeping(waiters[0]);
	if (with_other)
		until_sleeping(waiters[1]);
}

/* ---- ways to wait: what waits, what wakes ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rw_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static mtx_t mtx;
static cnd_t cnd;
static sem_t semaphore;
static bool flag;
static _Atomic uint32_t word;
static int ends[2], listener, queue, semaphores, poller;
static mqd_t messages;
static struct sockaddr_in address = {.sin_family = AF_INET};
static struct timespec later;

static const struct timespec *in_ms(clockid_t clock, uint64_t ms)
{
	uint64_t ns = check_clock_ns(clock) + ms * NS_PER_MS;

	later.tv_sec = (time_t)(ns / 1000000000u);
	later.tv_nsec = (long)(ns % 1000000000u);
	return &later;
}

static void lock_mutex(void)
{
	CHECK(!pthread_mutex_lock(&mutex));
}

static void unlock_mutex(void)
{
	CHECK(!pthread_mutex_unlock(&mutex));
}

static void lock_mutex_timed(void)
{
	CHECK(!pthread_mutex_timedlock(&mutex, in_ms(CLOCK_REALTIME, 60000)));
}

static void lock_mutex_too_long(void)
{
	CHECK(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, in_ms(CLOCK_MONOTONIC, 300)) ==
	      ETIMEDOUT);
}

static void wait_condition(void)
{
	lock_mutex();
	while (!flag)
		CHECK(!pthread_cond_wait(&condition, &mutex));
	unlock_mutex();
}

static void wait_condition_timed(void)
{
	lock_mutex();
	in_ms(CLOCK_MONOTONIC, 60000);
	while (!flag)
		CHECK(!pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &later));
	unlock_mutex();
}

static void signal_condition(void)
{
	lock_mutex();
	flag = true;
	CHECK(!pthread_cond_signal(&condition));
	unlock_mutex();
}

static void wait_condition_too_long(void)
{
	lock_mutex();
	CHECK(pthread_cond_timedwait(&condition, &mutex, in_ms(CLOCK_REALTIME, 300)) == ETIMEDOUT);
	unlock_mutex();
}

static void wait_cnd(void)
{
	CHECK(mtx_lock(&mtx) == thrd_success);
	while (!flag)
		CHECK(cnd_wait(&cnd, &mtx) == thrd_success);
	CHECK(mtx_unlock(&mtx) == thrd_success);
}

static void signal_cnd(void)
{
	CHECK(mtx_lock(&mtx) == thrd_success);
	flag = true;
	CHECK(cnd_broadcast(&cnd) == thrd_success);
	CHECK(mtx_unlock(&mtx) == thrd_success);
}

static void lock_mtx(void)
{
	CHECK(mtx_lock(&mtx) == thrd_success);
}

static void unlock_mtx(void)
{
	CHECK(mtx_unlock(&mtx) == thrd_success);
}

static void lock_to_read(void)
{
	CHECK(!pthread_rwlock_rdlock(&rw_lock));
}

static void lock_to_write(void)
{
	CHECK(!pthread_rwlock_wrlock(&rw_lock));
}

static void unlock_rw(void)
{
	CHECK(!pthread_rwlock_unlock(&rw_lock));
}

static void meet(void)
{
	int result = pthread_barrier_wait(&barrier);

	CHECK(!result || result == PTHREAD_BARRIER_SERIAL_THREAD);
}

static void wait_semaphore(void)
{
	CHECK(!sem_wait(&semaphore));
}

static void wait_semaphore_timed(void)
{
	CHECK(!sem_timedwait(&semaphore, in_ms(CLOCK_REALTIME, 60000)));
}

static void wait_semaphore_too_long(void)
{
	CHECK(sem_timedwait(&semaphore, in_ms(CLOCK_REALTIME, 300)) == -1 && errno == ETIMEDOUT);
}

static void post_semaphore(void)
{
	CHECK(!sem_post(&semaphore));
}

static void wait_futex(void)
{
	CHECK(!syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0));
}

static void wake_futex(void)
{
	CHECK(syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
}

static void read_byte(void)
{
	char byte;

	CHECK(read(ends[0], &byte, 1) == 1);
}

static void write_byte(void)
{
	CHECK(write(ends[1], "x", 1) == 1);
}

static void receive_byte(void)
{
	char byte;

	CHECK(recv(ends[0], &byte, 1, 0) == 1);
}

static void send_byte(void)
{
	CHECK(send(ends[1], "x", 1, 0) == 1);
}

static void fill_pipe(void)
{
	static char block[65536];

	CHECK(write(ends[1], block, sizeof(block)) == sizeof(block));
}

static void drain_pipe(void)
{
	static char block[65536];

	CHECK(read(ends[0], block, sizeof(block)) == sizeof(block));
}

/* Of two, one of which has nothing to say. */
static void poll_byte(void)
{
	struct pollfd fds[2] = {{.fd = ends[1]}, {.fd = ends[0], .events = POLLIN}};

	CHECK(poll(fds, 2, -1) == 1);
	read_byte();
}

static void poll_too_long(void)
{
	struct pollfd fds[1] = {{.fd = ends[0], .events = POLLIN}};

	CHECK(poll(fds, 1, 300) == 0);
}

static void select_byte(void)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(ends[0], &set);
	CHECK(select(ends[0] + 1, &set, NULL, NULL, NULL) == 1);
	read_byte();
}

static void epoll_byte(void)
{
	struct epoll_event event;

	CHECK(epoll_wait(poller, &event, 1, -1) == 1);
	read_byte();
}

static void read_event(void)
{
	uint64_t count;

	CHECK(read(ends[0], &count, sizeof(count)) == sizeof(count));
}

static void write_event(void)
{
	uint64_t one = 1;

	CHECK(write(ends[0], &one, sizeof(one)) == sizeof(one));
}

static void accept_connection(void)
{
	int fd = accept(listener, NULL, NULL);

	CHECK(fd >= 0);
	close(fd);
}

static void connect_to_listener(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(!connect(fd, (void *)&address, sizeof(address)));
	close(fd);
}

static void receive_datagram(void)
{
	char byte;

	CHECK(recvfrom(listener, &byte, 1, 0, NULL, NULL) == 1);
}

static void send_datagram(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK(sendto(fd, "x", 1, 0, (void *)&address, sizeof(address)) == 1);
	close(fd);
}

static void receive_message(void)
{
	char text[16];

	CHECK(mq_receive(messages, text, sizeof(text), NULL) == 1);
}

static void send_message(void)
{
	CHECK(!mq_send(messages, "x", 1, 0));
}

struct letter {
	long type;
	char text[1];
};

static void receive_letter(void)
{
	struct letter letter;

	CHECK(msgrcv(queue, &letter, 1, 0, 0) == 1);
}

static void send_letter(void)
{
	CHECK(!msgsnd(queue, &(struct letter){1, "x"}, 1, 0));
}

static void take_one(void)
{
	CHECK(!semop(semaphores, &(struct sembuf){.sem_op = -1}, 1));
}

static void give_one(void)
{
	CHECK(!semop(semaphores, &(struct sembuf){.sem_op = 1}, 1));
}

static void await_signal(void)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!sigwait(&set, &number) && number == SIGUSR1);
}

static void send_signal(void)
{
	CHECK(!kill(getpid(), SIGUSR1));
}

static void sleep_a_while(void)
{
	usleep(300000);
}

static void sleep_until(void)
{
	CHECK(!clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, in_ms(CLOCK_MONOTONIC, 300), NULL));
}

static void read_timer(void)
{
	uint64_t count;

	CHECK(read(ends[0], &count, sizeof(count)) == sizeof(count));
}

static void wait_for_child(void)
{
	int status, child = fork();

	if (!child) {
		waiters[1] = getpid();
		read_byte();
		_exit(3);
	}
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 3);
}

static void *wait_in_thread(void *argument)
{
	waiters[1] = (int)syscall(SYS_gettid);
	read_byte();
	return argument;
}

static void join_thread(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, wait_in_thread, NULL));
	CHECK(!pthread_join(thread, NULL));
}

static void lock_file(void)
{
	CHECK(!flock(listener, LOCK_EX));
}

static void unlock_file(void)
{
	CHECK(!flock(ends[0], LOCK_UN));
}

/* ---- what each needs ---- */

static void make_pipe(void)
{
	CHECK(!pipe(ends));
}

static void make_full_pipe(void)
{
	make_pipe();
	fill_pipe();
}

static void make_pair(void)
{
	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
}

static void make_connection(void)
{
	socklen_t size = sizeof(address);
	int server = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = 0;
	CHECK(!bind(server, (void *)&address, sizeof(address)) && !listen(server, 1));
	CHECK(!getsockname(server, (void *)&address, &size));
	ends[1] = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!connect(ends[1], (void *)&address, sizeof(address)));
	ends[0] = accept(server, NULL, NULL);
	CHECK(ends[0] >= 0);
	close(server);
}

static void make_named(void)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "kymo-credits-%d", getpid());
	CHECK(!bind(server, (void *)&name, sizeof(name)) && !listen(server, 1));
	ends[1] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(!connect(ends[1], (void *)&name, sizeof(name)));
	ends[0] = accept(server, NULL, NULL);
	CHECK(ends[0] >= 0);
	close(server);
}

static void make_listener(void)
{
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = 0;
	listener = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(!bind(listener, (void *)&address, sizeof(address)) && !listen(listener, 1));
	CHECK(!getsockname(listener, (void *)&address, &size));
}

static void make_port(void)
{
	socklen_t size = sizeof(address);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	address.sin_port = 0;
	listener = socket(AF_INET, SOCK_DGRAM, 0);
	CHECK(!bind(listener, (void *)&address, sizeof(address)));
	CHECK(!getsockname(listener, (void *)&address, &size));
}

static void make_poller(void)
{
	make_pipe();
	poller = epoll_create1(0);
	CHECK(!epoll_ctl(poller, EPOLL_CTL_ADD, ends[0],
			 &(struct epoll_event){.events = EPOLLIN, .data.ptr = &poller}));
}

static void make_event(void)
{
	ends[0] = eventfd(0, 0);
	CHECK(ends[0] >= 0);
}

static void make_timer(void)
{
	struct itimerspec time = {.it_value.tv_nsec = 300 * 1000000};

	ends[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(!timerfd_settime(ends[0], 0, &time, NULL));
}

static void make_messages(void)
{
	struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 16};
	char name[64];

	snprintf(name, sizeof(name), "/kymo-credits-%d", getpid());
	messages = mq_open(name, O_RDWR | O_CREAT, 0600, &attributes);
	CHECK(messages >= 0);
	mq_unlink(name);
}

static void make_queue(void)
{
	queue = msgget(IPC_PRIVATE, 0600);
	CHECK(queue >= 0);
}

static void remove_queue(void)
{
	CHECK(!msgctl(queue, IPC_RMID, NULL));
}

static void make_semaphores(void)
{
	semaphores = semget(IPC_PRIVATE, 1, 0600);
	CHECK(semaphores >= 0);
}

static void remove_semaphores(void)
{
	CHECK(!semctl(semaphores, 0, IPC_RMID));
}

static void make_locked_file(void)
{
	char path[] = "/tmp/kymo-credits-XXXXXX", again[64];

	ends[0] = mkstemp(path);
	CHECK(ends[0] >= 0 && !flock(ends[0], LOCK_EX));
	snprintf(again, sizeof(again), "/proc/self/fd/%d", ends[0]);
	listener = open(again, O_RDONLY);
	CHECK(listener >= 0);
	unlink(path);
}

static void block_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
}

/* ---- all of them ---- */

static const struct row {
	const char *name;
	void (*make)(void), (*wait)(void), (*wake)(void), (*destroy)(void);
} rows[] = {
	{"mutex", lock_mutex, lock_mutex, unlock_mutex, unlock_mutex},
	{"mutex-timed", lock_mutex, lock_mutex_timed, unlock_mutex, unlock_mutex},
	{"mutex-too-long", lock_mutex, lock_mutex_too_long, NULL, unlock_mutex},
	{"condition", NULL, wait_condition, signal_condition, NULL},
	{"condition-timed", NULL, wait_condition_timed, signal_condition, NULL},
	{"condition-too-long", NULL, wait_condition_too_long, NULL, NULL},
	{"cnd", NULL, wait_cnd, signal_cnd, NULL},
	{"mtx", lock_mtx, lock_mtx, unlock_mtx, unlock_mtx},
	{"readers", lock_to_write, lock_to_read, unlock_rw, unlock_rw},
	{"writers", lock_to_read, lock_to_write, unlock_rw, unlock_rw},
	{"barrier", NULL, meet, meet, NULL},
	{"semaphore", NULL, wait_semaphore, post_semaphore, NULL},
	{"semaphore-timed", NULL, wait_semaphore_timed, post_semaphore, NULL},
	{"semaphore-too-long", NULL, wait_semaphore_too_long, NULL, NULL},
	{"futex", NULL, wait_futex, wake_futex, NULL},
	{"pipe", make_pipe, read_byte, write_byte, NULL},
	{"full-pipe", make_full_pipe, fill_pipe, drain_pipe, NULL},
	{"pair", make_pair, receive_byte, send_byte, NULL},
	{"named", make_named, read_byte, write_byte, NULL},
	{"connection", make_connection, receive_byte, send_byte, NULL},
	{"poll", make_pipe, poll_byte, write_byte, NULL},
	{"poll-connection", make_connection, poll_byte, send_byte, NULL},
	{"poll-too-long", make_pipe, poll_too_long, NULL, NULL},
	{"select", make_pipe, select_byte, write_byte, NULL},
	{"epoll", make_poller, epoll_byte, write_byte, NULL},
	{"event", make_event, read_event, write_event, NULL},
	{"accept", make_listener, accept_connection, connect_to_listener, NULL},
	{"datagram", make_port, receive_datagram, send_datagram, NULL},
	{"messages", make_messages, receive_message, send_message, NULL},
	{"queue", make_queue, receive_letter, send_letter, remove_queue},
	{"semaphores", make_semaphores, take_one, give_one, remove_semaphores},
	{"signal", NULL, await_signal, send_signal, NULL},
	{"sleep", NULL, sleep_a_while, NULL, NULL},
	{"sleep-until", NULL, sleep_until, NULL, NULL},
	{"timer", make_timer, read_timer, NULL, NULL},
	{"child", make_pipe, wait_for_child, write_byte, NULL},
	{"thread", make_pipe, join_thread, write_byte, NULL},
	{"file-lock", make_locked_file, lock_file, unlock_file, NULL},
};

static void *wait_as(void *argument)
{
	const struct row *row = argument;

	ready();
	row->wait();
	return NULL;
}

static void measure(const struct row *row)
{
	double begin, at_wake, end;
	pthread_t thread;

	flag = false;
	waiters[0] = waiters[1] = 0;
	if (row->make)
		row->make();
	CHECK(!pthread_create(&thread, NULL, wait_as, (void *)row));
	until_it_waits(row->wait == wait_for_child || row->wait == join_thread);
	begin = paid();
	grow();
	if (row->wake)
		row->wake();
	at_wake = paid() - begin;
	CHECK(!pthread_join(thread, NULL));
	end = paid() - begin;
	if (row->destroy)
		row->destroy();
	if (control)
		printf("%s: %s %.1f %.1f\n", row->name, row->wake ? "session" : "time", at_wake,
		       end);
}

static int print_layout(void)
{
	printf("version %u\n", CAUSAL_VERSION);
	printf("size %zu\nexperiment %zu\nstart_delay %zu\nexpires %zu\ndelay %zu\ncounters %zu\n"
	       "points %zu\npoint_size %zu\npoint_count %u\n",
	       sizeof(struct causal_control), offsetof(struct causal_control, experiment),
	       offsetof(struct causal_control, start_delay),
	       offsetof(struct causal_control, expires),
	       offsetof(struct causal_control, global_delay),
	       offsetof(struct causal_control, samples), offsetof(struct causal_control, points),
	       sizeof(struct causal_point), CAUSAL_POINTS);
	return 0;
}

int main(int count, char **names)
{
	if (count == 2 && !strcmp(names[1], "--layout"))
		return print_layout();
	waiters = mmap(NULL, 2 * sizeof(*waiters), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(waiters != MAP_FAILED);
	map_control();
	block_signal();
	usleep(1000); /* from here the thread's own delay is the session's */
	CHECK(!pthread_barrier_init(&barrier, NULL, 2) && !sem_init(&semaphore, 0, 0));
	CHECK(mtx_init(&mtx, mtx_plain) == thrd_success && cnd_init(&cnd) == thrd_success);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool wanted = count < 2;
		for (int name = 1; name < count; name++)
			wanted |= !strcmp(names[name], rows[i].name);
		if (wanted)
			measure(&rows[i]);
	}
	return check_passed("causal_credits");
}
