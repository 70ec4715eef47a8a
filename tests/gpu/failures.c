/* SPDX-License-Identifier: MIT
 * Every call of the runtime fails in turn, under scripts that use a device as a program does, by ops and by runs of a graph and steps
 * of training that are recorded: each failure is one line that names the op, the device and the code (a failing recording is none, the run is a plain one); after an error of one call the script runs again with the CPU's numbers and no device
 * memory is lost; after a lost device, and where none could be opened, the CPU goes on.
 */
#include <sys/wait.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/host/lifetime.h"
#include "interp/host/state.h"
#include "interp/repl/session.h"
#include "tests/check.h"

#define MOST 2000 /* calls; the script makes fewer */
#define RECORD 64 /* bytes that a device keeps for the faults of kernels */

/* Each has a function run(device). */
static const char ops[] =
	"local x, w, b = tensor.arange(1, 48):reshape(6, 8) / 48, tensor.arange(1, 40):reshape(5, 8) / 40 - 0.5, tensor.ones(5)\n"
	"local function run(device)\n"
	"	local dx, dw = x:to(device):requires_grad_(), w:to(device)\n"
	"	local y = dx:linear(dw, b:to(device), {act = 'relu'})\n"
	"	local q = dx:quantize 'uint8'\n"
	"	local z = q:linear(dw:quantize 'int8/1'):softmax(2)\n"
	"	local s = (y * 2 + z):sort():sum()\n"
	"	s:backward()\n"
	"	return s:item() + dx:grad():sum():item() + q:qparams().scale:to 'cpu':item()\n"
	"end\n";
static const char replays[] =
	"local function run(device)\n"
	"	tensor.seed(1)\n"
	"	local m, x = nn.Sequential{nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)}, tensor.randn(2, 4)\n"
	"	local g, sum = graph.trace(m:to(device), x:to(device)), 0\n"
	"	for i = 1, 4 do sum = sum + g:run((x * i):to(device)):sum():item() end\n"
	"	return sum\n"
	"end\n";

static const char steps[] =
	"local function run(device)\n"
	"	tensor.seed(1)\n"
	"	local m, list = nn.Sequential{nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3)}:to(device), {}\n"
	"	for i = 1, 4 do list[i] = {tensor.randn(2, 4), tensor.randint{2, low=1, high=3}} end\n"
	"	local loss = m:fit(list, {opt=optim.adam(m), log=false})[1].loss\n"
	"	return loss + m.linear1.weight:detach():sum():item()\n"
	"end\n";

/* Runs, and after a failure once more. Returns the number of failures, and the first. */
static const char judging[] =
	"local wanted, errors, first = run 'cpu', 0, nil\n"
	"for i = 1, 2 do\n"
	"	local good, got = pcall(run, 'cudaemu')\n"
	"	if good then\n"
	"		assert(math.abs(got - wanted) < 1e-3, ('other numbers: %g, wanted %g'):format(got, wanted))\n"
	"		if i == 1 then return 0 end\n"
	"	else\n"
	"		local text = tostring(got)\n"
	"		errors, first = errors + 1, first or text\n"
	"		local op = text:match '^script:%d+: ([%w_.]+): [^\\n]*cudaemu[^\\n]*$'\n"
	"		assert(op, 'unclear: ' .. text)\n"
	"	end\n"
	"end\n"
	"assert(run 'cpu' == wanted, 'the CPU gives other numbers')\n"
	"return errors, first\n";

/* What became of a process, as its exit status. */
enum { NONE = 10, USABLE, UNOPENED, LOST, BROKEN };

/* Results of a text of Lua on the stack. */
static bool run(struct ql_state *s, const char *text, int results)
{
	return !luaL_loadbuffer(s->L, text, strlen(text), "=script") && !lua_pcall(s->L, 0, results, 0);
}

/* Bytes on devices once all garbage is gone; -1: the device does not answer. */
static lua_Integer left(struct ql_state *s)
{
	for (int i = 0; i < 2; i++)
		if (!ql_collect_garbage(s->L))
			return -1;
	return run(s, "return gpu.memory().now", 1) ? lua_tointeger(s->L, -1) : -1;
}

/* An error of one call is over with it; where the device could not be opened, and after it is lost, the errors stay. */
static int judge(struct ql_state *s, int code, lua_Integer errors, const char *first)
{
	bool unopened = errors && (strstr(first, "open: ") || strstr(first, "to: "));
	lua_Integer bytes;

	if (errors == 0)
		return NONE;
	if (unopened || code == 719)
		return unopened ? UNOPENED : LOST;
	bytes = left(s);
	if (errors == 1 && bytes >= 0 && bytes <= RECORD)
		return USABLE;
	printf("%d failures, %d bytes are left: %s\n", (int)errors, (int)bytes, first);
	return BROKEN;
}

static int child(struct ql_state *s, const char *what, int n, int code)
{
	char value[32], script[sizeof(ops) + sizeof(steps) + sizeof(judging)];
	int status;

	snprintf(value, sizeof(value), "%d:%d", n, code);
	setenv("QUOLL_EMU_FAIL", value, 1);
	snprintf(script, sizeof(script), "%s%s", what, judging);
	if (!run(s, script, 2)) {
		printf("call %d fails with %d: %s\n", n, code, lua_tostring(s->L, -1));
		return BROKEN;
	}
	status = judge(s, code, lua_tointeger(s->L, -2), lua_tostring(s->L, -1));
	ql_state_free(s);
	return status;
}

#define QUIET 150 /* so many calls in a row may fail without a word where a recording is given up */

/* Every step-th call up to `most`, or until none fails; returns their number. */
static int fail_with(struct ql_state *s, const char *what, int code, int most, int step)
{
	int none = 0, n = 1, count[BROKEN + 1] = {0};

	CASE("%s: the n-th call of the runtime fails with %d",
		what == ops     ? "ops"
		: what == steps ? "steps"
				: "replays",
		code);
	for (; none < (what == ops ? 12 : QUIET) && n <= most; n += step) {
		int status = 0;
		pid_t process;

		fflush(NULL);
		process = fork();
		if (process == 0) {
			status = child(s, what, n, code);
			fflush(NULL);
			_exit(status);
		}
		waitpid(process, &status, 0);
		status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		none = code == 1 && status == NONE ? none + step : 0;
		if (CHECK(status >= NONE && status < BROKEN, "call %d: status %d", n, status))
			count[status]++;
	}
	/* where memory runs out, all but opening is tried again after a collection */
	CHECK(n < MOST && (code == 2 || count[code == 719 ? LOST : USABLE] > (step > 3 ? 5 : 20)),
		"of %d calls %d leave the device usable, %d lost", n, count[USABLE], count[LOST]);
	return n - none;
}

int main(void)
{
	struct ql_options options;
	char error[QL_STATE_ERROR];
	struct ql_state *s = NULL;
	int calls;

	if (!getenv("QUOLL_TEST_PLUGIN")) {
		SKIP("cudaemu",
			"the emulation is not built: Boost.Context (libboost-context-dev) or a C++ compiler is missing");
		return check_end();
	}
	if (!CHECK(ql_options_read(&options, error) && (s = ql_state_new(&options, 0, error)), "%s", error))
		return check_end();
	calls = fail_with(s, ops, 1, MOST, under_sanitizers ? 2 : 1);
	fail_with(s, ops, 2, calls, under_sanitizers ? 7 : 3);
	fail_with(s, ops, 719, calls, under_sanitizers ? 7 : 3);
	calls = fail_with(s, replays, 1, MOST, under_sanitizers ? 5 : 3);
	fail_with(s, replays, 2, calls, under_sanitizers ? 11 : 5);
	fail_with(s, replays, 719, calls, under_sanitizers ? 17 : 7);
	calls = fail_with(s, steps, 1, MOST, 13);
	fail_with(s, steps, 2, calls, 31);
	fail_with(s, steps, 719, calls, 37);
	ql_state_free(s);
	return check_end();
}
