-- SPDX-License-Identifier: MIT
-- nn.Encoder against BERT's forward in plain tensor operations; heads, gradients, quantization, graphs, C, wrong arguments.
tensor.seed(7)
local function model(o)
	local all = {vocab = 11, d = 8, heads = 2, layers = 2, ff = 12, context = 9, types = 3, pooler = true}
	for name, value in pairs(o or {}) do all[name] = value end
	local m = nn.Encoder(all)
	for _, p in ipairs(m:parameters()) do p:detach():copy_(tensor.randn(p:size()):mul_(0.4)) end
	return m:eval()
end

local function layernorm(x, m)
	local c = x - x:mean(-1, {keep = true})
	return c / ((c * c):mean(-1, {keep = true}) + 1e-12):sqrt() * m.weight + m.bias
end
local function linear(x, m) return x:matmul(m.weight:t()) + m.bias end

-- hidden: added to the scores (B, T).
local function plain(m, ids, types, hidden)
	local b, t = ids:size()
	local x = m.embedding.weight[ids] + m.types.weight[types] + m.positions:narrow(1, 1, t)
	x = layernorm(x, m.norm)
	for i = 1, 2 do
		local layer, parts = m[i], {}
		for h = 0, 1 do
			local function part(name) return linear(x, layer.attention[name]):narrow(3, 1 + 4 * h, 4) end
			local scores = part 'query':matmul(part 'key':transpose(2, 3)) / 2 + hidden:view(b, 1, t)
			parts[h + 1] = scores:softmax():matmul(part 'value')
		end
		x = layernorm(x + linear(tensor.cat(parts, {axis = 3}), layer.attention.out), layer.norm1)
		local u = linear(x, layer.ff.linear1)
		x = layernorm(x + linear(0.5 * u * ((u / math.sqrt(2)):erf() + 1), layer.ff.linear2), layer.norm2)
	end
	return x, linear(x:select(2, 1), m.pooler):tanh()
end

local ids = tensor{{1, 5, 3, 11, 2}, {7, 7, 2, 1, 1}, dtype = 'int32'}
local types = tensor{{1, 1, 3, 3, 2}, {2, 2, 1, 1, 1}, dtype = 'int32'}
local NONE = tensor.zeros(2, 5)
local function near(a, b, most) assert((a - b):abs():max():item() < (most or 2e-6)) end

it('the vectors and the pooler', function()
	local m = model()
	local y, p = m(ids, {types = types})
	local a, b = plain(m, ids, types, NONE)
	near(y, a)
	near(p, b)
	near(m(ids), (plain(m, ids, tensor.ones {2, 5, dtype = 'int32'}, NONE)))
	print(m(ids):size())  --> 2 5 8
end)

it('padding', function()
	local m = model()
	local hidden = tensor{{0, 0, 0, 0, -math.huge}, {0, 0, -math.huge, -math.huge, -math.huge}}
	local want = plain(m, ids, types, hidden)
	near((m(ids, {types = types, lengths = tensor{4, 2, dtype = 'int32'}})), want)
	near((m(ids, {types = types, mask = hidden:eq(0)})), want)
	near((m(ids, {types = types, mask = hidden:eq(0):to 'int32'})), want)
	near((m(ids, {types = types, mask = hidden:view(2, 1, 1, 5)})), want)
end)

it('heads', function()
	local y, p = model():encode(ids)
	assert(y:size(3) == 8 and p:dim() == 2)
	local m = model {head = 'maskedlm'}
	local x = plain(m, ids, tensor.ones {2, 5, dtype = 'int32'}, NONE)
	local u = linear(x, m.head.transform)
	u = layernorm(0.5 * u * ((u / math.sqrt(2)):erf() + 1), m.head.norm)
	near(m(ids), u:matmul(m.embedding.weight:t()) + m.head.decoder.bias)
	m = model {head = 'sequence', classes = 3, pooleract = 'relu'}
	x = plain(m, ids, tensor.ones {2, 5, dtype = 'int32'}, NONE)
	near(m(ids), linear(linear(x:select(2, 1), m.pooler):relu(), m.head))
	m = model {head = 'token', classes = 2}
	near(m(ids), linear(plain(m, ids, tensor.ones {2, 5, dtype = 'int32'}, NONE), m.head))
end)

it('gradients', function()
	local m = model {head = 'sequence', classes = 3}
	local function loss() return m(ids, {types = types, lengths = tensor{5, 3, dtype = 'int32'}}):square():sum() end
	loss():backward()
	for _, p in ipairs {m.positions, m.types.weight, m.embedding.weight, m[1].norm1.weight, m[2].ff.linear1.weight} do
		local q, g = p:detach():view(-1), p:grad():view(-1)
		local at = 3
		local before = q[at]:item()
		q[at] = before + 1e-2
		local up = loss():item()
		q[at] = before - 1e-2
		local down = loss():item()
		q[at] = before
		assert(math.abs((up - down) / 2e-2 - g[at]:item()) < 2e-2 * math.max(1, math.abs(g[at]:item())))
	end
end)

it('quantized, as a graph, as C', function()
	local m = model {head = 'sequence', classes = 3}
	local y = m(ids)
	m:calibrate({{ids}}, {log = false})
	for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
		local q = m:quantize {mode = mode}
		assert(q(ids):error(y).sqnr > 15, mode)
	end
	local g = graph.trace(m, ids)
	assert(g:run(ids):eq(y):all():item())
	local folder = os.tmpname()
	os.remove(folder)
	g:export {dir = folder, samples = ids}
	local build = io.popen(('cd %s && make 2>&1 >build.log && ls'):format(folder))
	local list = build:read 'a'
	build:close()
	local name = list:match '(%w+)_ops%.h'
	assert(name and os.execute(('cd %s && ./%s --selftest >/dev/null'):format(folder, name)), list)
end)

it('saved and loaded', function()
	local m, file = model {head = 'maskedlm'}, os.tmpname() .. '.safetensors'
	m:save(file)
	assert(model {head = 'maskedlm'}:load(file)(ids):eq(m(ids)):all():item())
end)

it('wrong arguments', function()
	local function refused(want, f, ...)
		local ok, message = pcall(f, ...)
		assert(not ok and message:find(want, 1, true) and not message:find '\n', message)
	end
	local m = model()
	refused('wanted numbers of tokens (B, T), got', m, tensor.ones(3))
	refused('wanted at most 9 positions (context=), got 10', m, tensor.ones {1, 10, dtype = 'int32'})
	refused('types: wanted a number for each token (2, 5), got', m, ids, {types = ids:narrow(2, 1, 4)})
	refused('mask: wanted a number for each token (2, 5), got', m, ids, {mask = ids:narrow(2, 1, 4)})
	refused('lengths: wanted 0 to 5 keys, got 6', m, ids, {lengths = tensor{6, 1, dtype = 'int32'}})
	refused('types: wanted none', nn.Encoder {vocab = 11, d = 8, heads = 2, layers = 1}, ids, {types = types})
	refused("head: wanted maskedlm or sequence or token, got 'lm'", model, {head = 'lm'})
	refused('classes: wanted an integer of at least 1, got nil', model, {head = 'token'})
	refused("classes: wanted head='sequence' or", model, {classes = 3})
	refused("pooler: wanted one for head='sequence', got false", model, {head = 'sequence', classes = 2, pooler = false})
	refused("act: wanted gelu or", model, {act = 'swiglu'})
	refused('layers: wanted an integer', model, {layers = 0})
end)
