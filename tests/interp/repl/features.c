/* SPDX-License-Identifier: MIT
 * labels: quick serial
 * What the prompt offers besides editing (tests/interp/repl/editing.c), each feature typed into the line editor on a
 * pseudo-terminal and judged by the whole screen. A line {input, output} is right when the screen has just the
 * prompt with the input, the output, and the next prompt; an output of several texts that begins with "~" is right
 * when all of them, separated by "~", stand there in this order.
 */
#include "interp/plot/plplot.h"
#include "tests/interp/repl/typist.h"

struct line {
	const char *input, *output;
};

static int number; /* of the next input */

/* Only the prompt is left, in the first row. */
static void clear(struct terminal *t)
{
	char prompt[32];

	snprintf(prompt, sizeof(prompt), "In [%d]:", number);
	terminal_send(t, CTRL_L);
	for (int i = 0; i < 400; i++) {
		screen_text(&t->screen, t->text);
		if (!strcmp(t->text, prompt) && t->screen.row == 0)
			return;
		terminal_read(t, 20);
	}
	CHECK(false, "wanted only %s, got %s", prompt, t->text);
}

static bool has_all(const char *text, const char *wanted)
{
	char part[256];

	while (*wanted == '~') {
		size_t n = strcspn(++wanted, "~");

		snprintf(part, sizeof(part), "%.*s", (int)n, wanted);
		text = strstr(text, part);
		if (!text)
			return false;
		text += strlen(part);
		wanted += n;
	}
	return true;
}

static void run(struct terminal *t, const char *input, const char *output)
{
	char wanted[4096], next[32];
	bool good;

	clear(t);
	snprintf(next, sizeof(next), "\nIn [%d]:", number + 1);
	terminal_send(t, input);
	terminal_send(t, ENTER);
	good = terminal_shows(t, next, (int)strlen(next));
	CHECK(good, "%s: no prompt%s: %s", input, next, t->text);
	snprintf(wanted, sizeof(wanted), "In [%d]: %s%s%s%s", number, input, *output ? "\n" : "", output, next);
	if (*output == '~')
		good = has_all(t->text, output);
	else
		good = !strcmp(t->text, wanted);
	CHECK(good, "%s: wanted <<%s>>, got <<%s>>", input, output, t->text);
	number++;
}

static void run_all(struct terminal *t, const struct line *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		run(t, lines[i].input, lines[i].output);
}

#define RUN(t, ...) \
	do { \
		static const struct line lines_[] = {__VA_ARGS__}; \
\
		run_all(t, lines_, sizeof(lines_) / sizeof(lines_[0])); \
	} while (0)

static struct terminal *begin(const char *setting)
{
	number = 1;
	return open_with(setting);
}

/* ---- values and variables ---- */

static void test_results(struct terminal *t)
{
	CASE("In, Out, _, a trailing ;, =expression");
	RUN(t, {"6 * 7", "Out[1]: 42"}, {"_ + Out[1]", "Out[2]: 84"}, {"In[1], #In", "~Out[3]: \"6 * 7\" ~3"},
		{"_;", ""}, {"x = 5 x", "Out[5]: 5"}, {"= x, nil", "~Out[6]: 5 ~ nil"}, {"\"a;\"", "Out[7]: \"a;\""});
	CASE("Out holds big tensors only as long as something else does");
	RUN(t, {"b = tensor.zeros(1 << 19) s = tensor.zeros(4) b, s;", ""}, {"b, s = nil, nil", ""},
		{"tensor.zeros(1 << 19):size()", "Out[10]: 524288"},
		{"b = tensor.zeros(1 << 19) b", "~float32(524288)"}, {"Out[11] == b", "Out[12]: true"}, {"b = nil", ""},
		{"for i = 1, 2 do collectgarbage() end", ""},
		{"Out[11], tensor.memory().now < 1 << 20", "~Out[15]: nil ~ true"});
	CASE("local variables live on and are shared with closures");
	RUN(t, {"local n = 1 local function inc() n = n + 1 return n end", ""}, {"inc(), n", "~Out[17]: 2 ~ 2"},
		{"n = 10", ""}, {"inc(), n, _G.n", "~Out[19]: 11 ~ 11 ~ nil"},
		{"do local hidden = 1 end hidden", "Out[20]: nil"}, {"%forget n", ""}, {"n", "Out[22]: nil"});
}

static void test_questions(struct terminal *t)
{
	CASE("?name, name?, ??name, ?*part*");
	RUN(t, {"?tensor.eye", "~tensor.eye(n~Example~tensor.eye(2)"},
		{"nn.Linear?", "~nn.Linear(inputs, outputs~Options~bias"},
		{"??report", "~Example~-- quoll/interp/prelude/report.lua:~function report"},
		{"?*soft*", "~nn.Softmax ~x:softmax "}, {"?no_such_name", "~no_such_name"},
		{"help 'keys'", "~C-x C-e ~opens $VISUAL"});
	CASE("did you mean: globals, fields, methods, options, values, magics, settings");
	RUN(t, {"tesnor", "Out[29]: nil"}, {"tesnor.zeros(1)", "~did you mean 'tensor'?"},
		{"tensor.zeors(1)", "~did you mean 'zeros'?"}, {"tensor.ones(1):sume()", "~did you mean 'sum'?"},
		{"tensor.ones(1):sum{axes=1}", "~unknown option 'axes'; did you mean 'axis'?"},
		{"tensor.zeros{1, dtype='flaot32'}", "~did you mean 'float32'?"},
		{"nn.Linear(1, 1):foward()", "~did you mean 'forward'?"}, {"%hsitory", "~did you mean 'history'?"},
		{"%set precison 1", "~did you mean 'precision'?"});
}

/* ---- magics ---- */

static void test_measure(struct terminal *t)
{
	CASE("%%time, %%timeit, %%bench");
	RUN(t, {"%time 1 + 1", "~Out[38]: 2~time ~ (processor ~), tensors +0 B at the peak~allocations"},
		{"%timeit tensor.ones(10)", "~median~spread"},
		{"%bench tensor.ones(10):sum()", "~median time of a call"},
		{"#_, _.name", "~Out[41]: 1 ~ \"tensor.ones(10):sum()\""}, {"%time", "~usage: %time code"});
	CASE("the line below an input; %%explain tells which ops fell back and why");
	RUN(t, {"q = tensor.ones(4, 4):quantize 'int8'", ""},
		{"(q + 1):exp();", "1 op fell back to float32; %explain shows why"},
		{"%explain", "~add ~int8q~fallback~without out=~exp ~1 op fell back to float32"},
		{"%set footer on", ""}, {"1;", "~s, tensors +0 B at the peak"}, {"%set footer off", ""},
		{"(q + 1):exp();", ""}, {"%set footer auto", ""});
	CASE("what ran without a fallback is not accused");
	RUN(t, {"q:matmul(q, {out='int8'});", ""},
		{"%explain", "~matmul ~int8q x int8q ~ int8 ~gemm_i8_~nothing fell back to float32"});
}

static void test_files(struct terminal *t)
{
	CASE("%%save and %%load: tensors, models, tables");
	RUN(t, {"w = tensor{1, 2} m = nn.Linear(2, 1) local k = {1, {'a'}} u = m(w):item()", ""},
		{"%save all w m k u", "~4 variables in all.safetensors"}, {"w, m, k, v = nil", ""},
		{"%load all", "4 variables of all.safetensors: w m k (local) u"},
		{"w:sum():item(), k[2][1], m(w):item() == u", "~Out[57]: 3.0 ~ \"a\" ~ true"},
		{"%load nothing", "~nothing.safetensors"});
	CASE("%%who");
	RUN(t, {"%who", "~name ~kind ~k (local) ~table~m ~Linear(2, 1), 3 parameters~12 B~"
			"q ~int8 ~4x4~symmetric~20 B"});
	CASE("%%run of a file, of inputs, of a range");
	RUN(t, {"io.open('a.lua', 'w'):write('ran = (ran or 0) + #arg'):close();", ""}, {"%run a.lua x y", ""},
		{"ran", "Out[62]: 2"}, {"%run 5", "Out[5]: 5"}, {"%run 1-2", "Out[1]: 42\nOut[2]: 84"},
		{"%run 999", "no input In[999]"}, {"%run nothere.lua", "~nothere.lua: No such file"});
	CASE("%%edit opens the editor on an input and runs the result");
	RUN(t, {"one = 7", ""}, {"%edit 67", ""}, {"one, two", "~Out[69]: 7 ~ 7"});
	CASE("%%history");
	RUN(t, {"%history -n 2", "~  68: two = 7~  69: one, two"},
		{"%history collectgarbage", "~  14: for i = 1, 2 do"}, {"%history -f notes.lua -n 4", "~notes.lua"},
		{"io.open 'notes.lua':read 'a':find 'two = 7' ~= nil", "Out[73]: true"});
	CASE("!command and $ command");
	RUN(t, {"!echo a b; exit 3", "a b\nexit status 3"}, {"$ ls notes.lua", "notes.lua"});
	CASE("%%set changes, lists, keeps");
	RUN(t, {"%set precision 1", ""}, {"tensor{0.25, 0.5}", "Out[77]: float32(2)  0.2  0.5"},
		{"%set precision 4", ""},
		{"%set precision x", "set: precision: wanted an integer from 0 to 16, got 'x'"},
		{"%set width", "~width ~0 to 1000"}, {"%magics", "~%run file~%set [name~%ls~%magics"},
		{"%journal", "~this session~The files are in "});
}

static void test_errors(struct terminal *t)
{
	CASE("a traceback has the lines, and the tensors of the failing one");
	RUN(t, {"function f(a) local b = a:t() return b:matmul(b) end", ""},
		{"f(tensor.ones(2, 3):quantize 'int8/1')",
			"~In[83]:1: matmul: wanted equal inner sizes~stack traceback:~In[83]:1: in function 'f'~"
			"a = int8(2, 3) symmetric, axis 1, scale 0.007874~b = int8(3, 2) symmetric, axis 2, scale 0.007874~"
			"In[84]:1: in main chunk~1 | f("});
	CHECK(!strcmp(style_of(t, "In[83]:1: matmul"), "31"), "style of the message: %s",
		style_of(t, "In[83]:1: matmul"));
	CASE("%%debug: variables where it was raised");
	clear(t);
	SHOWS(t, "%debug" ENTER, "\ndebug:", 7);
	SHOWS(t, "b:size()" ENTER, "\n3       2\ndebug:", 7);
	SHOWS(t, "up" ENTER, "f(tensor.ones(2, 3):quantize 'int8/1')\ndebug:", 7);
	CHECK(has_all(t->text, "~\n> ~In[84]:1  in "), "%s", t->text);
	number++;
	SHOWS(t, "quit" ENTER, "\nIn [86]:", 9);
	RUN(t, {"1 + 1", "Out[86]: 2"});
}

static void test_stale(void)
{
	struct terminal *t = begin(NULL);

	CASE("stale inputs are told, %%run stale runs them, in place changes count");
	RUN(t, {"v = tensor{1, 2, 3}", ""}, {"sum = v:sum():item()", ""}, {"half = sum / 2", ""},
		{"v:max():item()", "Out[4]: 3.0"},
		{"v:mul_(10);", "stale now: In[2] In[3]; %stale shows why, %run stale runs them again"},
		{"%stale", "~In[2] ~read v, changed by In[5]~"
			   "In[3] ~read sum, which In[2] makes~In[4] ~read v, changed by In[5]"},
		{"%run stale", "Out[4]: 30.0"}, {"sum, half", "~Out[8]: 60.0 ~30.0"}, {"%stale", "nothing is stale"});
	leave(t);
}

/* ---- a crash ---- */

static void test_restore(void)
{
	struct terminal *t = begin(NULL);
	int status;

	CASE("kill -9, then --restore shows inputs and outputs, and %%run above runs them");
	RUN(t, {"kept = 40", ""}, {"kept + 2", "Out[2]: 42"}, {"print 'shown'", "shown"});
	kill(t->pid, SIGKILL);
	waitpid(t->pid, &status, 0);
	close(t->fd);
	free(t);
	t = terminal_start(rows, columns, settings(NULL), "--restore");
	CHECK(terminal_shows(t, "\nIn [4]:", 8), "no prompt: %s", t->text);
	CHECK(has_all(t->text, "~In [1]: kept = 40~In [2]: kept + 2\nOut[2]: 42\n"
			       "In [3]: print 'shown'\nshown\n~nothing was run"),
		"%s", t->text);
	number = 4;
	RUN(t, {"kept, In[2]", "~Out[4]: nil ~\"kept + 2\""}, {"%run above", "~Out[2]: 42\nshown"},
		{"kept", "Out[6]: 40"});
	leave(t);
}

/* ---- completion, keys, widths ---- */

static void test_completion(struct terminal *t)
{
	char prompt[32];

	CASE("completion: one's own names, fields, methods of models, files");
	RUN(t, {"config = {layers = {first = 1}, lr = 2} net = nn.Linear(2, 2)", ""}, {"local configured = 1", ""},
		{"%save ~/all x", "~/all.safetensors"});
	clear(t);
	snprintf(prompt, sizeof(prompt), "In [%d]: config", number);
	SHOWS(t, "conf\t", "\n configured   config", 15);
	CHECK(!strncmp(t->text, prompt, strlen(prompt)), "%s", t->text);
	SHOWS(t,
		"\x15"
		"config.lay\t.f\t",
		": config.layers.first", 28);
	fresh(t, number);
	SHOWS(t, "net:named\t", ": net:named", 18);
	fresh(t, number);
	SHOWS(t, "net.wei\t", ": net.weight", 19);
	fresh(t, number);
	SHOWS(t, "net:quantize{mod\t'dyn\t", ": net:quantize{mode='dynamic", 35);
	fresh(t, number);
	SHOWS(t, "%run no\t", ": %run notes.lua", 23);
	fresh(t, number);
	SHOWS(t, "%load ~/al\t", ": %load ~/all.safetensors", 32);
	fresh(t, number);
	SHOWS(t, "%set foo\t au\t", ": %set footer auto", 25);
	fresh(t, number);
	SHOWS(t, "tensor.load 'all.s\t", ": tensor.load 'all.safetensors", 37);
	fresh(t, number);
}

static const struct {
	const char *keys, *text;
	int column;
} edits[] = {
	{"one two\x17\x15zero \x19", "zero one two", 20}, /* C-w C-u C-y: cuts in a row are one */
	{"uno\x15q\x7F"
	 "due\x15\x19\033y",
		"uno", 11}, /* M-y: what was cut before that */
	{"ab\x02"
	 "c\x06"
	 "d",
		"acbd", 12},                                                      /* C-b C-f */
	{"abc\x01x\x05y", "xabcy", 13},                                           /* C-a C-e */
	{"uno due\033b\033d", "uno", 12},                                         /* M-b M-d */
	{"one two\x01\033c\033u", "One TWO", 15},                                 /* M-c M-u */
	{"UNO\x01\033l", "uno", 11},                                              /* M-l */
	{"ab\x14", "ba", 10},                                                     /* C-t */
	{"a b\x1F\033_", "a b", 11},                                              /* C-_ M-_ */
	{"x\x18\x15", "", 8},                                                     /* C-x C-u */
	{"abc\x01\x0B\x19\x19", "abcabc", 14},                                    /* C-k C-y C-y */
	{"'\xF0\x9F\x98\x80\xF0\x9F\x98\x80'\x02\x7F", "'\xF0\x9F\x98\x80'", 11}, /* an emoji is two columns */
};

static void test_keys(void)
{
	struct terminal *t = begin(NULL);

	CASE("keys of Emacs, kill ring, emoji");
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		char wanted[128];

		fresh(t, 1);
		snprintf(wanted, sizeof(wanted), "In [1]:%s%s", *edits[i].text ? " " : "", edits[i].text);
		SHOWS(t, edits[i].keys, wanted, edits[i].column);
	}
	CASE("the terminal changes its size while an input runs");
	fresh(t, 1);
	terminal_send(t, "os.execute 'sleep 0.5'" ENTER);
	pause_ms(200);
	terminal_resize(t, rows, 30);
	CHECK(terminal_shows(t, "In [2]:", 8), "%s", t->text);
	fresh(t, 2);
	SHOWS(t, "x = 'aaaaaaaaaabbbbbbbbbbcccccccccc'", "In [2]: x = 'aaaaaaaaaabbbbbbb\nbbbcccccccccc'", 14);
	leave(t);
}

/* ---- figures ---- */

static void check_plot(const char *setting, const char *answer, const char *head)
{
	struct terminal *t = begin(setting);

	t->answer = answer;
	run(t, "plot.line{{1, 4, 9}, title = 'a title'}", head ? "Out[1]:" : "~a title~\xE2\x94\x94");
	CHECK(t->screen.pictures == (head != NULL), "%s: %d pictures", setting, t->screen.pictures);
	if (head)
		CHECK(!strncmp(t->screen.picture, head, strlen(head)) && t->screen.picture_size > 3000, "%s, %zu bytes",
			t->screen.picture, t->screen.picture_size);
	CHECK(t->screen.unknown == 0, "%d unknown sequences", t->screen.unknown);
	run(t, "1 + 1", "Out[2]: 2");
	leave(t);
}

static void test_pasted(void)
{
	struct terminal *t = begin(NULL);

	CASE("a session that is pasted with its prompts; lines that are no Lua between others");
	RUN(t, {"\033[200~In [41]: p = 5\nIn [42]: p * 2\nOut[42]: 10\n\nIn [43]: p + 2\033[201~", "~Out[1]: 7"},
		{"\033[200~In [41]: for i = 1, 2 do\n    ...: print('no', i)\n    ...: end\033[201~",
			"~no      1~no      2"},
		{"\033[200~local k = p\n!echo from sh\n%reset -f\np, k\033[201~",
			"~from sh~2 variables dropped~Out[3]: nil"},
		{"f = 1 != 2", "~'~=' is the operator 'not equal' here"});
	leave(t);
}

static void test_plots(void)
{
	char facts[256];

	CASE("a figure in characters");
	check_plot("QUOLL_PLOT=text", NULL, NULL);
	check_plot("NO_COLOR=1", "\033[?62;4c", NULL);
	check_plot("TERM=xterm", NULL, NULL);
	if (!ql_plplot_describe(facts, sizeof(facts))) {
		SKIP("pictures in the prompt", facts);
		return;
	}
	CASE("kitty's pictures");
	check_plot("TERM=xterm-kitty", NULL, "_Ga=T,f=100,q=2,m=1;");
	CASE("iTerm2's pictures");
	check_plot("TERM_PROGRAM=iTerm.app", NULL, "]1337;File=inline=1;");
	CASE("sixel, when the terminal says that it has it");
	check_plot("TERM=xterm", "\033[?62;4;6c", "P0;0;0q");
}

int main(void)
{
	struct terminal *t;

	if (!typist_begin("the prompt in a terminal", 40, 100))
		return check_end();
	if (chdir(folder)) { /* for the files that are written */
		printf("%s: %s\n", folder, strerror(errno));
		return 1;
	}
	t = begin(NULL);
	test_results(t);
	test_questions(t);
	test_measure(t);
	test_files(t);
	test_errors(t);
	test_completion(t);
	CHECK(t->screen.unknown == 0, "%d sequences that this screen does not know", t->screen.unknown);
	leave(t);
	test_stale();
	test_restore();
	test_keys();
	test_pasted();
	test_plots();
	return check_end();
}
