-- SPDX-License-Identifier: MIT
-- labels: full
-- %% [markdown]
-- # 9  An op of your own: from an idea to integers to C
--
-- A library never has the op that you have just thought of. Here one is added without leaving the prompt: it trains, it
-- becomes a node of the graph, it gets an integer version that rules can choose, and it goes into the exported C, where it
-- must give the same bits.
--
-- The op is the **squared ReLU**, y = max(x, 0)^2, which let Transformers learn faster than the plain one (So et al. 2021,
-- Primer). It is a good one for integers: no exponential, no table, one multiplication.

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
-- ## 1  Floats: what it gives, and what shape that has
--
-- `graph.op` wants two functions. `run` computes, with whatever tensor functions there are; gradients follow from them.
-- `infer` tells the size and dtype of the result without computing it, and every call is checked against it: a wrong `infer`
-- is found at once, not in the C. `replace = true`: a name that is taken is an error otherwise, and we come back to this one.

-- %%
function shape_of(x) return {shape = x.shape} end
function squared_float(x) return x:relu():square() end
squared = graph.op{name = 'sqrelu', replace = true, infer = shape_of, run = squared_float}
print(squared(tensor{-2, -0.5, 0, 0.5, 2}))  --> float32(5)  0.0000  0.0000  0.0000  0.2500  4.0000
x = tensor{-2, 3, grad = true}
squared(x):sum():backward()
print(x:grad())  --> float32(2)  0  6

-- %% [markdown]
-- A perceptron with it, trained as any other:

-- %%
m = nn.module(function(self, x)
	local h = squared(self.fc1(x:view(-1, 784)))
	return self.fc3(squared(self.fc2(h)))
end, {fc1 = nn.Linear(784, 64), fc2 = nn.Linear(64, 48), fc3 = nn.Linear(48, 10)})
m:fit(train, {opt = optim.adam(m, {lr = 2e-3}), epochs = quick and 3 or 4, log = false})
m:eval()
print(m:evaluate(test, {metric = 'accuracy', log = false}))
for x in test() do
	photos = x
	break
end

-- %% [markdown]
-- ## 2  One node, and in its way
--
-- `graph.trace` sees the op as one node, though `run` is made of two ops. Quantized, the layers before and behind it run on
-- integers, but the node itself has no integer version: the layer before it gives floats, and codes are made again behind it.
-- A rule that asks for integers is told so.

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
-- Codes q stand for s (q - z). So the square is s^2 d^2 with d = max(q - z, 0), an integer of at most 255: d^2 fits where
-- floats are exact. One multiplication by s^2 and one rounding to the codes of the result are all there is to do; no
-- intermediate result is rounded to 8 bits.
--
-- `form` says that operand 1 may be codes, and that codes come out: `run` then finds the spec of its result in `o.out`, where
-- the next layer wants codes; without it floats are wanted. `infer` stays as it is: it speaks of floats, the codes follow from
-- `gives`.

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
-- One `quantize` is left, that of the photos; from there to the last layer everything is codes. The integer version is not
-- checked by anybody else, so it is compared here, value by value: with exact input it may be off by half a step of its
-- result, never more.

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
-- Without `emit` an export names the op and stops. `emit` writes the C: `e:input` and `e:output` are the places of operand and
-- result with all that is known of them, `e:func` is a function from a text, written once for each combination of types,
-- `e:call` is a line of the forward pass. The library's own `q_round` (round half to even, saturate, add the zero point) is
-- asked for as 'round'.
--
-- Same bits means the same operations in the same order: (float)(d d) is exact, times s^2 is one rounding, the division by the
-- scale another, exactly as `run` has it.

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
-- The export's own test compares with `g:run` on stored input; the rest of the test images follow here, logit by logit.

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
-- ## 5  When something does not fit
--
-- What `infer` says must be so, in every call. An op of this kind is part of the session; one that all should have is a C file
-- of the library (HACKING.md: "an elementwise op, start to end").

-- %%
wrong = graph.op{name = 'wrongshape', replace = true, infer = function(x) return {shape = {x.shape[1]}} end, run = squared_float}
print(select(2, pcall(wrong, tensor.ones(2, 3))))  --> ...wrongshape: result 1: infer declares float32(2), run returned float32(2, 3)
print(select(2, pcall(graph.op, {name = 'relu', infer = shape_of, run = squared_float})))  --> ...'relu', which is a built-in op; replace=true with emit= alone replaces its C
