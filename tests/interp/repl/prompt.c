/* SPDX-License-Identifier: MIT
 * labels: quick serial
 * The prompt on a terminal, mostly without the line editor (TERM=dumb; tests/interp/repl/editing.c has that one): a
 * pseudo-terminal types, waits for what is shown, and presses Ctrl-C and Ctrl-D.
 * Also the exit codes of interrupted scripts.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/check.h"

#define CTRL_C "\x03"
#define CTRL_D "\x04"
#define PATIENCE 20000 /* ms for anything that has no limit of its own */

struct term {
	int fd;
	pid_t pid;
	char out[1 << 18];
	size_t size, seen;
};

static char program[PATH_MAX];

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void pause_ms(int ms)
{
	struct timespec t = {ms / 1000, ms % 1000 * 1000000L};

	nanosleep(&t, NULL);
}

/* The program lies beside the folder of the tests. */
static bool find_program(void)
{
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 16);
	char *slash;

	if (n < 0)
		return false;
	program[n] = '\0';
	for (int i = 0; i < 2; i++) {
		slash = strrchr(program, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	strcat(program, "/quoll");
	return access(program, X_OK) == 0;
}

/* `setting` is one variable of the environment ("TERM=dumb"); `code` NULL: the prompt. */
static struct term *term_open(const char *setting, const char *code)
{
	struct term *t = calloc(1, sizeof(*t));
	struct winsize size = {40, 100, 0, 0};

	if (!t)
		exit(1);
	t->pid = forkpty(&t->fd, NULL, NULL, &size);
	if (t->pid < 0) { /* never to be killed: -1 is every process there is */
		CHECK(false, "forkpty: %s", strerror(errno));
		exit(check_end());
	}
	if (t->pid == 0) {
		setenv("TERM", "xterm", 1);
		setenv("QUOLL_MEMORY", "4000", 1); /* what is not interrupted shall not take all there is */
		unsetenv("NO_COLOR");
		unsetenv("HOME"); /* no history, no settings of the user */
		unsetenv("XDG_STATE_HOME");
		unsetenv("INPUTRC");
		if (setting)
			putenv(strdup(setting));
		if (code)
			execl(program, program, "-e", code, (char *)NULL);
		else
			execl(program, program, (char *)NULL);
		_exit(127);
	}
	return t;
}

static bool term_read(struct term *t, int ms)
{
	struct pollfd p = {t->fd, POLLIN, 0};
	ssize_t n;

	if (poll(&p, 1, ms) <= 0 || t->size == sizeof(t->out) - 1)
		return false;
	n = read(t->fd, t->out + t->size, sizeof(t->out) - 1 - t->size);
	if (n <= 0)
		return false;
	t->size += (size_t)n;
	t->out[t->size] = '\0';
	return true;
}

/* Waits until `text` comes; what came before it is passed. Returns the milliseconds it took, -1: it did not.
 */
static int term_wait(struct term *t, const char *text, int ms)
{
	long start = now();

	for (;;) {
		const char *found = strstr(t->out + t->seen, text);
		long left = start + ms - now();

		if (found) {
			t->seen = (size_t)(found - t->out) + strlen(text);
			return (int)(now() - start);
		}
		if (left <= 0 || !term_read(t, (int)left)) {
			if (now() - start >= ms || waitpid(t->pid, NULL, WNOHANG | WNOWAIT) != 0 || errno == EIO)
				return -1;
		}
	}
}

static void term_send(struct term *t, const char *text)
{
	ssize_t n = write(t->fd, text, strlen(text));

	CHECK(n == (ssize_t)strlen(text), "write to the terminal");
}

/* Types a line and waits for `wanted` and the next prompt. */
static void term_line(struct term *t, const char *line, const char *wanted)
{
	term_send(t, line);
	term_send(t, "\n");
	if (*wanted)
		CHECK(term_wait(t, wanted, PATIENCE) >= 0, "%s: wanted %s, got %s", line, wanted, t->out + t->seen);
	CHECK(term_wait(t, "In [", PATIENCE) >= 0, "%s: no prompt, got %s", line, t->out + t->seen);
}

/* Exit status, 128 + signal, or -1 when it does not end. */
static int term_status(struct term *t, int ms)
{
	long end = now() + ms;
	int status, result = -1;

	while (now() < end) {
		while (term_read(t, 0))
			;
		if (waitpid(t->pid, &status, WNOHANG) == t->pid) {
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
			break;
		}
		pause_ms(5);
	}
	while (term_read(t, 50))
		;
	if (result < 0) {
		kill(t->pid, SIGKILL);
		waitpid(t->pid, &status, 0);
	}
	close(t->fd);
	return result;
}

static void term_leave(struct term *t)
{
	int status;

	term_send(t, CTRL_D);
	status = term_status(t, PATIENCE);
	CHECK(status == 0, "exit status %d", status);
	free(t);
}

static struct term *prompt(const char *setting)
{
	struct term *t = term_open(setting, NULL);

	CHECK(term_wait(t, "In [", PATIENCE) >= 0, "no prompt: %s", t->out);
	return t;
}

/* ---- what is shown ---- */

static void test_look(void)
{
	struct term *t;

	CASE("banner, prompts and results");
	t = prompt("TERM=dumb");
	CHECK(strstr(t->out, "Quoll ") && strstr(t->out, "Ctrl-D leaves"), "%s", t->out);
	term_line(t, "1 + 1", "Out[1]: 2\r\n");
	CHECK(term_wait(t, "2]: ", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_send(t, "for i = 1, 2 do\n");
	CHECK(term_wait(t, "\r\n   ...: ", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_line(t, "print(i) end", "1\r\n2\r\n");
	term_line(t, "error 'x'", "In[3]:1: x\r\n");
	CHECK(!strchr(t->out, '\033'), "escape bytes with TERM=dumb");
	term_leave(t);

	CASE("colours on a terminal");
	t = prompt(NULL);
	term_line(t, "1", "\033[31mOut[1]:\033[0m 1");
	CHECK(strstr(t->out, "\033[32mIn [1]: \033[0m"), "%s", t->out);
	term_line(t, "error 'red'", "\033[31mIn[2]:1: red\033[0m");
	term_line(t, "warn 'careful'", "\033[33mwarning: careful\033[0m");
	term_leave(t);

	CASE("no colours with NO_COLOR");
	t = prompt("NO_COLOR=1");
	term_line(t, "1", "Out[1]: 1");
	term_line(t, "error 'red'", "In[2]:1: red");
	CHECK(!strstr(t->out, "\033[3") && !strstr(t->out, "\033[0m"), "%s", t->out);
	term_leave(t);
}

static void test_keys(void)
{
	struct term *t = prompt("TERM=dumb");

	CASE("Ctrl-C and Ctrl-D at the prompt");
	term_send(t, "half a line" CTRL_C);
	CHECK(term_wait(t, "In [1]: ", PATIENCE) >= 0, "%s", t->out + t->seen);
	for (int i = 0; i < 5; i++) {
		term_send(t, CTRL_C);
		CHECK(term_wait(t, "In [1]: ", PATIENCE) >= 0, "%s", t->out + t->seen);
	}
	term_send(t, "function f(\n");
	CHECK(term_wait(t, "...: ", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_send(t, CTRL_C);
	CHECK(term_wait(t, "In [1]: ", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_line(t, "7", "Out[1]: 7");
	term_send(t, "x = {\n");
	CHECK(term_wait(t, "...: ", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_send(t, CTRL_D);
	CHECK(term_wait(t, "near <eof>", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_line(t, "8", "Out[3]: 8");
	term_send(t, "io.read()\n");
	pause_ms(200);
	term_line(t, "typed", "Out[4]: \"typed\"");
	term_send(t, "io.read()\n");
	pause_ms(200);
	term_send(t, CTRL_D);
	CHECK(term_wait(t, "Out[5]: nil", PATIENCE) >= 0, "%s", t->out + t->seen);
	CHECK(term_wait(t, "In [", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_line(t, "p = io.popen('true', 'w') os.execute 'sleep 0.2' p:write(('x'):rep(1 << 20)) p:close() 9",
		"Out[6]: 9");
	term_leave(t);
}

/* ---- Ctrl-C while something runs ---- */

static const struct {
	const char *code;
	int limit; /* ms until the prompt is back */
} busy[] = {
	{"while true do end", 250},
	{"while true do pcall(spin) end", 250},
	{"while true do xpcall(spin, print) end", 250},
	{"while true do pcall(error) end", 250},
	{"while true do pcall(pcall, pcall, spin) end", 250},
	{"while true do coroutine.resume(coroutine.create(spin)) end", 250},
	{"while true do pcall(coroutine.wrap(spin)) end", 250},
	{"coroutine.wrap(function() coroutine.wrap(function() while true do pcall(spin) end end)() end)()", 250},
	{"for x in coroutine.wrap(function() while true do coroutine.yield(1) end end) do end", 250},
	{"setmetatable({}, {__index = spin}).x = setmetatable({}, {__index = spin}).x", 250},
	{"('x'):rep(1000):gsub('.', spin)", 250},
	{"('x'):rep(1 << 26):gsub('.', string.upper)", 250},
	{"('x'):rep(1 << 26):gsub('.', string.upper) while true do end", 250},
	{"table.sort({3, 2, 1}, spin)", 250},
	{"string.find(('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40))", 250},
	{"while true do pcall(string.match, ('a'):rep(40), ('a?'):rep(40) .. ('a'):rep(40)) end", 250},
	{"('a'):rep(1 << 20):gsub(('.-'):rep(8) .. 'b', '')", 250},
	{"for x in ('('):rep(1 << 20):gmatch '%b()' do end", 250},
	{"io.open('/dev/zero'):read 'a'", 2000},
	{"local v <close> = setmetatable({}, {__close = function() closed = true end}) spin()", 250},
	{"local v <close> = setmetatable({}, {__close = spin}) spin()", 250},
	{"load(function() return '  ' end)", 250},
	{"os.execute 'sleep 30'", 250},
	{"while true do os.execute 'sleep 30' end", 250},
	{"io.popen('sleep 30'):read()", 250},
	{"io.read()", 250},
	{"repeat local s = ('x'):rep(1 << 28) until false", 250},
	{"wide:matmul(wide)", 1000},
	{"while true do pcall(wide.matmul, wide, wide) end", 1000},
	{"while true do pcall(row.sort, row) end", 1000},
	{"while true do pcall(row.topk, row, 1 << 22) end", 1000},
	{"while true do pcall(row.quantile, row, 0.3) end", 1000},
	{"while true do pcall(long.cumsum, long) end", 1000},
	{"while true do pcall(net.fit, net, {{wide[{{1, 500}}], wide[{{1, 500}}]}}, {loss=nn.mse, epochs=99, log=false}) end",
		1000},
	{"repeat until false", 250},
};

/* The best of three: other programs may hold the processor for a while. */
static void test_busy(struct term *t, const char *code, int limit)
{
	int best = INT_MAX;

	for (int i = 0; i < 3 && best > limit; i++) {
		int took;

		term_send(t, code);
		term_send(t, "\n");
		pause_ms(200);
		term_send(t, CTRL_C);
		took = term_wait(t, "interrupted", PATIENCE);
		CHECK(took >= 0, "%s: not interrupted: %s", code, t->out + t->seen);
		if (took < 0)
			return;
		if (took < best)
			best = took;
		CHECK(term_wait(t, "In [", PATIENCE) >= 0, "%s: no prompt: %s", code, t->out + t->seen);
	}
	CHECK(best <= limit, "%s: %d ms", code, best);
}

static void test_interrupt(void)
{
	struct term *t = prompt("TERM=dumb");

	CASE("Ctrl-C: the session");
	term_line(t, "function spin() while true do end end kept = 5;", "");
	term_line(t,
		"tensor.seed(1) wide, long, row = tensor.rand(4000, 4000), tensor.rand(1 << 24), "
		"tensor.rand(1 << 24);",
		"");
	term_line(t, "net = nn.Linear(4000, 4000);", "");
	for (size_t i = 0; i < sizeof(busy) / sizeof(busy[0]); i++) {
		CASE("Ctrl-C: %s", busy[i].code);
		test_busy(t, busy[i].code, busy[i].limit);
		term_line(t, "'kept ' .. kept", "\"kept 5\"");
		term_line(t, "pcall(error, 'calm')", "false\t\"calm\"");
		if (strstr(busy[i].code, "closed = true"))
			term_line(t, "'closed ' .. tostring(closed)", "\"closed true\"");
		t->size = t->seen = 0;
		t->out[0] = '\0';
	}
	term_line(t, "net:eval()(wide[1]):size(1)", ": 4000");
	term_leave(t);
}

/* A training that is interrupted in its third epoch: the file holds the second, the model works, and the same call with
 * resume=true ends with the bits of a training that ran through. */
static void test_fit(void)
{
	struct term *t = prompt("NO_COLOR=1");

	CASE("Ctrl-C in fit");
	term_line(t,
		"f = os.tmpname() .. '.safetensors' data_ = {{tensor.randn(8, 3), tensor.randint{8, low=1, high=2}}};",
		"");
	term_line(t,
		"function net() tensor.seed(2) return nn.Sequential{nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)} end;",
		"");
	term_line(t,
		"function run(m, o) o.opt = optim.adam(m) o.epochs = 4 o.log = false m:fit(data_, o) return m end;",
		"");
	term_line(t, "whole = run(net(), {}) n = 0 m = net();", "");
	term_send(t,
		"run(m, {save=f, loss=function(y, t) n = n + 1 while n == 3 do end return nn.crossentropy(y, t) end})\n");
	pause_ms(300);
	term_send(t, CTRL_C);
	CHECK(term_wait(t, "interrupted", PATIENCE) >= 0, "%s", t->out + t->seen);
	CHECK(term_wait(t, "In [", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_line(t, "'step ' .. n .. ', training ' .. tostring(m.training)", "\"step 3, training true\"");
	term_line(t,
		"saved = net():load(f); 'same ' .. m.linear2.weight:detach():error(saved.linear2.weight:detach()).max",
		"\"same 0.0\"");
	term_line(t, "'gives ' .. m(data_[1][1]):size(2)", "\"gives 2\"");
	term_line(t,
		"again = run(net(), {save=f, resume=true}); 'same ' .. "
		"whole.linear2.weight:detach():error(again.linear2.weight:detach()).max",
		"\"same 0.0\"");
	term_line(t, "'moved ' .. tostring(whole.linear2.weight:detach():error(saved.linear2.weight:detach()).max > 0)",
		"\"moved true\"");
	term_line(t, "os.remove(f) os.remove((f:gsub('.safetensors$', '')))", "");
	term_leave(t);
}

static void test_hooks(void)
{
	struct term *t = prompt("TERM=dumb");

	CASE("Ctrl-C leaves the user's hook in place");
	term_line(t, "n = 0 debug.sethook(function() n = n + 1 end, '', 1000)", "");
	term_send(t, "while true do end\n");
	pause_ms(200);
	term_send(t, CTRL_C);
	CHECK(term_wait(t, "interrupted", PATIENCE) >= 0, "%s", t->out + t->seen);
	CHECK(term_wait(t, "In [", PATIENCE) >= 0, "%s", t->out + t->seen);
	term_line(
		t, "local before = n for i = 1, 100000 do end 'counted ' .. tostring(n > before + 10)", "counted true");
	term_leave(t);
}

static void test_twice(void)
{
	struct term *t = prompt("TERM=dumb");
	int status;

	CASE("a second Ctrl-C ends what cannot be interrupted");
	term_send(t,
		"mt = {__gc = print} setmetatable({}, mt) mt.__gc = function() while true do end end collectgarbage()\n");
	pause_ms(300);
	term_send(t, CTRL_C);
	pause_ms(20);
	term_send(t, CTRL_C); /* the same key, held */
	CHECK(term_status(t, 400) == -1, "a held key ended it");
	free(t);
	t = prompt("TERM=dumb");
	term_send(t,
		"mt = {__gc = print} setmetatable({}, mt) mt.__gc = function() while true do end end collectgarbage()\n");
	pause_ms(300);
	term_send(t, CTRL_C);
	pause_ms(500);
	term_send(t, CTRL_C);
	status = term_status(t, PATIENCE);
	CHECK(status == 130, "exit status %d", status);
	CHECK(strstr(t->out, "interrupted twice"), "%s", t->out);
	free(t);
}

/* ---- scripts ---- */

static void check_script(const char *code, const char *wanted, int wanted_status)
{
	struct term *t = term_open("TERM=dumb", code);
	int status;

	pause_ms(400);
	term_send(t, CTRL_C);
	status = term_status(t, PATIENCE);
	CHECK(status == wanted_status, "%s: exit status %d", code, status);
	CHECK(strstr(t->out, wanted), "%s: %s", code, t->out);
	free(t);
}

static void test_scripts(void)
{
	CASE("scripts end with 130, message and traceback");
	check_script("while true do end", "quoll: (command line):1: interrupted\r\nstack traceback:\r\n", 130);
	check_script("while true do pcall(string.rep, 'x', 100) end", ": interrupted", 130);
	check_script("function f() while true do pcall(f) end end f()", "interrupted", 130);
	check_script("pcall(function() while true do end end) print 'swallowed'", "interrupted", 130);
	check_script("local d <close> = setmetatable({}, {__close = function() print 'closed' end}) while "
		     "true do end",
		"closed\r\n", 130);
	check_script("io.read()", "interrupted", 130);
}

static void test_ignored(void)
{
	struct sigaction old, ignore = {.sa_handler = SIG_IGN};
	struct term *t;

	CASE("SIGINT that was ignored stays ignored");
	sigaction(SIGINT, &ignore, &old);
	t = term_open(NULL, "local t = os.time() while os.time() < t + 2 do end print 'to the end'");
	sigaction(SIGINT, &old, NULL);
	pause_ms(300);
	kill(t->pid, SIGINT);
	CHECK(term_status(t, PATIENCE) == 0 && strstr(t->out, "to the end"), "%s", t->out);
	free(t);
}

static bool have_terminals(void)
{
	int ours, theirs;

	if (openpty(&ours, &theirs, NULL, NULL, NULL))
		return false;
	close(ours);
	close(theirs);
	return true;
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	if (!have_terminals()) {
		SKIP("the prompt in a terminal", "no pseudo-terminal can be opened here (/dev/ptmx, /dev/pts)");
		return check_end();
	}
	if (!find_program()) {
		printf("%s: not there\n", program);
		return 1;
	}
	test_look();
	test_keys();
	test_interrupt();
	test_fit();
	test_hooks();
	test_twice();
	test_scripts();
	test_ignored();
	return check_end();
}
