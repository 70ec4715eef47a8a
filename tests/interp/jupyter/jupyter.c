/* SPDX-License-Identifier: MIT
 * The kernel without sockets: a front end in this process puts signed requests into a queue and reads what
 * comes back. The sockets, threads and signals are the business of kernel.py.
 */
#include "interp/jupyter/jupyter.h"

#include <stdlib.h>
#include <string.h>

#include "interp/host/interrupt.h"
#include "tests/check.h"

#define MANY 4000

/* What the kernel has sent: its channel, type, the id of the request it belongs to, and content. */
struct sent {
	enum ql_channel channel;
	char type[40], parent[80];
	cJSON *content;
	char raw[100];
};

static struct {
	struct ql_signer signer; /* of the front end */
	FILE *terminal, *heard;  /* stdout for this test, and for the kernel, which listens to it */
	struct ql_jupyter kernel;
	struct sent sent[MANY];
	int n;
	struct ql_envelope queue[2][16]; /* shell and stdin */
	int waiting[2];
	const char *typed[8]; /* answers to input_request */
	int asked;
} front;

static char last_id[80];

/* ---- the port ---- */

static struct ql_envelope request(const char *type, const char *content)
{
	struct ql_wire_frame identity = {(char[]){'f', 'e'}, 2}, nothing = {NULL, 0};
	struct ql_envelope out = {.n = 0};
	struct ql_wire text = {0};

	ql_wire_put(&text, content);
	ql_message_make(&front.signer, &identity, 1, type, nothing, nothing, &text, &out);
	snprintf(last_id, sizeof(last_id), "%s_%llu", front.signer.session, front.signer.count);
	ql_wire_free(&text);
	return out;
}

static void take(void *self, enum ql_channel channel, const struct ql_envelope *frames)
{
	struct sent *s = &front.sent[front.n];
	const char *why;
	cJSON *header = ql_wire_read(frames->frame[3].at, frames->frame[3].n, &why);
	cJSON *parent = ql_wire_read(frames->frame[4].at, frames->frame[4].n, &why);
	const char *id = ql_wire_member(parent, "msg_id");

	(void)self;
	CHECK(header && parent && frames->n == 7, "frames");
	*s = (struct sent){.channel = channel};
	snprintf(s->type, sizeof(s->type), "%s", ql_wire_member(header, "msg_type"));
	snprintf(s->parent, sizeof(s->parent), "%s", id ? id : "");
	s->content = ql_wire_read(frames->frame[6].at, frames->frame[6].n, &why);
	snprintf(s->raw, sizeof(s->raw), "%.*s", (int)frames->frame[6].n, frames->frame[6].at);
	if (!strcmp(s->type, "input_request") && front.typed[front.asked])
		front.queue[1][front.waiting[1]++] = request("input_reply", front.typed[front.asked++]);
	cJSON_Delete(header);
	cJSON_Delete(parent);
	front.n += front.n < MANY - 1;
}

static int wait_message(void *self, enum ql_channel channel, int milliseconds, struct ql_envelope *out)
{
	int i = channel == QL_CHANNEL_STDIN;

	(void)self;
	if (!front.waiting[i]) {
		if (i && milliseconds) /* who waits for input that never comes is interrupted */
			front.kernel.state->ctx->interrupted = 1;
		return 0;
	}
	*out = front.queue[i][0];
	memmove(front.queue[i], front.queue[i] + 1, sizeof(front.queue[i]) - sizeof(front.queue[i][0]));
	front.waiting[i]--;
	return 1;
}

static void wake(void *self, bool shell)
{
	(void)self;
	(void)shell;
}

/* ---- asking ---- */

static void forget(void)
{
	while (front.n)
		cJSON_Delete(front.sent[--front.n].content);
	front.asked = 0;
	memset(front.typed, 0, sizeof(front.typed));
}

/* Sends a request and returns the reply's content. */
static const cJSON *ask(const char *type, const char *content)
{
	struct ql_envelope e = request(type, content);

	while (front.n)
		cJSON_Delete(front.sent[--front.n].content);
	front.asked = 0;
	stdout = front.heard;
	ql_jupyter_take(&front.kernel, QL_CHANNEL_SHELL, &e);
	stdout = front.terminal;
	for (int i = 0; i < front.n; i++)
		if (front.sent[i].channel == QL_CHANNEL_SHELL)
			return front.sent[i].content;
	return NULL;
}

static const cJSON *run_with(const char *code, const char *members)
{
	struct ql_wire text = {0};
	const cJSON *reply;

	ql_wire_put(&text, "{\"code\":");
	ql_wire_quote_0(&text, code);
	ql_wire_put(&text, members);
	ql_wire_put(&text, "}");
	ql_wire_add(&text, "", 1);
	reply = ask("execute_request", text.at);
	ql_wire_free(&text);
	return reply;
}

static const cJSON *run(const char *code)
{
	return run_with(code, "");
}

static const char *status(const cJSON *content)
{
	const char *text = ql_wire_member(content, "status");

	return text ? text : "none";
}

/* The content of the i-th message of that type; NULL: there is none. */
static const cJSON *find(const char *type, int i)
{
	for (int k = 0; k < front.n; k++)
		if (!strcmp(front.sent[k].type, type) && i-- == 0)
			return front.sent[k].content;
	return NULL;
}

/* The types of what was sent, in order. */
static const char *types(void)
{
	static char text[1024];

	*text = '\0';
	for (int i = 0; i < front.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? " " : "", front.sent[i].type);
	return text;
}

static bool is(const char *got, const char *wanted)
{
	if (got && !strcmp(got, wanted))
		return true;
	printf("wanted %s, got %s\n", wanted, got ? got : "nothing");
	return false;
}

static const char *member(const char *type, int i, const char *name)
{
	return ql_wire_member(find(type, i), name);
}

static const char *plain(const cJSON *content)
{
	return ql_wire_member(cJSON_GetObjectItemCaseSensitive(content, "data"), "text/plain");
}

static const cJSON *at(const cJSON *object, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(object, name);
}

/* ---- cells ---- */

static void test_cells(void)
{
	const cJSON *reply;

	CASE("a cell: status around, input, stream, result, reply");
	reply = run("print 'a' io.write 'b' io.stderr:write 'c' 6 * 7");
	CHECK(is(types(), "status execute_input stream stream execute_result execute_reply status"), "order");
	CHECK(is(member("status", 0, "execution_state"), "busy") && is(member("status", 1, "execution_state"), "idle"),
		"1");
	CHECK(is(member("stream", 0, "text"), "a\nb") && is(member("stream", 1, "text"), "c"), "streams");
	CHECK(is(plain(find("execute_result", 0)), "42") && is(status(reply), "ok"), "result");
	CHECK(ql_wire_integer(reply, "execution_count", 0) == 1, "count");
	for (int i = 0; i < front.n; i++)
		CHECK(is(front.sent[i].parent, last_id), "parent of %s", front.sent[i].type);
	CASE("locals stay, a semicolon keeps quiet");
	CHECK(is(status(run("local x = 5;")), "ok") &&
			is(plain(find("execute_result", 0)) ? "shown" : "quiet", "quiet"),
		"1");
	run("x + 1");
	CHECK(is(plain(find("execute_result", 0)), "6"), "local");
	CASE("texts with any bytes");
	run("io.write('\\0\\255\\u{20AC}')");
	CHECK(is(front.sent[2].raw, "{\"name\":\"stdout\",\"text\":\"\\u0000\xef\xbf\xbd\xe2\x82\xac\"}"), "any bytes");
	run("io.write('\\xe2') io.write('\\x82') io.write('\\xac')");
	CHECK(is(member("stream", 0, "text"), "\xe2\x82\xac"), "a character in pieces");
	CASE("errors");
	reply = run("local function f() error 'no' end f()");
	CHECK(is(types(), "status execute_input error execute_reply status") && is(status(reply), "error"), "order");
	CHECK(is(ql_wire_member(reply, "evalue"), "In[6]:1: no") && is(member("error", 0, "ename"), "Error"), "text");
	CHECK(cJSON_GetArraySize(at(reply, "traceback")) > 2, "traceback");
	CHECK(is(ql_wire_member(run("x = = 1"), "ename"), "SyntaxError") && is(status(run("for i =")), "error"),
		"syntax");
	CHECK(is(status(run("")), "ok") && is(status(run("-- nothing")), "ok"), "an empty cell");
}

static void test_options(void)
{
	const cJSON *reply;
	int count = front.kernel.session.n;

	CASE("silent cells");
	run("41");
	reply = run_with("print 'x' silent = 1 77", ",\"silent\":true");
	CHECK(is(types(), "status execute_reply status") && is(status(reply), "ok"), "quiet");
	CHECK(ql_wire_integer(reply, "execution_count", 0) == count + 1 && front.kernel.session.n == count + 1,
		"count");
	run("_ .. ' ' .. silent .. tostring(In[#In - 1]) .. tostring(Out[#In])");
	CHECK(is(plain(find("execute_result", 0)), "\"41 141nil\""), "In, Out and _ are as they were");
	CASE("cells that are not stored");
	run_with("5", ",\"store_history\":false");
	CHECK(is(plain(find("execute_result", 0)), "5") && front.kernel.session.n == count + 2, "count");
	CASE("user expressions");
	run("local y = 3;");
	reply = run_with(";", ",\"user_expressions\":{\"a\":\"y * 2\",\"b\":\"nope.x\",\"c\":\"= =\"}");
	reply = at(reply, "user_expressions");
	CHECK(is(plain(at(reply, "a")), "6") && is(status(at(reply, "b")), "error") &&
			is(status(at(reply, "c")), "error"),
		"values");
	CHECK(strstr(ql_wire_member(at(reply, "b"), "evalue"), "attempt to index a nil value"), "message");
	CASE("a request without code, and one whose content is no object");
	CHECK(is(status(ask("execute_request", "{}")), "error") && is(status(ask("execute_request", "[]")), "error"),
		"refused");
	CHECK(is(status(ask("complete_request", "{\"code\":\"a\\u0000b\",\"cursor_pos\":1}")), "error"), "NUL");
}

static void test_queue(void)
{
	CASE("an error aborts the cells that wait, and nothing else");
	forget();
	front.queue[0][0] = request("execute_request", "{\"code\":\"ran = 1\"}");
	front.queue[0][1] = request("kernel_info_request", "{}");
	front.queue[0][2] = request("execute_request", "{\"code\":\"ran = 2\"}");
	front.waiting[0] = 3;
	run("error 'stop'");
	CHECK(is(member("execute_reply", 0, "status"), "error") && is(member("execute_reply", 1, "status"), "aborted"),
		"1");
	CHECK(is(member("execute_reply", 2, "status"), "aborted") && find("kernel_info_reply", 0), "2");
	run("ran");
	CHECK(is(plain(find("execute_result", 0)), "nil"), "it ran");
	CASE("unless stop_on_error is false");
	front.queue[0][0] = request("execute_request", "{\"code\":\"ran = 1\"}");
	front.waiting[0] = 1;
	run_with("error 'go on'", ",\"stop_on_error\":false");
	CHECK(front.waiting[0] == 1, "the queue was touched");
	front.waiting[0] = 0;
	ql_envelope_free(&front.queue[0][0]);
}

static void test_input(void)
{
	CASE("io.read asks the front end");
	front.typed[0] = "{\"value\":\"Ada\"}";
	front.typed[1] = "{\"value\":\"12 13\"}";
	front.typed[2] = "{\"value\":\"\\u0004\"}";
	run("io.write 'name? ' local n = io.read() local a, b = io.read('n', 'n') n, a + b, io.read()");
	CHECK(is(member("stream", 0, "text"), "name? ") && is(member("input_request", 0, "prompt"), ""), "prompt");
	CHECK(is(plain(find("execute_result", 0)), "\"Ada\""), "line");
	CHECK(is(plain(find("execute_result", 1)), "25"), "numbers");
	front.typed[0] = front.typed[1] = front.typed[2] = NULL;
	CASE("what a cell leaves unread is gone with the next");
	front.typed[0] = "{\"value\":\"abc\"}";
	run("io.read(1)");
	CHECK(is(plain(find("execute_result", 0)), "\"a\""), "one character");
	front.typed[0] = "{\"value\":\"xyz\"}";
	run("io.stdin:read()");
	CHECK(is(plain(find("execute_result", 0)), "\"xyz\""), "a new line");
	front.typed[0] = NULL;
	CASE("front ends without input");
	run_with("(select(2, io.read()))", ",\"allow_stdin\":false");
	CHECK(is(plain(find("execute_result", 0)), "\"Operation not supported\"") && !find("input_request", 0),
		"refused");
	CASE("waiting for input is interrupted");
	CHECK(is(ql_wire_member(run("io.read()"), "ename"), "Interrupted"), "interrupt");
	ql_interrupt_clear(front.kernel.state);
}

static void test_display(void)
{
	const cJSON *content;

	CASE("values in several forms");
	run("tensor{1, 2}");
	CHECK(strstr(ql_wire_member(at(find("execute_result", 0), "data"), "text/html"), "<table"), "a tensor");
	run("setmetatable({}, {__mime = function() return {['text/plain'] = 'p', "
	    "['application/json'] = '{\"a\": [1]}'} end})");
	content = at(at(find("execute_result", 0), "data"), "application/json");
	CHECK(cJSON_IsObject(content), "JSON is JSON");
	CASE("jupyter.display, update, clear");
	run("jupyter.display(1) jupyter.display('x', {id = 'i'}) jupyter.update('i', 2) jupyter.clear(true)");
	CHECK(is(types(), "status execute_input display_data display_data update_display_data clear_output "
			  "execute_result execute_reply status"),
		"order");
	content = find("update_display_data", 0);
	CHECK(is(plain(content), "2") && is(ql_wire_member(at(content, "transient"), "display_id"), "i"), "update");
	CHECK(ql_wire_flag(find("clear_output", 0), "wait", false), "wait");
	CASE("pages");
	content = cJSON_GetArrayItem(at(run("?quantize"), "payload"), 0);
	CHECK(is(ql_wire_member(content, "source"), "page") && strstr(plain(content), "x:quantize"), "one");
	CHECK(is(types(), "status execute_input execute_reply status"), "nothing is printed");
	run("function twice(a) return 2 * a end");
	content = cJSON_GetArrayItem(at(run("twice??"), "payload"), 0);
	CHECK(strstr(plain(content), "return 2 * a"), "the source");
}

/* ---- questions about code ---- */

static void test_questions(void)
{
	const cJSON *reply;

	CASE("is_complete_request");
	CHECK(is(status(ask("is_complete_request", "{\"code\":\"x = 1\"}")), "complete"), "1");
	reply = ask("is_complete_request", "{\"code\":\"for i = 1, 2 do f({\"}");
	CHECK(is(status(reply), "incomplete") && is(ql_wire_member(reply, "indent"), "      "), "2");
	CHECK(is(status(ask("is_complete_request", "{\"code\":\"x = = 1\"}")), "invalid"), "3");
	CHECK(is(status(ask("is_complete_request", "{\"code\":\"?print\"}")), "complete"), "4");
	CASE("inspect_request");
	reply = ask("inspect_request", "{\"code\":\"y = tensor.zeros(2)\",\"cursor_pos\":12,\"detail_level\":0}");
	CHECK(ql_wire_flag(reply, "found", false) && strstr(plain(reply), "tensor.zeros"), "a function");
	run("local mine = tensor.zeros(2, 3);");
	reply = ask("inspect_request", "{\"code\":\"\xc3\xa9 = mine\",\"cursor_pos\":6}");
	CHECK(ql_wire_flag(reply, "found", false) && strstr(plain(reply), "mine, float32(2, 3)"), "%s", plain(reply));
	reply = ask("inspect_request", "{\"code\":\"nothing_at_all\",\"cursor_pos\":3}");
	CHECK(!ql_wire_flag(reply, "found", true) && is(status(reply), "ok"), "an unknown name");
	CASE("complete_request");
	reply = ask("complete_request", "{\"code\":\"x = \",\"cursor_pos\":4}");
	CHECK(is(status(reply), "ok") && cJSON_IsArray(at(reply, "matches")), "1");
	CHECK(ql_wire_integer(reply, "cursor_end", 0) == 4, "characters");
	CASE("history_request");
	run("1 + 1");
	run("'two'");
	reply = at(ask("history_request", "{\"hist_access_type\":\"tail\",\"n\":2,\"output\":true,\"raw\":true}"),
		"history");
	reply = cJSON_GetArrayItem(reply, 1);
	CHECK(is(cJSON_GetArrayItem(cJSON_GetArrayItem(reply, 2), 1)->valuestring, "\"two\""), "tail");
	reply = at(ask("history_request", "{\"hist_access_type\":\"range\",\"session\":0,\"start\":1,\"stop\":3}"),
		"history");
	CHECK(cJSON_GetArraySize(reply) == 2, "range");
	reply = at(ask("history_request", "{\"hist_access_type\":\"search\",\"pattern\":\"1 ?*\",\"n\":1}"), "history");
	CHECK(cJSON_GetArraySize(reply) == 1, "search");
}

static void test_others(void)
{
	struct ql_envelope e;

	CASE("kernel_info, comms, debugger");
	CHECK(is(ql_wire_member(at(ask("kernel_info_request", "{}"), "language_info"), "name"), "lua"), "info");
	CHECK(cJSON_IsObject(at(ask("comm_info_request", "{}"), "comms")), "comms");
	ask("comm_open", "{\"comm_id\":\"c\",\"target_name\":\"t\",\"data\":{}}");
	CHECK(is(types(), "status comm_close status") && is(member("comm_close", 0, "comm_id"), "c"), "comm");
	CHECK(!ql_wire_flag(ask("debug_request", "{\"seq\":4,\"command\":\"attach\"}"), "success", true), "debugger");
	CASE("unknown types are left alone");
	CHECK(!ask("make_coffee_request", "{}") && front.n == 0, "%s", types());
	CASE("the control channel runs no cells");
	e = request("execute_request", "{\"code\":\"1\"}");
	ql_jupyter_take(&front.kernel, QL_CHANNEL_CONTROL, &e);
	CHECK(front.n == 0, "%s", types());
	CASE("os.exit answers and leaves");
	CHECK(is(status(run("print 'bye' pcall(os.exit, 3)")), "ok") && is(member("stream", 0, "text"), "bye\n"),
		"answer");
	CHECK(front.kernel.leave && front.kernel.code == 3, "code");
	front.kernel.leave = front.kernel.exiting = false;
	ql_interrupt_clear(front.kernel.state);
	CASE("exit and shutdown_request");
	CHECK(is(ql_wire_member(cJSON_GetArrayItem(at(run("exit"), "payload"), 0), "source"), "ask_exit"), "exit");
	CHECK(ql_wire_flag(ask("shutdown_request", "{\"restart\":true}"), "restart", false) && front.kernel.leave,
		"shutdown");
}

int main(void)
{
	struct ql_port port = {take, wait_message, wake, NULL};
	struct ql_options options;
	char error[QL_STATE_ERROR + QL_OPTIONS_ERROR];
	struct ql_state *state = ql_options_read(&options, error) ? ql_state_new(&options, 0, error) : NULL;

	front.terminal = stdout;
	if (!state || !ql_signer_begin(&front.signer, "k") ||
		!ql_jupyter_begin(&front.kernel, state, &port, "k", error)) {
		CHECK(false, "%s", error);
		return check_end();
	}
	front.heard = stdout;
	stdout = front.terminal;
	test_cells();
	test_options();
	test_queue();
	test_input();
	test_display();
	test_questions();
	test_others();
	forget();
	stdout = front.heard;
	ql_jupyter_end(&front.kernel);
	ql_signer_end(&front.signer);
	ql_state_free(state);
	return check_end();
}
