/* SPDX-License-Identifier: MIT
 * The OpenMP team: how many threads the system allows, the cost of a parallel region, and pinning to processors.
 *
 * libgomp aborts the process if it cannot start a thread, and restarts threads when the team size changes. So the
 * threads of a larger team are first started and joined here as a test, and every region uses the whole team: a
 * thread without work leaves at once.
 *
 * After a region libgomp's threads spin briefly before they sleep: the layers of a network usually follow within
 * that time, and waking a thread takes 30 to 200 microseconds. Both costs and the spin time are measured when the
 * team starts.
 */
#include "tensor/team.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "tensor/base.h"

#define MOST 1024
#define STACK ((size_t)1 << 20) /* of a thread */
#define ROUNDS 4                /* of each measurement */
#define SLEEP_US 200            /* threads are asleep after this */
#define AWAKE_NS 20000          /* minimum work to share with awake threads */
#define ASLEEP_NS 60000
#define START_NS 100000     /* the first region starts the threads */
#define HELD_NS 1000000     /* after waiting this long for a thread that was not scheduled, */
#define SHY_NS 20000000     /* for this long */
#define SHY_PAYS_NS 2000000 /* share only loops with more work */
#define SHARE 3             /* minimum work per cost of a region, so that saving half of it clearly pays */

static struct {
	_Atomic bool busy; /* a region is running, or the team is changing */
	pthread_t owner;   /* the thread that owns libgomp's threads; others run loops serially */
	bool owned, forked;
	int size;                                                /* threads including the owner; 0: not started */
	int64_t awake_ns, asleep_ns, window_ns, last_ns, shy_ns; /* the last two are times */
	bool pinned;
	cpu_set_t before; /* processors that the owner may use when it is not pinned */
} team;

/* Runs before libgomp reads its environment (its constructor has the default priority). Two thousand spins take 20
 * to 90 microseconds; libgomp spins less with more threads than processors. */
__attribute__((constructor(101))) static void set_policy(void)
{
	setenv("OMP_WAIT_POLICY", "passive", 0);
	setenv("GOMP_SPINCOUNT", "2000", 0);
	setenv("OMP_STACKSIZE", "1M", 0);
}

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_owner(void)
{
	return !team.owned || pthread_equal(team.owner, pthread_self());
}

/* ---- running ---- */

static void region(int n, ql_team_fn *fn, void *arg)
{
	int64_t done = 0; /* when the caller finished */

#pragma omp parallel num_threads(n)
	{
		int me = omp_get_thread_num();

		fn(arg, me);
		if (!me)
			done = now_ns();
	}
	team.last_ns = now_ns();
	if (team.last_ns - done > HELD_NS)
		team.shy_ns = team.last_ns + SHY_NS;
}

void ql_team_run(ql_team_fn *fn, void *arg)
{
	if (team.size < 2 || !is_owner() || atomic_exchange(&team.busy, true)) {
		fn(arg, 0);
		return;
	}
	region(team.size, fn, arg);
	atomic_store(&team.busy, false);
}

/* ---- what a region costs ---- */

static int64_t forced_ns = -1;

__attribute__((constructor)) static void read_environment(void)
{
	const char *set = getenv("QUOLL_TEAM_NS");

	if (set && *set >= '0' && *set <= '9')
		forced_ns = strtoll(set, NULL, 10);
}

int64_t ql_team_pays(void)
{
	int64_t now;

	if (forced_ns >= 0)
		return forced_ns;
	if (!team.size)
		return START_NS;
	now = now_ns();
	if (now < team.shy_ns)
		return SHY_PAYS_NS;
	return now - team.last_ns < team.window_ns ? team.awake_ns : team.asleep_ns;
}

static void nothing(void *arg, int me)
{
	(void)arg;
	(void)me;
}

/* The shortest time of an empty region that starts `pause_us` after the previous one. */
static int64_t shortest(int pause_us)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		int64_t start = now_ns(), took;

		while (now_ns() - start < 1000 * (int64_t)pause_us)
			;
		start = now_ns();
		region(team.size, nothing, NULL);
		took = now_ns() - start;
		least = took < least ? took : least;
	}
	return least;
}

/* The window is the longest of a few pauses after which a region costs about as much as without a pause. */
static void measure(void)
{
	static const int pauses[] = {10, 25, 50};
	int64_t awake = shortest(0), asleep = shortest(SLEEP_US);

	team.window_ns = 0;
	for (int i = 0; i < 3 && asleep > 2 * awake; i++)
		if (shortest(pauses[i]) < (awake + asleep) / 2)
			team.window_ns = 1000 * (int64_t)pauses[i];
	team.awake_ns = ql_max64(SHARE * awake, AWAKE_NS);
	team.asleep_ns = ql_max64(SHARE * asleep, ASLEEP_NS);
}

/* ---- processors ---- */

static int read_number(const char *format, int cpu)
{
	char path[128];
	FILE *f;
	int value = -1;

	snprintf(path, sizeof(path), format, cpu);
	f = fopen(path, "re");
	if (!f)
		return cpu;
	if (fscanf(f, "%d", &value) != 1)
		value = cpu;
	fclose(f);
	return value;
}

/* The first processor of this one's core; siblings are listed as "0,4" or "0-1". */
static int core_of(int cpu)
{
	return read_number("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
}

int ql_team_processors(void)
{
	cpu_set_t set;
	long n;

	if (!team.pinned && !sched_getaffinity(0, sizeof(set), &set))
		return CPU_COUNT(&set);
	if (team.pinned)
		return CPU_COUNT(&team.before);
	n = sysconf(_SC_NPROCESSORS_ONLN);
	return n < 1 ? 1 : n > MOST ? MOST : (int)n;
}

/* Lists the allowed processors: one of each core, then the others. Returns their number. */
static int order_processors(int list[CPU_SETSIZE])
{
	bool taken[CPU_SETSIZE] = {false};
	int n = 0, rest = 0, later[CPU_SETSIZE];

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &team.before)) {
			int core = core_of(cpu);

			if (core < 0 || core >= CPU_SETSIZE || !taken[core])
				list[n++] = cpu;
			else
				later[rest++] = cpu;
			if (core >= 0 && core < CPU_SETSIZE)
				taken[core] = true;
		}
	for (int i = 0; i < rest; i++)
		list[n++] = later[i];
	return n;
}

struct binding {
	int list[CPU_SETSIZE], n;
	_Atomic bool failed;
};

/* Pins or unpins the calling thread, by `pinned`. */
static void bind_one(void *arg, int me)
{
	struct binding *b = arg;
	cpu_set_t set = team.before;

	if (team.pinned) {
		CPU_ZERO(&set);
		CPU_SET((size_t)b->list[me % b->n], &set);
	}
	if (sched_setaffinity(0, sizeof(set), &set))
		atomic_store(&b->failed, true);
}

static bool bind_threads(void)
{
	struct binding b = {.failed = false};

	b.n = order_processors(b.list);
	if (!b.n)
		return false;
	if (team.size > 1)
		region(team.size, bind_one, &b);
	else
		bind_one(&b, 0);
	return !atomic_load(&b.failed);
}

bool ql_team_pin(bool on)
{
	bool good;

	if (on == team.pinned)
		return true;
	if (!is_owner() || (on && sched_getaffinity(0, sizeof(team.before), &team.before)) ||
		atomic_exchange(&team.busy, true))
		return false;
	team.pinned = on;
	good = bind_threads();
	if (!good && on) {
		team.pinned = false;
		bind_threads();
	}
	atomic_store(&team.busy, false);
	return good;
}

bool ql_team_pinned(void)
{
	return team.pinned;
}

/* ---- starting ---- */

/* A forked child has no threads and cannot start any, because libgomp assumes that they exist. */
static void forget(void)
{
	team.forked = true;
	team.size = 0;
	atomic_store(&team.busy, false);
}

/* The number of threads whose stacks fit in a quarter of the remaining address space limit. */
static int room_for_stacks(void)
{
	struct rlimit limit;
	unsigned long long pages = 0;
	uint64_t used;
	FILE *f;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return MOST;
	f = fopen("/proc/self/statm", "re");
	if (f) {
		if (fscanf(f, "%llu", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	used = limit.rlim_cur > used ? (limit.rlim_cur - used) / 4 / STACK : 0;
	return used < MOST ? (int)used : MOST;
}

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *wait_until_let_go(void *arg)
{
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return arg;
}

/* Starts up to `n` threads at the same time, joins them and returns their number. */
static int try_threads(int n)
{
	pthread_attr_t attributes;
	pthread_t *thread = calloc((size_t)n, sizeof(*thread));
	int started = 0;

	if (!thread || pthread_attr_init(&attributes)) {
		free(thread);
		return 0;
	}
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_mutex_lock(&held);
	while (started < n && !pthread_create(&thread[started], &attributes, wait_until_let_go, NULL))
		started++;
	pthread_mutex_unlock(&held);
	for (int i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	pthread_attr_destroy(&attributes);
	free(thread);
	return started;
}

/* At the system's limit uses only half of the possible threads: other programs and the rest of this one need some
 * as well. */
static int startable(int others)
{
	int room = room_for_stacks(), started;

	others = others < room ? others : room;
	started = others > 0 ? try_threads(others) : 0;
	return started < others ? started / 2 : started;
}

/* Blocks signals except faults in the threads: the interpreter handles them. */
static void start_threads(int n)
{
	sigset_t all, before;

	sigfillset(&all);
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	sigdelset(&all, SIGFPE);
	sigdelset(&all, SIGILL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	region(n, nothing, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void resize(int n)
{
	if (!team.owned) {
		team.owner = pthread_self();
		team.owned = true;
		pthread_atfork(NULL, NULL, forget);
	}
	if (n > team.size)
		n = 1 + startable(n - 1);
	team.size = n;
	if (n < 2)
		return;
	start_threads(n);
	if (team.pinned)
		bind_threads();
	measure();
}

int ql_team_ready(int n)
{
	n = n < MOST ? n : MOST;
	if (team.forked)
		return 1;
	if (n != team.size && is_owner() && !atomic_exchange(&team.busy, true)) {
		resize(n);
		atomic_store(&team.busy, false);
	}
	return is_owner() && team.size < n ? team.size : n;
}
