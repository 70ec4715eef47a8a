/* SPDX-License-Identifier: MIT
 * The threads of loops: every region has its caller and at most the threads it asked for, awake or asleep, while the
 * team grows and shrinks; other threads, nested regions and forked children run serially; signals are blocked.
 */
#include "tensor/team.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define MS 1000000L
#define PATIENCE 5000 /* milliseconds */

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){.tv_nsec = ms * MS}, NULL);
}

struct crew {
	_Atomic int inside, most, runs, callers, next, done;
	int items;
	_Atomic bool others;
};

static void claim(void *arg, int me)
{
	struct crew *c = arg;
	int inside = ++c->inside, most = c->most;

	while (inside > most && !atomic_compare_exchange_weak(&c->most, &most, inside))
		;
	c->runs++;
	if (!me)
		c->callers++;
	else
		c->others = true;
	while (c->next++ < c->items)
		c->done++;
	c->inside--;
}

static void test_regions(void)
{
	static const int sizes[] = {2, 8, 3, 40, 1, 2, 5, 4};

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		int n = sizes[s];

		CASE("%d threads", n);
		CHECK(ql_team_ready(n) == n, "%d are there", ql_team_ready(n));
		for (int round = 0; round < 2000; round++) {
			struct crew c = {.items = round % 70};
			int asked = 1 + round % (n + 2);

			if (round % 400 == 0)
				pause_ms(2); /* the threads are asleep */
			ql_team_run(asked, claim, &c);
			CHECK(c.done == c.items && c.callers == 1 && !c.inside, "%d of %d items, %d callers, %d inside",
				c.done, c.items, c.callers, c.inside);
			CHECK(c.most <= asked && c.most <= n && c.runs >= 1, "%d threads inside, %d asked", c.most,
				asked);
		}
	}
}

/* The caller waits until another thread is inside. */
static void meet(void *arg, int me)
{
	struct crew *c = arg;

	if (me)
		c->others = true;
	for (int i = 0; !c->others && i < PATIENCE; i++)
		pause_ms(1);
}

static void test_help(void)
{
	CASE("threads come, awake or asleep");
	CHECK(ql_team_ready(2) == 2, "no thread");
	for (int i = 0; i < 20; i++) {
		struct crew c = {.items = 0};

		ql_team_run(2, meet, &c);
		CHECK(c.others, "none came in round %d", i);
		pause_ms(i % 2);
	}
}

/* A thread that was inside is still there when the caller has nothing left: the region ends after it. */
static void slow_other(void *arg, int me)
{
	struct crew *c = arg;

	meet(arg, me);
	if (me) {
		pause_ms(20);
		c->done++;
	}
}

static void test_wait(void)
{
	bool serial = false;

	CASE("a region waits for the threads inside, and small loops run serially for a while then");
	for (int i = 0; i < 20 && !serial; i++) { /* again: this thread may sleep as well */
		struct crew c = {.items = 0};

		ql_team_run(2, slow_other, &c);
		serial = !ql_team_pays(200000);
		CHECK(c.others && c.done == 1, "%d ended", c.done);
	}
	CHECK(serial && ql_team_pays(100 * MS), "they do not");
	pause_ms(25);
	CHECK(ql_team_pays(200000), "they do for ever");
}

static void nested(void *arg, int me)
{
	struct crew c = {.items = 10};

	ql_team_run(2, claim, &c);
	if (c.runs != 1 || c.done != 10)
		((struct crew *)arg)->others = true;
	(void)me;
}

static void *of_another_thread(void *arg)
{
	struct crew *c = arg;

	ql_team_run(2, claim, c);
	c->others = c->others || ql_team_pays(100 * MS) || ql_team_pin(true);
	return NULL;
}

static void test_serial(void)
{
	struct crew c = {.items = 0}, other = {.items = 10};
	pthread_t thread;

	CASE("a region inside a region");
	ql_team_run(2, nested, &c);
	CHECK(!c.others, "was shared");

	CASE("a region of a thread that does not own the team");
	if (!CHECK(!pthread_create(&thread, NULL, of_another_thread, &other), "no thread"))
		return;
	pthread_join(thread, NULL);
	CHECK(!other.others && other.runs == 1 && other.done == 10, "%d runs, %d items", other.runs, other.done);
}

struct mask {
	struct crew crew;
	_Atomic int blocked, faults;
};

static void read_mask(void *arg, int me)
{
	struct mask *m = arg;
	sigset_t set;

	if (me) {
		pthread_sigmask(SIG_SETMASK, NULL, &set);
		m->blocked = sigismember(&set, SIGINT) && sigismember(&set, SIGTERM) && sigismember(&set, SIGCHLD);
		m->faults = sigismember(&set, SIGSEGV) || sigismember(&set, SIGFPE);
	}
	meet(&m->crew, me);
}

static void test_signals(void)
{
	struct mask m = {.crew = {.items = 0}};
	sigset_t set;

	CASE("signals");
	ql_team_run(2, read_mask, &m);
	pthread_sigmask(SIG_SETMASK, NULL, &set);
	CHECK(m.crew.others && m.blocked && !m.faults && !sigismember(&set, SIGINT), "blocked %d, faults %d", m.blocked,
		m.faults);
}

static void test_pays(void)
{
	int calls = 0;

	CASE("work that pays");
	ql_team_ready(2);
	CHECK(!ql_team_pays(0) && ql_team_pays(200000), "0 or 200000 ns");
	pause_ms(5);
	while (calls < 1000 && !ql_team_pays(15000))
		calls++;
	CHECK(calls < 1000, "loops of 15 microseconds that follow each other wake the threads after %d", calls);
}

static int allowed_processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? -1 : CPU_COUNT(&set);
}

static void count_processors(void *arg, int me)
{
	struct crew *c = arg;

	if (me)
		c->done = allowed_processors();
	meet(arg, me);
}

static void test_pin(void)
{
	int all = allowed_processors();

	CASE("pinned threads");
	for (int i = 0; i < 50; i++) {
		struct crew on = {.items = 0}, off = {.items = 0};

		CHECK(ql_team_pin(true) && ql_team_pinned() && ql_team_processors() == all, "refused");
		ql_team_run(2, count_processors, &on);
		CHECK(on.done == 1 && allowed_processors() == 1, "%d and %d processors", on.done, allowed_processors());
		CHECK(ql_team_pin(false) && !ql_team_pinned(), "refused");
		ql_team_run(2, count_processors, &off);
		CHECK(off.done == all && allowed_processors() == all, "%d and %d processors", off.done,
			allowed_processors());
		pause_ms(i % 2);
	}
}

static int threads_there(void)
{
	DIR *tasks = opendir("/proc/self/task");
	int n = -2; /* . and .. */

	while (tasks && readdir(tasks))
		n++;
	if (tasks)
		closedir(tasks);
	return n;
}

static void test_shrink(void)
{
	int two = threads_there();

	CASE("threads that are not wanted end");
	CHECK(ql_team_ready(5) == 5 && threads_there() == two + 3, "%d after %d", threads_there(), two);
	CHECK(ql_team_ready(2) == 2, "no thread");
	for (int i = 0; i < PATIENCE && threads_there() != two; i++) /* /proc may still show one that has ended */
		pause_ms(1);
	CHECK(threads_there() == two, "%d after %d", threads_there(), two);
}

static void test_fork(void)
{
	int status = -1;
	pid_t child = fork();

	CASE("a forked child");
	if (!child) {
		struct crew c = {.items = 10};

		alarm(20);
		ql_team_run(ql_team_ready(2), claim, &c);
		_exit(c.runs == 1 && c.done == 10 && threads_there() == 1 ? 0 : 1);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child && !status, "status %d", status);
	test_help();
}

int main(void)
{
	test_regions();
	test_help();
	pause_ms(50); /* those of test_regions have left /proc */
	test_shrink();
	test_wait();
	test_serial();
	test_signals();
	test_pays();
	test_pin();
	test_fork();
	return check_end();
}
