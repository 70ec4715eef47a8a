/* SPDX-License-Identifier: MIT
 * Every allocation fails in turn: those of the library (each one alone, and all beyond a limit that grows
 * step by step) and those of Lua (each one alone, and all from it on). After each failure the error is an
 * ordinary one, no byte of tensors is lost, a tensor made before has its values, and the script runs again.
 * One loss is accepted: when Lua gets no memory at all, not even for the call of a finalizer, it drops that
 * finalizer with a warning.
 */
#include <string.h>

#include "interp/host/lifetime.h"
#include "interp/trace/traceback.h"
#include "tests/tools/alloc_fail.h"

static const struct {
	const char *name, *text;
} scripts[] = {
	{"construct", "local x = tensor.zeros(3, 4) local y = tensor{{1, 2}, {3, 4}} local z = "
		      "tensor.full{5, value = 2}"},
	{"arithmetic", "local x = tensor.ones(2, 3) local y = (x + 1) * x assert(y:sum():item() == 12)"},
	{"in place", "local x = tensor.ones(4) x:add_(x) x[1] = 5 x:fill_(3) assert(x:sum():item() == 12)"},
	{"matmul", "local x = tensor.ones(8, 8) assert(x:matmul(x):sum():item() == 512)"},
	{"views", "local x = tensor.zeros(4, 6) local y = x[{{1, 2}, {}}] assert(y:size(1) == 2) local z = "
		  "x['1:2, 3']"},
	{"quantize", "local x = tensor{{1, -2}, {3, 4}} for _, s in ipairs{'int8', 'int8/1', 'int4:32', "
		     "'uint8', 'binary/1'} do "
		     "local q = x:quantize(s) q:dequantize() q:codes() q:qparams() tostring(q) end"},
	{"integer matmul",
		"local x = tensor.ones(4, 8):quantize 'int8/1' local w = tensor.ones(8, 4):quantize 'int8/2' "
		"assert(x:matmul(w):size(2) == 4)"},
	{"fallback", "local q = tensor{1, 2, 3}:quantize 'int8' local y = (q + 1):sum() quant.log()"},
	{"functions of codes",
		"local q = tensor.ones(2, 4, 8):quantize 'int8' local o = {out = {dtype = 'int8', scale = 0.1}} "
		"q:gelu(o) q:mul(2, o) q:tanh{out = 'uint8'} tensor.ones(4):quantize('int16'):exp(o) q:softmax(o) q:layernorm(o) "
		"q:sub(q, o) tensor.stack({q, q}, o) q[1]:embedding(tensor{1, 2, dtype = 'int64'}, o) nn.rope(q, o) "
		"assert(nn.attention(q, q, q, {heads = 2, out = o.out}):dtype() == 'int8')"},
	{"text", "local x = tensor{{1.5, 2}, {3, 4}} assert(#tostring(x) > 10) assert(#tostring(x:quantize "
		 "'int8') > 10)"},
	{"errors", "local x = tensor.ones(2, 3) assert(not pcall(x.matmul, x, x)) assert(not "
		   "pcall(function() x.nothing() end)) "
		   "assert(not pcall(tensor.zeros, -1)) assert(not pcall(tensor.zeros, 1, {dtyp = 'int8'}))"},
	{"tables", "local x = tensor{{1, 2}, {3, 4}} local t = x:totable() assert(t[2][1] == 3)"},
	{"close", "for i = 1, 3 do local x <close> = tensor.ones(16) local y <close> = x + x end"},
	{"reductions", "local x = tensor{{1, 2}, {3, 4}} assert(x:sum():item() == 10) x:mean(1) x:max{axis = "
		       "2} x:argmax(1) x:aminmax(1) tensor.zeros(2, 3):to'int4':aminmax(1) "
		       "x:var() x:cumsum(1) x:sort() x:topk(1) x:median() x:norm() x:softmax(1)"},
	{"elementwise", "local x = tensor{1, 2, 3} local y = ((x - 1) / 2):exp():sqrt():clamp(0, 1) y = y:maximum(x) "
			"y = x:gt(1) y = -x y = x:to 'int8' y = y // 2 y = x:pow(2):log()"},
	{"lists", "local x = tensor.ones(4, 2) local y = tensor.cat({x, x}, {axis = 1}) local t = y:split(3) "
		  "assert(#t == 3 and tensor.stack({x, x}):dim() == 3)"},
	{"indexing", "local x = tensor.ones(4, 4) x[{{1, 2}, 3}] = 5 x[x:gt(2)] = 0 local y = x[x:gt(0)] "
		     "assert(y:nelem() == 14) x[2] = tensor.zeros(4) x:gather(1, tensor{{1, 2, 3, 4}, dtype "
		     "= 'int64'})"},
	{"random", "tensor.seed(1) local x = tensor.randn(8) local y = tensor.randint{4, low = 1, high = 9}"},
	{"einsum", "local x = tensor.ones(2, 3) assert(tensor.einsum('ij,kj->ik', x, x):size(1) == 2)"},
	{"linear", "local x = tensor.ones(2, 8) local w = tensor.ones(4, 8) x:linear(w, tensor.ones(4), {act "
		   "= 'relu'}) "
		   "x:quantize 'int8/1':linear(w:quantize 'int8/1', tensor.ones(4))"},
	{"norms and losses", "local function leaf(...) return tensor.randn(...):requires_grad_() end "
			     "local x, w, t = leaf(2, 3), leaf(3), tensor{1, 3, dtype = 'int32'} "
			     "local y = x:layernorm(w, w):rmsnorm(w) "
			     "local loss = nn.crossentropy(nn.dropout(y, 0.5), t, {smoothing = 0.1}) "
			     "loss = loss + nn.bcelogits(x, y) loss:backward() assert(x:grad() and w:grad()) "
			     "assert(nn.bce(tensor{0.5}, tensor{1}):item() > 0)"},
	{"attention", "local function leaf(...) return tensor.randn(...):requires_grad_() end "
		      "local w, x = leaf(5, 4), leaf(1, 2, 3, 4) "
		      "local e = w:embedding(tensor{{1, 5, 1}, dtype = 'int64'}) "
		      "local y = nn.attention(e, e, e, {heads = 2, causal = true}):sum() "
		      "y = y + nn.attention(nn.rope(x), x, x):sum() y:backward() assert(w:grad() and x:grad()) "
		      "w:detach():quantize 'int4:32':embedding(tensor{2, dtype = 'int64'})"},
	{"specs", "quant.spec 'int4:32@minmax' quant.spec{dtype = 'uint8', axis = 1} assert(not "
		  "pcall(quant.spec, 'int9')) "
		  "quant.params(-1, 1, 'int8') tensor.ones(2, 2):quantize{dtype = 'int8', scheme = 'log'}"},
	{"bits of channels",
		"local spec = {bits = {8, 4, 2}, axis = 1} local x, f = tensor.randn(3, 5), os.tmpname() .. '.safetensors' "
		"local q = x:quantize(spec) assert(q[{{2, 3}}]:t():qparams().bits[2] == 2 and q[1]:check():spec()) "
		"spec.bits[1] = 6 x:fake(spec) tostring(quant.spec(spec)) "
		"tensor.save(f, {q = q}) assert(tensor.load(f).q:spec() == q:spec()) os.remove(f)"},
	{"reports", "local x = tensor.ones(4, 4) tostring(x:error(x:quantize 'int8')) "
		    "tostring(quant.compare(x, {'int8', 'int4'}))"},
	{"files", "local f = os.tmpname() local x = tensor.ones(3) tensor.save(f .. '.npy', x) "
		  "tensor.save(f .. '.safetensors', {x = x, q = x:quantize 'int8'}) "
		  "assert(tensor.load(f .. '.npy'):sum():item() == 3) tensor.load(f .. '.safetensors') "
		  "os.remove(f) os.remove(f .. '.npy') os.remove(f .. '.safetensors')"},
	{"mapped files", /* of 4096 bytes and more */
		"local f, x = os.tmpname(), tensor.ones(4, 260) for _, kind in ipairs{'.safetensors', '.gguf'} do "
		"tensor.save(f .. kind, {x = x, y = tensor.ones(3)}) local t = tensor.load(f .. kind, {map = true}) "
		"local v = t.x[{{2, 3}}] t = nil v:fill_(2) assert(v:sum():item() == 1040) "
		"assert(tensor.load(f .. kind, {map = true}).x:sum():item() == 1040) os.remove(f .. kind) end"},
	{"coroutines", "local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(tensor.ones(i)) "
		       "end end) "
		       "for x in co do assert(x:sum():item() > 0) end "
		       "local c = coroutine.create(error) coroutine.resume(c, 'x') coroutine.close(c)"},
	{"gradients", "local x = tensor{{1, 2}, {3, 5}, grad = true} local y = x:linear(x, {act = 'gelu'}):softmax() "
		      "y = (y:max(1) + x:std(2)):cumsum() y = (y / 2 - x:t()):norm() y:backward() x:zero_grad()"},
	{"gradients of lists",
		"local x = tensor{{1, 2}, {3, 5}, grad = true} local p = x:split(1) "
		"local y = tensor.cat{p[2], x:sort(), x[{{1, 1}}]} y = tensor.einsum('ij,ij->j', y, y) y = y:quantile(0.3) y:backward()"},
	{"recurrent", "local x = tensor.ones(2, 3, 4):requires_grad_() local h = tensor.zeros(2, 2) "
		      "local y, hn, c = nn.lstm(x, h, h, tensor.ones(8, 4), tensor.ones(8, 2)) "
		      "y = (y * y):sum() y:backward() nn.gru(x, h, tensor.ones(6, 4), tensor.ones(6, 2)) "
		      "nn.rnn(x:detach():quantize 'int8', h, tensor.ones(2, 4):quantize 'int8/1', tensor.ones(2, 2))"},
	{"ops of gradients",
		"local function leaf(...) return tensor.randn(...):requires_grad_() end "
		"local x, w, s = leaf(1, 2, 4, 4), leaf(2), tensor{0.1, grad = true} "
		"local y = nn.batchnorm(x:relu6(), w, w, {training = true}):maxpool2d(2):resize{3, 3}:avgpool2d():view(2) "
		"y = y:fake('int8'):lsq(s):scatter(1, tensor{1, 1, dtype = 'int64'}, w:quantize('int8'):relu():dequantize()) "
		"y = nn.gru(tensor.ones(1, 2, 2), y:view(1, 2), tensor.ones(6, 2), leaf(6, 2)) "
		"y:sum():backward() assert(x:grad() and w:grad() and s:grad())"},
	{"optimizers", "local x = tensor.ones(4, 3):requires_grad_() for _, kind in ipairs{'sgd', 'adam'} do "
		       "local o = optim[kind]({x}, {lr = 0.1, clip = 1}) o:zero() local y = (x * x):sum() y:backward() "
		       "o:step() o:load(o:state()) tostring(o) end optim.clip({x}, {limit = 0.5})"},
	{"loader",
		"local ds = data.synth{n = 12, seed = 1} tensor.seed(1) for _, thread in ipairs{true, false} do "
		"local loader = data.loader(ds, {batch = 5, shuffle = true, prefetch = thread, augment = {crop = 1}, "
		"normalize = {mean = 0.5}}) for x, y in loader() do assert(x:size(2) == 1) end "
		"for x, y in loader() do break end end"},
	{"texts", "local d = data.synth{kind = 'markov', n = 60} assert(d:decode(d:encode 'a b') == 'a b') "
		  "for x, y in data.loader(d.train, {batch = 2, steps = 4})() do assert(x:size(1) == 2) end"},
	{"code", "assert(load('return ...')(1) == 1) assert(not load '=') local ok, m = xpcall(error, "
		 "tostring, {}) "
		 "assert(string.rep('ab', 100, ',') and not pcall(require, 'no_such_module'))"},
};

static const char *const inputs[] = {
	"local a, b = 1, tensor.ones(2)",
	"a = a + 1 a, b",
	"function f() error 'x' end f()",
	"x = {1, {2}, s = 'text'}",
	"x",
	"for i = 1, 2 do",
	"1 +",
	"x = = 1",
	"x += 1",
	"local k = 1\n%pwd\n%time k = 2\nk + 1",
	"In [1]: y = 5\nIn [2]: y\nOut[2]: 5\n",
	"?y",
	"who()",
	"%time 1",
	"_",
	"local q <const> = 5 return q",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* `forever`: Lua got no memory at all. Returns the bytes that the next check has to find. */
static size_t check_state(struct ql_state *s, size_t bytes, const char *name, uint64_t n, bool forever)
{
	lua_State *L = s->L;
	int failed;

	CHECK(lua_gettop(L) == 0, "%s: %llu: %d values left on the stack", name, (unsigned long long)n, lua_gettop(L));
	lua_settop(L, 0);
	ql_collect(L);
	ql_collect(L);
	CHECK(forever || !dropped, "%s: %llu: a finalizer was dropped", name, (unsigned long long)n);
	if (dropped)
		bytes = s->ctx->memory.now;
	dropped = 0;
	CHECK(s->ctx->memory.now == bytes, "%s: %llu: %zu bytes of tensors, wanted %zu", name, (unsigned long long)n,
		s->ctx->memory.now, bytes);
	failed = luaL_dostring(L, "local t = witness:totable() "
				  "assert(#t == 4 and t[1] == 1 and t[2] == 2 and t[3] == 3 and t[4] == 4)");
	CHECK(!failed, "%s: %llu: %s", name, (unsigned long long)n, lua_tostring(L, -1));
	lua_settop(L, 0);
	return bytes;
}

/* Status of the script; an error must be a string. */
static int run(lua_State *L, const char *text)
{
	int status = luaL_loadstring(L, text);

	if (!status)
		status = ql_traceback_call(L, 0, 0);
	if (status)
		CHECK(lua_isstring(L, -1), "an error that is a %s", luaL_typename(L, -1));
	lua_settop(L, 0);
	return status;
}

/* Runs twice without failures: what is loaded or grown at the first use stays. */
static size_t warm_up(struct ql_state *s, const char *name, const char *text)
{
	for (int i = 0; i < 2; i++) {
		if (luaL_loadstring(s->L, text) || ql_traceback_call(s->L, 0, 0))
			CHECK(false, "%s: %s", name, lua_tostring(s->L, -1));
		lua_settop(s->L, 0);
		ql_collect(s->L);
		ql_collect(s->L);
	}
	return s->ctx->memory.now;
}

/* `again`: the failed one must be made good by collecting and trying once more */
static void sweep_library(struct ql_state *s, const char *name, const char *text)
{
	size_t bytes = warm_up(s, name, text);
	uint64_t n = 1;

	for (; n < QL_RUNS; n++) {
		uint64_t left;

		s->ctx->memory.fail_after = n;
		run(s->L, text);
		left = s->ctx->memory.fail_after;
		s->ctx->memory.fail_after = 0;
		check_state(s, bytes, name, n, false);
		if (left > 0)
			break;
	}
	CHECK(n > 1 && n < QL_RUNS, "%s: %llu allocations", name, (unsigned long long)n);
}

static void sweep_limit(struct ql_state *s, const char *name, const char *text)
{
	size_t bytes = warm_up(s, name, text), extra = 0;
	int status = 1;

	for (; status && extra < (size_t)QL_RUNS * 16; extra += 16) {
		s->ctx->memory.limit = bytes + extra + 1;
		status = run(s->L, text);
		s->ctx->memory.limit = 0;
		check_state(s, bytes, name, extra, false);
	}
	CHECK(extra > 16 && !status, "%s: %zu bytes", name, extra);
}

static void sweep_lua(struct ql_state *s, const char *name, const char *text, bool forever)
{
	size_t bytes = warm_up(s, name, text);
	uint64_t n = 1;

	for (; n < QL_RUNS; n++) {
		uint64_t left;

		s->memory.fail_forever = forever;
		s->memory.fail_after = n;
		run(s->L, text);
		left = s->memory.fail_after;
		s->memory.fail_after = 0;
		s->memory.failing = false;
		bytes = check_state(s, bytes, name, n, forever);
		if (left > 0)
			break;
	}
	CHECK(n > 10 && n < QL_RUNS, "%s: %llu allocations", name, (unsigned long long)n);
}

static void test_scripts(void)
{
	for (size_t i = 0; i < COUNT(scripts); i++) {
		const char *name = scripts[i].name, *text = scripts[i].text;
		struct ql_state *s;

		CASE("%s", name);
		s = state_new();
		if (!s)
			continue;
		make_witness(s->L);
		if (strcmp(name, "code"))
			sweep_library(s, name, text);
		if (strcmp(name, "code") && strcmp(name, "errors"))
			sweep_limit(s, name, text);
		sweep_lua(s, name, text, false);
		sweep_lua(s, name, text, true);
		ql_state_free(s);
	}
}

/* The first use loads parts of the prelude: those allocations fail, too. */
static void test_first_use(void)
{
	static const char text[] = "local q = tensor.ones(2):quantize 'int8' local r = q:ratio() "
				   "tostring(quant.log()) hw.features()";

	CASE("first use of the prelude");
	for (uint64_t n = 1; n < QL_RUNS; n += 7) {
		struct ql_state *s = state_new();
		uint64_t left;

		if (!s)
			break;
		make_witness(s->L);
		s->memory.fail_forever = true;
		s->memory.fail_after = n;
		run(s->L, text);
		left = s->memory.fail_after;
		s->memory.fail_after = 0;
		s->memory.failing = false;
		if (luaL_loadstring(s->L, text) || ql_traceback_call(s->L, 0, 0))
			CHECK(false, "%llu: does not run afterwards: %s", (unsigned long long)n,
				lua_tostring(s->L, -1));
		ql_state_free(s);
		if (left > 0)
			break;
	}
}

static void test_start(void)
{
	struct ql_options options;
	char error[QL_STATE_ERROR];
	uint64_t n = 1;

	CASE("start");
	CHECK(ql_options_read(&options, error), "%s", error);
	for (; n < QL_RUNS; n++) {
		struct ql_state *s = ql_state_new(&options, n, error);
		bool done = s && s->memory.fail_after > 0;

		CHECK(s || *error, "no message");
		ql_state_free(s);
		if (done)
			break;
	}
	CHECK(n > 100 && n < QL_RUNS, "%llu allocations", (unsigned long long)n);
}

int main(void)
{
	if (!ql_temporary_start()) /* for the scripts that write files */
		return 2;
	test_scripts();
	test_first_use();
	test_start();
	sweep_inputs(inputs, COUNT(inputs), 1);
	ql_temporary_end();
	return check_end();
}
