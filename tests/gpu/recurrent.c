/* SPDX-License-Identifier: MIT
 * The kernels recurrent and recurrent_back: float32 against the formulas of lstm, gru and rnn, written out here one sequence,
 * step and unit after the other; other types, and codes, against the ops of the core.
 */
#include "nn/nn.h"
#include "tensor/kernels/kernels.h"
#include "tensor/vmath/act.h"
#include "tests/tools/gpu_codes.h"

static struct gpu g;

enum cell { LSTM, GRU, TANH, RELU, CELLS };
static const struct {
	const char *op, *back;
	int gates, width;
} cells[] = {
	{"lstm", "lstm_back", 4, 5}, {"gru", "gru_back", 3, 4}, {"rnn", "rnn_back", 1, 1}, {"rnn", "rnn_back", 1, 1}};

struct shape {
	int64_t batch, steps, input, hidden;
	bool batch_first, bias, views; /* views: of x with both axes exchanged, of w_hh transposed */
};

#define ROOM 40000

/* A call and what it must give; (rows, …) in the order of x. */
struct layer {
	struct shape s;
	enum cell cell;
	float x[ROOM], h[ROOM], c[ROOM], w_in[ROOM], w[ROOM], bias_in[ROOM], bias[ROOM];
	float y[ROOM], last_h[ROOM], last_c[ROOM], kept[ROOM];
	float dy[ROOM], dh[ROOM], dc[ROOM], din[ROOM], dhidden[ROOM], first_h[ROOM], first_c[ROOM];
};
static struct layer l;

static int64_t row_of(int64_t b, int64_t t)
{
	return l.s.batch_first ? b * l.s.steps + t : t * l.s.batch + b;
}

static void fill(float *x, int64_t n, float by)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = gpu_draw_float() / 8 * by;
}

/* ---- the formulas ---- */

static float dot(const float *a, const float *b, int64_t n)
{
	float sum = 0;

	for (int64_t i = 0; i < n; i++)
		sum += a[i] * b[i];
	return sum;
}

static float h_before(int64_t b, int64_t t, int64_t j)
{
	int64_t n = l.s.hidden;

	return t == 0 ? l.h[b * n + j] : l.y[row_of(b, t - 1) * n + j];
}
static float c_before(int64_t b, int64_t t, int64_t j)
{
	int64_t n = l.s.hidden;

	return t == 0 ? l.c[b * n + j] : l.kept[(row_of(b, t - 1) * 5 + 4) * n + j];
}

/* The sides of gate `gate` with their biases. */
static float side_x(int64_t row, int64_t gate, int64_t j)
{
	int64_t k = gate * l.s.hidden + j;

	return dot(l.x + row * l.s.input, l.w_in + k * l.s.input, l.s.input) + (l.s.bias ? l.bias_in[k] : 0);
}
static float side_h(int64_t b, int64_t t, int64_t gate, int64_t j)
{
	int64_t n = l.s.hidden, k = gate * n + j;
	const float *h = t == 0 ? l.h + b * n : l.y + row_of(b, t - 1) * n;

	return dot(h, l.w + k * n, n) + (l.s.bias ? l.bias[k] : 0);
}
static float both(int64_t b, int64_t t, int64_t gate, int64_t j)
{
	return side_x(row_of(b, t), gate, j) + side_h(b, t, gate, j);
}

static float *kept_at(int64_t b, int64_t t, int64_t part, int64_t j)
{
	return &l.kept[(row_of(b, t) * cells[l.cell].width + part) * l.s.hidden + j];
}

static float forward_at(int64_t b, int64_t t, int64_t j)
{
	float i, f, o, c, r, z, side, fresh, a;

	switch (l.cell) {
	case LSTM:
		i = *kept_at(b, t, 0, j) = ql_sigmoid(both(b, t, 0, j));
		f = *kept_at(b, t, 1, j) = ql_sigmoid(both(b, t, 1, j));
		a = *kept_at(b, t, 2, j) = ql_tanh(both(b, t, 2, j));
		o = *kept_at(b, t, 3, j) = ql_sigmoid(both(b, t, 3, j));
		c = *kept_at(b, t, 4, j) = f * c_before(b, t, j) + i * a;
		return o * ql_tanh(c);
	case GRU:
		r = *kept_at(b, t, 0, j) = ql_sigmoid(both(b, t, 0, j));
		z = *kept_at(b, t, 1, j) = ql_sigmoid(both(b, t, 1, j));
		side = *kept_at(b, t, 3, j) = side_h(b, t, 2, j);
		fresh = *kept_at(b, t, 2, j) = ql_tanh(side_x(row_of(b, t), 2, j) + r * side);
		return (1 - z) * fresh + z * h_before(b, t, j);
	case TANH: return *kept_at(b, t, 0, j) = ql_tanh(both(b, t, 0, j));
	default: a = both(b, t, 0, j); return *kept_at(b, t, 0, j) = a < 0 ? 0 : a;
	}
}

/* Gradients of a unit from that of its h behind the step; first_h and first_c carry what goes on to the step before. */
static void backward_at(int64_t b, int64_t t, int64_t j, float dh)
{
	int64_t n = l.s.hidden, gates = cells[l.cell].gates, row = row_of(b, t);
	float *d = l.din + row * gates * n + j, *e = l.dhidden + row * gates * n + j, *carry = &l.first_c[b * n + j];
	float k[5], up = l.dy[row * n + j] + dh, dc, s;

	for (int p = 0; p < cells[l.cell].width; p++)
		k[p] = *kept_at(b, t, p, j);
	switch (l.cell) {
	case LSTM:
		s = ql_tanh(k[4]);
		dc = *carry + up * k[3] * (1 - s * s);
		d[0] = dc * k[2] * (k[0] * (1 - k[0]));
		d[n] = dc * c_before(b, t, j) * (k[1] * (1 - k[1]));
		d[2 * n] = dc * k[0] * (1 - k[2] * k[2]);
		d[3 * n] = up * s * (k[3] * (1 - k[3]));
		*carry = dc * k[1];
		break;
	case GRU:
		up += *carry;
		s = up * (1 - k[1]) * (1 - k[2] * k[2]);
		d[0] = e[0] = s * k[3] * (k[0] * (1 - k[0]));
		d[n] = e[n] = up * (h_before(b, t, j) - k[2]) * (k[1] * (1 - k[1]));
		d[2 * n] = s;
		e[2 * n] = s * k[0];
		*carry = up * k[1];
		return;
	case TANH: d[0] = up * (1 - k[0] * k[0]); break;
	default: d[0] = up * (k[0] > 0 ? 1.0f : 0.0f); break;
	}
	for (int64_t p = 0; p < gates; p++)
		e[p * n] = d[p * n];
}

static float product_behind(int64_t b, int64_t t, int64_t j)
{
	int64_t n = l.s.hidden, sums = cells[l.cell].gates * n;
	float sum = 0;

	for (int64_t k = 0; k < sums; k++)
		sum += l.dhidden[row_of(b, t) * sums + k] * l.w[k * n + j];
	return sum;
}

static void reference(void)
{
	int64_t n = l.s.hidden, last = l.s.steps - 1;

	for (int64_t t = 0; t <= last; t++)
		for (int64_t i = 0; i < l.s.batch * n; i++)
			l.y[row_of(i / n, t) * n + i % n] = forward_at(i / n, t, i % n);
	for (int64_t i = 0; i < l.s.batch * n; i++) {
		l.last_h[i] = h_before(i / n, l.s.steps, i % n);
		if (l.cell == LSTM)
			l.last_c[i] = c_before(i / n, l.s.steps, i % n);
		l.first_c[i] = l.cell == LSTM ? l.dc[i] : 0;
	}
	for (int64_t t = last; t >= 0; t--)
		for (int64_t i = 0; i < l.s.batch * n; i++)
			backward_at(i / n, t, i % n, t == last ? l.dh[i] : product_behind(i / n, t + 1, i % n));
	for (int64_t i = 0; i < l.s.batch * n; i++)
		l.first_h[i] = product_behind(i / n, 0, i % n) + (l.cell == LSTM ? 0 : l.first_c[i]);
}

static void make(enum cell cell, const struct shape *s)
{
	int64_t rows = s->batch * s->steps, n = s->hidden, sums = cells[cell].gates * n, all = s->batch * n;
	float by = 1 / sqrtf((float)n);

	l.s = *s;
	l.cell = cell;
	fill(l.x, rows * s->input, 2);
	fill(l.h, all, 1);
	fill(l.c, all, 1);
	fill(l.w_in, sums * s->input, by);
	fill(l.w, sums * n, by);
	fill(l.bias_in, sums, by);
	fill(l.bias, sums, by);
	fill(l.dy, rows * n, 1);
	fill(l.dh, all, 1);
	fill(l.dc, all, 1);
	reference();
}

/* ---- on the device ---- */

static struct ql_gpu_tensor matrix(int64_t rows, int64_t columns, const float *data)
{
	return gpu_tensor(&g, "float32", 2, (const int64_t[]){rows, columns}, data, 0);
}

static struct ql_gpu_tensor sequence(int64_t width, const float *data)
{
	int64_t shape[3] = {l.s.batch, l.s.steps, width};
	struct ql_gpu_tensor t;

	if (!l.s.batch_first) {
		shape[0] = l.s.steps;
		shape[1] = l.s.batch;
	}
	t = gpu_tensor(&g, "float32", 3, shape, data, 0);
	return t;
}

/* The same numbers in memory where the first two axes are exchanged. */
static void exchange(struct ql_gpu_tensor *t, const float *data)
{
	float *other = check_alloc((size_t)gpu_count(t) * sizeof(*other) + 1);
	int64_t a = t->shape[0], b = t->shape[1], inner = t->rank == 3 ? t->shape[2] : 1;

	for (int64_t i = 0; i < a; i++)
		for (int64_t j = 0; j < b; j++)
			memcpy(other + (j * a + i) * inner, data + (i * b + j) * inner, (size_t)inner * sizeof(*other));
	g.v->to_device(g.s, t->at, other, (uint64_t)gpu_count(t) * sizeof(*other));
	t->stride[0] = inner;
	t->stride[1] = a * inner;
	free(other);
}

static bool run(
	const char *op, struct ql_gpu_tensor *in, int n_in, struct ql_gpu_tensor *out, int n_out, uint32_t flags)
{
	struct ql_gpu_option options[] = {
		{.name = "batchfirst", .i = l.s.batch_first}, {.name = "act", .type = QL_GPU_OPTION_TEXT, .s = "relu"}};
	struct ql_gpu_call call = gpu_call(op, in, n_in, out, n_out);

	call.options = options;
	call.n_options = l.cell == RELU ? 2 : 1;
	call.flags = flags;
	return gpu_run(&g, call) || CHECK(false, "%s refused: %s", op, g.why);
}

/* Equal bits, or near. */
static void expect(const struct ql_gpu_tensor *t, const float *want, bool exact, const char *what)
{
	int64_t n = gpu_count(t);
	float *got = check_alloc((size_t)n * sizeof(*got) + 1);

	gpu_get(&g, t, got);
	for (int64_t i = 0; i < n; i++)
		if (!CHECK(exact ? gpu_same_f32(got[i], want[i])
				 : fabsf(got[i] - want[i]) <= 2e-6f * (4 + fabsf(want[i])),
			    "%s %s (%d, %d, %d, %d): element %d is %.9g, wanted %.9g", cells[l.cell].op, what,
			    (int)l.s.batch, (int)l.s.steps, (int)l.s.input, (int)l.s.hidden, (int)i, (double)got[i],
			    (double)want[i]))
			break;
	free(got);
}

static void free_all(struct ql_gpu_tensor *t, int n)
{
	for (int i = 0; i < n; i++)
		gpu_free(&g, &t[i]);
}

static void try_forward(bool ordered)
{
	int64_t n = l.s.hidden, sums = cells[l.cell].gates * n, rows = l.s.batch * l.s.steps;
	struct ql_gpu_tensor in[7], out[4];
	int i = 0, o = 0;

	in[i++] = sequence(l.s.input, l.x);
	in[i++] = matrix(l.s.batch, n, l.h);
	if (l.cell == LSTM)
		in[i++] = matrix(l.s.batch, n, l.c);
	in[i++] = matrix(sums, l.s.input, l.w_in);
	in[i++] = matrix(sums, n, l.w);
	if (l.s.views) {
		exchange(&in[0], l.x);
		exchange(&in[i - 1], l.w);
	}
	if (l.s.bias) {
		in[i++] = gpu_tensor(&g, "float32", 1, &sums, l.bias_in, 0);
		in[i++] = gpu_tensor(&g, "float32", 1, &sums, l.bias, 0);
	}
	out[o++] = sequence(n, NULL);
	out[o++] = matrix(l.s.batch, n, NULL);
	if (l.cell == LSTM)
		out[o++] = matrix(l.s.batch, n, NULL);
	out[o++] = matrix(rows, cells[l.cell].width * n, NULL);
	for (int kept = 1; kept >= 0; kept--) {
		if (!run(cells[l.cell].op, in, i, out, o - !kept, ordered ? QL_GPU_ORDERED : 0))
			break;
		expect(&out[0], l.y, ordered, "y");
		expect(&out[1], l.last_h, ordered, "h");
		if (l.cell == LSTM)
			expect(&out[2], l.last_c, ordered, "c");
		if (kept)
			expect(&out[o - 1], l.kept, ordered, "saved");
	}
	free_all(in, i);
	free_all(out, o);
}

static void try_backward(bool ordered)
{
	int64_t n = l.s.hidden, sums = cells[l.cell].gates * n, rows = l.s.batch * l.s.steps;
	struct ql_gpu_tensor in[6], out[3];
	int i = 0, o = 0;

	in[i++] = sequence(n, l.dy);
	in[i++] = matrix(l.s.batch, n, l.dh);
	if (l.cell == LSTM)
		in[i++] = matrix(l.s.batch, n, l.dc);
	in[i++] = matrix(rows, cells[l.cell].width * n, l.kept);
	in[i++] = matrix(sums, n, l.w);
	if (l.s.views) {
		exchange(&in[0], l.dy);
		exchange(&in[i - 1], l.w);
	}
	in[i++] = matrix(l.s.batch, n, l.cell == LSTM ? l.c : l.h);
	if (l.cell != LSTM)
		in[i++] = sequence(n, l.y);
	out[o++] = matrix(rows, sums, NULL);
	out[o++] = matrix(l.s.batch, n, NULL);
	if (l.cell == LSTM)
		out[o++] = matrix(l.s.batch, n, NULL);
	else if (l.cell == GRU)
		out[o++] = matrix(rows, sums, NULL);
	if (run(cells[l.cell].back, in, i, out, o, ordered ? QL_GPU_ORDERED : 0)) {
		CHECK(!strcmp(g.name, "recurrent_back"), "kernel %s", g.name);
		expect(&out[0], l.din, ordered, "gradient of the sums");
		expect(&out[1], l.first_h, ordered, "gradient of h");
		if (o == 3)
			expect(&out[2], l.cell == LSTM ? l.first_c : l.dhidden, ordered, "third gradient");
	}
	free_all(in, i);
	free_all(out, o);
}

static const struct shape shapes[] = {
	{1, 1, 1, 1, true, true, false},
	{3, 4, 5, 6, true, true, true},
	{17, 3, 33, 35, false, true, false},
	{2, 3, 40, 72, true, false, false}, /* several stages of k, rows of whole vectors */
	{5, 2, 0, 9, false, true, false},
	{19, 2, 7, 20, false, true, true},
	{0, 2, 3, 4, true, true, false},
	{2, 3, 4, 0, true, true, false},
};

static void floats(bool all)
{
	for (int c = 0; c < CELLS; c++)
		for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
			for (int ordered = 0; ordered < 2; ordered++) {
				if (!all && (s != 3 && s != 2))
					continue;
				make((enum cell)c, &shapes[s]);
				try_forward(ordered);
				try_backward(ordered);
			}
}

/* ---- against the core ---- */

/* How operands are given: a dtype, or a spec of codes. NULL: float32. */
struct form {
	const char *x, *weights, *dtype, *states, *path;
};
static const struct form forms[] = {
	{"uint8", "int8/1", NULL, "int8", "int8"},
	{"int8", "int8", NULL, "int8", "int8"},
	{NULL, "int8/1", NULL, "int8", "mixed"},
	{"uint8", "int8/1", NULL, NULL, "mixed"},
	{"uint8", "int4/1", NULL, NULL, "mixed"},
	{NULL, "int4/1", NULL, NULL, "float32"},
	{NULL, "uint8", NULL, "int8", "float32"},
	{NULL, NULL, "float16", NULL, "float32"},
	{NULL, NULL, "bfloat16", NULL, "float32"},
	{NULL, NULL, "float64", NULL, "float64"},
};

/* Tensor of the core with random numbers. */
static struct ql_tensor *core_tensor(
	struct ql_ctx *ctx, const struct form *f, const char *text, int rank, int64_t a, int64_t b, int64_t c)
{
	struct ql_tensor *t = NULL, *made = NULL;
	struct ql_spec spec;

	if (ql_tensor_new(ctx, QL_float32, rank, (int64_t[]){a, b, c}, &t))
		return NULL;
	fill(ql_tensor_data(t), ql_tensor_nelem(t), rank == 3 ? 2 : 1 / sqrtf((float)b));
	if (text)
		CHECK(!ql_spec_parse(ctx, text, &spec) && !ql_quantize(ctx, t, &spec, &made), "%s: %s", text, ctx->err);
	else if (f->dtype)
		CHECK(!ql_tensor_cast(ctx, t, (unsigned)ql_dtype_by_name(f->dtype), &made), "%s", ctx->err);
	else
		return t;
	ql_tensor_release(ctx, t);
	return made;
}

static void compare(struct ql_call *call, const struct form *f)
{
	struct gpu_codes codes[7];
	struct ql_gpu_tensor in[7], out[3];
	struct ql_gpu_option options[] = {{.name = "states", .type = QL_GPU_OPTION_TEXT, .s = "int8"}};
	struct ql_gpu_call device = gpu_call(call->op->doc.name, in, call->n_in, out, call->n_out);
	struct ql_gpu_plan plan = {.size = sizeof(plan)};

	for (int i = 0; i < call->n_in; i++) {
		if (call->in[i]->q)
			gpu_codes_of(&g, &codes[i], call->in[i], false);
		in[i] = call->in[i]->q ? codes[i].t : gpu_of_core(&g, call->in[i], true);
	}
	for (int i = 0; i < call->n_out; i++)
		out[i] = gpu_of_core(&g, call->out[i], false);
	device.flags = QL_GPU_ORDERED;
	device.options = options;
	device.n_options = f->states ? 1 : 0;
	if (CHECK(gpu_run(&g, device), "%s refused: %s", device.op, g.why)) {
		for (int i = 0; i < call->n_out; i++)
			gpu_expect(&g, &out[i], call->out[i], "result");
		g.v->plan(g.d, g.v->op_find(device.op), &device, &plan);
		CHECK(!strcmp(plan.path, f->path), "path %s, wanted %s", plan.path, f->path);
		CHECK(plan.exact == (f->dtype && !strcmp(f->dtype, "float64") ? QL_GPU_TOLERANCE : QL_GPU_BITS),
			"exactness");
	}
	for (int i = 0; i < call->n_in; i++) {
		if (call->in[i]->q)
			gpu_codes_free(&g, &codes[i]);
		else
			gpu_free(&g, &in[i]);
	}
	free_all(out, call->n_out);
}

static void try_form(struct ql_ctx *ctx, enum cell cell, const struct form *f, int64_t batch, int64_t n)
{
	int64_t sums = cells[cell].gates * n, input = 19;
	struct ql_tensor *in[7];
	struct ql_value attr[8] = {{.set = false}};
	struct ql_call call = {.op = ql_op_by_name(ql_nn_ops, cells[cell].op), .in = in, .attr = attr};

	in[call.n_in++] = core_tensor(ctx, f, f->x, 3, batch, 4, input);
	in[call.n_in++] = core_tensor(ctx, f, NULL, 2, batch, n, 0);
	if (cell == LSTM)
		in[call.n_in++] = core_tensor(ctx, f, NULL, 2, batch, n, 0);
	in[call.n_in++] = core_tensor(ctx, f, f->weights, 2, sums, input, 0);
	in[call.n_in++] = core_tensor(ctx, f, f->weights, 2, sums, n, 0);
	in[call.n_in++] = core_tensor(ctx, f, NULL, 1, sums, 1, 0);
	in[call.n_in++] = core_tensor(ctx, f, NULL, 1, sums, 1, 0);
	attr[1] = (struct ql_value){.set = f->states != NULL, .s = f->states};
	l.s.batch_first = true;
	l.cell = cell;
	CASE("%s of %s x, %s weights, %s", cells[cell].op, f->x ? f->x : "plain", f->weights ? f->weights : "plain",
		f->dtype ? f->dtype : "float32");
	if (CHECK(!ql_op_apply(ctx, &call), "%s", ctx->err))
		compare(&call, f);
	for (int i = 0; i < call.n_in; i++)
		ql_tensor_release(ctx, in[i]);
	for (int i = 0; i < call.n_out; i++)
		ql_tensor_release(ctx, call.out[i]);
}

static void forms_of_operands(struct ql_ctx *ctx, bool all)
{
	for (int c = 0; c < TANH + 1; c++)
		for (size_t f = 0; f < sizeof(forms) / sizeof(forms[0]); f++) {
			try_form(ctx, (enum cell)c, &forms[f], 3, 23);
			if (all && f < 5)
				try_form(ctx, (enum cell)c, &forms[f], 18, 144);
		}
}

static void refusals(void)
{
	struct ql_gpu_option states = {.name = "states", .type = QL_GPU_OPTION_TEXT, .s = "int8"};
	struct ql_gpu_tensor in[4], out[2];
	struct ql_gpu_call call = gpu_call("rnn", in, 4, out, 2);

	make(TANH, &shapes[1]);
	in[0] = sequence(l.s.input, l.x);
	in[1] = matrix(l.s.batch, l.s.hidden, l.h);
	in[2] = matrix(l.s.hidden, l.s.input, l.w_in);
	in[3] = matrix(l.s.hidden, l.s.hidden, l.w);
	out[0] = sequence(l.s.hidden, NULL);
	out[1] = matrix(l.s.batch, l.s.hidden, NULL);
	call.options = &states;
	call.n_options = 1;
	CHECK(!gpu_run(&g, call) && strstr(g.why, "not quantized"), "%s", g.why);
	free_all(in, 4);
	free_all(out, 2);
}

int main(void)
{
	struct ql_ctx *ctx = ql_ctx_new(1);

	if (!ctx || !gpu_open(&g, "QUOLL_TEST_PLUGIN"))
		return check_end();
	ctx->quant = &ql_quant_default;
	ctx->kernels = ql_kernels_ordered();
	for (int o = 0; o < ORDERS; o++) {
		CASE("formulas, threads %s", gpu_order(o));
		floats(o == 0);
		forms_of_operands(ctx, o == 0);
	}
	CASE("refusals");
	refusals();
	gpu_close(&g);
	ql_ctx_free(ctx);
	return check_end();
}
