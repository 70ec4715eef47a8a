-- SPDX-License-Identifier: MIT
-- labels: full
-- %% [markdown]
-- # 9  A user-defined op: floats, integers, exported C
--
-- This tutorial adds an op without leaving the prompt: it can be trained, becomes a node of the graph, gets an integer version that
-- rules can choose, and is included in exported C with bit-identical results.
--
-- The op is the **squared ReLU**, y = max(x, 0)^2, with which Transformers learn faster than with the plain ReLU (So et al. 2021,
-- Primer). It suits integers well: no exponential, no table, one multiplication.

-- %%
quick = os.getenv 'QUOLL_QUICK' ~= nil
for _, a in ipairs(arg or {}) do quick = quick or a == '--quick' end
os.execute 'mkdir -p out'
tensor.seed(9)
found, why = data.find 'mnist/train-images-idx3-ubyte.gz'
if found and data.find 'mnist/t10k-images-idx3-ubyte.gz' then
	print 'input: real (MNIST)'
	images, unseen = data.mnist{split = 'train', limit = quick and 4000 or 20000}, data.mnist{split = 'test', limit = quick and 1000 or nil}
else
	print('input: procedural digits, because ' .. why)
	images, unseen = data.synth{kind = 'digits', n = quick and 4000 or 20000, seed = 1}, data.synth{kind = 'digits', n = 1000, seed = 2}
end
norm = {mean = {0.1307}, std = {0.3081}}
train, test = data.loader(images, {batch = 64, shuffle = true, normalize = norm}), data.loader(unseen, {batch = 500, normalize = norm})

-- %% [markdown]
-- ## 1  Floats: the computation and the shape of the result
--
-- `graph.op` needs two functions. `run` computes the result with any tensor functions; gradients follow from these. `infer` returns
-- the size and dtype of the result without computing it. Every call is checked against it, so a wrong `infer` is detected at once and
-- not in the C. `replace = true` is needed because a name in use is an error otherwise, and this op is redefined below.

-- %%
function shape_of(x) return {shape = x.shape} end
function squared_float(x) return x:relu():square() end
squared = graph.op{name = 'sqrelu', replace = true, infer = shape_of, run = squared_float}
print(squared(tensor{-2, -0.5, 0, 0.5, 2}))  --> float32(5)  0.0000  0.0000  0.0000  0.2500  4.0000
x = tensor{-2, 3, grad = true}
squared(x):sum():backward()
print(x:grad())  --> float32(2)  0  6

-- %% [markdown]
-- A perceptron with this op, trained like any other:

-- %%
m = nn.module(function(self, x)
	local h = squared(self.fc1(x:view(-1, 784)))
	return self.fc3(squared(self.fc2(h)))
end, {fc1 = nn.Linear(784, 64), fc2 = nn.Linear(64, 48), fc3 = nn.Linear(48, 10)})
m:fit(train, {opt = optim.adam(m, {lr = 5e-4}), epochs = quick and 3 or 4, log = false})
m:eval()
print(m:evaluate(test, {metric = 'accuracy', log = false}))
for x in test() do
	photos = x
	break
end

-- %% [markdown]
-- ## 2  One node without an integer version
--
-- `graph.trace` records the op as one node, although `run` calls two ops. After quantization the layers before and after it run in
-- integers, but the node itself has no integer version: the layer before it returns floats, and its result is quantized again.
-- A rule that requests integers for it is an error.

-- %%
function count(g)
	local n = {}
	for _, name in ipairs(g.order) do n[g:node(name).op] = (n[g:node(name).op] or 0) + 1 end
	return n
end
g = graph.trace(m, photos[{{1, 1}}])
g:calibrate(train, {input = 'uint8', batches = 8, log = false})
q = g:quantize{mode = 'static'}
print(q)
print(count(g).sqrelu, count(q).sqrelu, count(q).quantize)  --> 2 2 3
print(g:match({{'sqrelu.*', 'int8'}}, {mode = 'static'}):where{op = 'sqrelu'}[1].why)

-- %% [markdown]
-- ## 3  Integers
--
-- Codes q represent s (q - z). So the square is s^2 d^2 with d = max(q - z, 0), an integer of at most 255, and d^2 is exact in
-- float32. What remains is one multiplication by s^2 and one rounding to the codes of the result; no intermediate result is rounded
-- to 8 bits.
--
-- `form` declares that operand 1 may be codes and that the result is codes: `run` gets the spec of the result in `o.out` if the next
-- layer needs codes; otherwise it returns floats. `infer` does not change: it describes floats, and codes follow from `gives`.

-- %%
function squared_codes(x, o)
	local p = x:qparams()
	local s, z = p.scale:item(), p.zero_point and p.zero_point:item() or 0
	local d = (x:codes():to 'int32' - z):clamp(0, 65535):to 'float32'
	local y = d * d * (s * s)
	return o.out and y:quantize(o.out) or y
end
function either(x, o)
	if x:quantized() then return squared_codes(x, o) end
	return squared_float(x)
end
squared = graph.op{name = 'sqrelu', replace = true, infer = shape_of, run = either, form = {gives = 'codes', needs = true}}
g = graph.trace(m, photos[{{1, 1}}])
g:calibrate(train, {input = 'uint8', batches = 8, log = false})
q, r = g:quantize{mode = 'static', rules = {{'sqrelu.*', mode = 'static'}}}
print(r)
print(count(q).quantize, q:node('sqrelu1').dtype, q:node('sqrelu1').mode)  --> 1 uint8 static

-- %% [markdown]
-- One `quantize` remains, that of the images; from there to the last layer all values are codes. Nothing else checks the integer
-- version, so it is compared value by value: for exact input its error is at most half a step of the result.

-- %%
spec = {dtype = 'uint8', scale = 0.05}
x = tensor.randn{4096} * 2
codes = x:quantize{dtype = 'int8', scale = 0.03}
e = squared_float(codes:dequantize()):clamp(0, 255 * 0.05):error(squared(codes, {out = spec}))
print(('largest error %.4f, half a step is %.4f'):format(e.max, 0.05 / 2))
assert(e.max <= 0.0251)
function right(run)
	local n, all = 0, 0
	for x, y in test() do
		n, all = n + run(x):argmax{axis = 2}:eq(y):sum():item(), all + x:size(1)
	end
	return 100 * n / all
end
float, integer = right(function(x) return g:run(x) end), right(function(x) return q:run(x) end)
print(('float32 %.2f %%, integers %.2f %%'):format(float, integer))
assert(integer > float - 1)

-- %% [markdown]
-- ## 4  C
--
-- Without `emit`, g:export fails with an error that names the op. `emit` writes the C: `e:input` and `e:output` return the C
-- expressions of operand and result with their properties, `e:func` makes a function from a text, written once for each combination
-- of types, `e:call` adds a line to the forward pass. The built-in `q_round` (round half to even, saturate, add the zero point) is
-- requested as 'round'.
--
-- Bit-identical results need the same operations in the same order: (float)(d d) is exact, the product with s^2 rounds once, the
-- division by the scale rounds again, exactly as in `run`.

-- %%
print(select(2, pcall(q.export, q, {dir = 'out/09_c'})))
CODES = [[
/* max(q - z, 0)^2 of codes, under the scale of the result */
static void ${name}(const ${x} *x, int32_t n, int32_t from, float square, float scale, float lo, float hi, int32_t zero, ${y} *y)
{
	int32_t i;

	for (i = 0; i < n; i++) {
		int32_t d = x[i] > from ? (int32_t)x[i] - from : 0;

		y[i] = (${y})q_round((float)d * (float)d * square / scale, lo, hi, zero);
	}
}
]]
FLOATS = [[
static void ${name}(const float *x, int32_t n, float *y)
{
	int32_t i;

	for (i = 0; i < n; i++) {
		float a = x[i] > 0.0f ? x[i] : 0.0f;

		y[i] = a * a;
	}
}
]]
function emit(e, node)
	local x, f, layout = e:input(node, 1)
	local y, g = e:output(node, layout)
	if not f.scale then
		e:call('%s(%s, %d, %s);', e:func('sqrelu_floats', FLOATS), x, f.count, y)
	else
		local square = e.float(e.single(f.scale * f.scale))
		e:call('%s(%s, %d, %d, %s, %s, %s, %s, %d, %s);', e:func('sqrelu', CODES, {x = f.ctype, y = g.ctype}, {'round'}), x, f.count, f.zero, square,
			e.float(g.scale), e.float(g.lo - g.zero), e.float(g.hi - g.zero), g.zero, y)
	end
end
squared = graph.op{name = 'sqrelu', replace = true, infer = shape_of, run = either, emit = emit, form = {gives = 'codes', needs = true}}
print(q:export{dir = 'out/09_c', name = 'net', samples = photos, variants = {int8 = q, float32 = g}})

-- %% [markdown]
-- The self-test of the export compares with `g:run` on stored inputs; this cell compares the logits of all other test images.

-- %%
if os.execute 'make -s -C out/09_c >out/09_make.txt 2>&1 && out/09_c/net --selftest' then
	n = quick and 200 or 500
	input = io.open('out/09_photos', 'wb')
	for _, value in ipairs(photos[{{1, n}}]:contiguous():view(-1):totable()) do input:write(string.pack('<f', value)) end
	input:close()
	os.execute 'out/09_c/net int8 --run <out/09_photos >out/09_logits'
	bytes, same, wanted = io.open('out/09_logits', 'rb'):read 'a', 0, q:run(photos[{{1, n}}]):contiguous():view(-1):totable()
	for i, value in ipairs(wanted) do same = same + (string.unpack('<f', bytes, 4 * i - 3) == value and 1 or 0) end
	print(('%d of %d logits have the same bits'):format(same, #wanted))
	assert(same == #wanted)
	os.execute 'out/09_c/net int8 --time 1000; out/09_c/net float32 --time 1000'
else
	print 'no C compiler here, or out/09_make.txt says why'
end

-- %% [markdown]
-- ## 5  Errors
--
-- Every call must return what `infer` declares. A user-defined op exists for the session; an op for all users is a C file of the
-- library (HACKING.md: "an elementwise op, start to end").

-- %%
wrong = graph.op{name = 'wrongshape', replace = true, infer = function(x) return {shape = {x.shape[1]}} end, run = squared_float}
print(select(2, pcall(wrong, tensor.ones(2, 3))))  --> ...wrongshape: result 1: infer declares float32(2), run returned float32(2, 3)
print(select(2, pcall(graph.op, {name = 'relu', infer = shape_of, run = squared_float})))  --> ...'relu', which is a built-in op; replace=true with emit= alone replaces its C
