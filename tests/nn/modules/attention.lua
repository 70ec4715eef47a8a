-- SPDX-License-Identifier: MIT
-- labels: quick noproducts host
-- Attention; literals from PyTorch in float64 (4 heads of q, 2 of k and v, repeated there).
tensor.seed(1)
local checks = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/tools/checks.lua')
local near, check_gradient, wide, check_bits, refused = checks.near, checks.gradient, checks.wide, checks.bits, checks.refused

local function cosines(n, by) return (tensor.arange(0, n - 1):to 'float64' * by):cos() end
local function sines(n, by, from) return (tensor.arange(0, n - 1):to 'float64' * by + from):sin() end
local function operands(dtype)
	local q, k, v = sines(24, 1, 0):view(1, 4, 3, 2), cosines(20, 0.7):view(1, 2, 5, 2), sines(30, 0.3, 1):view(1, 2, 5, 3)
	return q:to(dtype):clone(), k:to(dtype):clone(), v:to(dtype):clone()
end

for dtype, bound in pairs {float32 = 1e-6, float64 = 1e-9} do
	it('values and gradients in ' .. dtype, function()
		local q, k, v = operands(dtype)
		for _, x in ipairs {q, k, v} do x:requires_grad_() end
		local y = nn.attention(q, k, v, {causal = true})
		near(y, {0.7679364465, 0.7410588416, 0.6479846573, 0.5750812964, 0.5268392366, 0.4315361969, 0.2590985149, 0.04953790718,
			-0.1644477742, 0.7255686287, 0.655150395, 0.5262095277, 0.5985227041, 0.5742384721, 0.4986592277, 0.2706569836,
			0.07056039081, -0.1358391515, 0.2051513852, 0.4090119823, 0.5763367571, 0.1569156744, 0.2448416113, 0.3108965763,
			0.3219730576, 0.4587261802, 0.5545026593, 0.2867023091, 0.4880154017, 0.6457355319, 0.1924113541, 0.2687629421,
			0.3211067369, 0.2829987741, 0.398546213, 0.4784927056}, bound)
		y:backward(cosines(36, 0.5):view(1, 4, 3, 3))
		near(q:grad(), {0.3861731, 0.3175432878, -0.3594376332, -0.1590527867, -0.180931104, 0.2261955987, 0.2466669499, 0.2108622425,
			0.6663339134, 0.2452930876, -0.08205216566, -0.0129262866, 0.7457829991, 0.2760888556, 0.01717886945, -0.05588700736,
			-0.4879923905, -0.1436522048, -0.1126534714, -0.02414835581, 0.4519001641, -0.1412021855, 0.1099860474,
			-0.0240141119}, bound)
		near(k:grad(), {0.2367144065, 0.468667018, 0.291518649, 0.386252385, -0.00480650987, -0.3219545845, -0.442566, -0.4282773492,
			-0.0808605457, -0.1046874693, 0.4151341918, 0.8068301273, 0.01931616014, -0.01208778517, -0.01930526023,
			-0.4828660031, -0.4363742113, -0.3888455848, 0.02122911957, 0.0769692457}, bound)
		near(v:grad(), {0.9773365797, 0.8732925272, 0.5554360069, 0.289743433, 0.1827069179, 0.0309373771, -0.105859941,
			-0.2461440376, -0.3261634892, 0.04738619368, -0.1108608394, -0.2419652727, -0.03185175534, -0.05926575264,
			-0.07216942674, -0.6357756922, -0.5420865744, -0.3156757572, -0.1148305643, -0.07005552921, -0.008128457278,
			-0.1567191207, -0.2211272809, -0.2313957707, -0.4918219681, -0.3328382218, -0.0923640707, -0.01083019286,
			0.05427984462, 0.1061002831}, bound)
		near(nn.attention(q, k, v, {scale = 2})[1][1], {-0.2316209715, -0.2250355318, -0.1983483382, 0.1328997717, 0.1796400416,
			0.2103336016, 0.3328890864, 0.05514679204, -0.227521601}, bound)
	end)
end

it('gradients against finite differences', function()
	check_gradient(function(q, k, v) return nn.attention(q, k, v, {causal = true}) end, wide(2, 2, 3, 4), wide(2, 1, 5, 4), wide(2, 1, 5, 2))
	check_gradient(function(q, k, v) return nn.attention(q, k, v, {scale = -0.7, heads = 2}) end, wide(1, 3, 4), wide(1, 4, 4), wide(1, 4, 6))
end)

-- Every size around the blocks and tiles, float32 beside float64, values and gradients.
it('blocks, tiles and tails', function()
	local function run(dtype, q, k, v, seed, options)
		local x = {q:to(dtype):clone(), k:to(dtype):clone(), v:to(dtype):clone()}
		for _, t in ipairs(x) do t:requires_grad_() end
		local y = nn.attention(x[1], x[2], x[3], options)
		y:backward(seed)
		return {y:detach():to 'float64', x[1]:grad():to 'float64', x[2]:grad():to 'float64', x[3]:grad():to 'float64'}
	end
	for _, c in ipairs {{1, 1, 1, 1, 1, 1, 1}, {2, 4, 2, 48, 48, 16, 16}, {1, 3, 1, 49, 65, 17, 33}, {2, 2, 2, 97, 130, 64, 64},
		{1, 2, 1, 7, 7, 65, 130}, {1, 1, 1, 1, 300, 8, 24}, {1, 6, 2, 5, 6, 3, 1}} do
		local q, k, v = tensor.randn(c[1], c[2], c[4], c[6]), tensor.randn(c[1], c[3], c[5], c[6]), tensor.randn(c[1], c[3], c[5], c[7])
		local seed = tensor.randn(c[1], c[2], c[4], c[7])
		for _, causal in ipairs {false, true} do
			local got, want = run('float32', q, k, v, seed, {causal = causal}), run('float64', q, k, v, seed, {causal = causal})
			for i = 1, 4 do
				local error = got[i]:metrics(want[i]).max
				assert(error < 1e-5, ('%s, causal %s, result %d: %g'):format(table.concat(c, ' '), causal, i, error))
			end
		end
	end
end)

it('keys beyond a query change nothing when causal; the last query sees all', function()
	local q, k, v = tensor.randn(1, 2, 4, 8), tensor.randn(1, 2, 6, 8), tensor.randn(1, 2, 6, 8)
	local y = nn.attention(q, k, v, {causal = true})
	k[{ {}, {}, 6 }] = 1000
	local z = nn.attention(q, k, v, {causal = true})
	assert(z[{ {}, {}, {1, 3} }]:eq(y[{ {}, {}, {1, 3} }]):all():item() and not z[{ {}, {}, 4 }]:eq(y[{ {}, {}, 4 }]):any():item())
	-- one query after the other, with a cache, is the same as all at once
	for i = 1, 4 do
		local step = nn.attention(q[{ {}, {}, {i, i} }], k[{ {}, {}, {1, i + 2} }], v[{ {}, {}, {1, i + 2} }], {causal = true})
		assert(step:metrics(z[{ {}, {}, {i, i} }]).max < 1e-6, i)
	end
end)

it('heads= takes joined heads; views are used as they lie', function()
	local q, k, v = tensor.randn(2, 5, 12), tensor.randn(2, 7, 6), tensor.randn(2, 7, 4)
	local y = nn.attention(q, k, v, {heads = 4})
	local function split(x, heads) return x:view(2, -1, heads, x:size(3) // heads):transpose(2, 3) end
	local z = nn.attention(split(q, 4), split(k, 2), split(v, 2))
	print(y:size())  --> 2 5 8
	assert(z:transpose(2, 3):contiguous():view(2, 5, 8):eq(y):all():item())
	local turned = tensor.randn(1, 1, 8, 6):transpose(3, 4)
	assert(nn.attention(turned, turned, turned):eq(nn.attention(turned:contiguous(), turned, turned)):all():item())
	local all = tensor.randn(3, 9, 24) -- q, k and v side by side, as one layer makes them
	local parts = all:split(8, {axis = 3})
	assert(nn.attention(parts[1], parts[2], parts[3], {heads = 2}):eq(
		nn.attention(parts[1]:clone(), parts[2]:clone(), parts[3]:clone(), {heads = 2})):all():item())
end)

it('gives the same bits on any number of threads', function()
	local q, k, v = tensor.randn(2, 3, 130, 32), tensor.randn(2, 3, 130, 32), tensor.randn(2, 3, 130, 32)
	local seed = tensor.randn(2, 3, 130, 32)
	for _, x in ipairs {q, k, v} do x:requires_grad_() end
	for _, causal in ipairs {false, true} do
		check_bits(function()
			for _, x in ipairs {q, k, v} do x:zero_grad() end
			local y = nn.attention(q, k, v, {causal = causal})
			y:backward(seed)
			return y:detach(), q:grad(), k:grad(), v:grad()
		end, {hw.features().level})
	end
	local one = tensor.randn(1, 1, 600, 64) -- one head, cut into parts
	check_bits(function() return nn.attention(one, one, one, {causal = true}) end, {hw.features().level})
end)

it('makes no tensor of all scores', function()
	local q = tensor.randn(1, 2, 2048, 16):requires_grad_()
	collectgarbage()
	collectgarbage()
	tensor.memory 'reset'
	local before = tensor.memory().now
	local y = nn.attention(q, q, q)
	y:sum():backward()
	assert(tensor.memory().peak - before < 16 << 20, tensor.memory().peak - before) -- scores of both heads would be 32 MiB
	assert(y:explain():find 'path float32, kernel gemm_f32_')
end)

it('half and quantized operands; large and not finite scores', function()
	local q, k, v = operands 'float32'
	print(nn.attention(q:to 'float16', k:to 'float16', v:to 'float16'):dtype(), nn.attention(q:to 'float16', k, v):dtype())  --> float16 float32
	local z = q:quantize 'int8'
	local y = nn.attention(z, k, v)
	assert(y:explain():find 'fallback' and y:eq(nn.attention(z:dequantize(), k, v)):all():item())
	local big = nn.attention(q * 1e6, k * 1e6, v)
	assert(big:isfinite():all():item())
	q[1] = 0/0
	assert(nn.attention(q, k, v):isnan():all():item())
	print(nn.attention(tensor.zeros(0, 2, 3, 4), tensor.zeros(0, 2, 3, 4), tensor.zeros(0, 2, 3, 4)):size())  --> 0 2 3 4
	print(nn.attention(tensor.zeros(1, 2, 0, 4), tensor.zeros(1, 2, 3, 4), tensor.zeros(1, 2, 3, 4)):size())  --> 1 2 0 4
end)

it('nn.Attention takes masks, lengths and a memory', function()
	local m = nn.Attention(8, 2, {window = 3, softcap = 2, scale = 0.5})
	local function split(t) return t:view(t:size(1), t:size(2), 2, 4):transpose(2, 3) end
	local x, seen = tensor.randn(2, 5, 8), tensor.rand(2, 1, 5, 5):gt(0.4)
	local y = nn.attention(split(m.query(x)), split(m.key(x)), split(m.value(x)), {mask = seen, window = 3, softcap = 2, scale = 0.5})
	assert(m(x, {mask = seen}):eq(m.out(y:transpose(2, 3):reshape(2, 5, 8))):all():item())
	print((tostring(m):match '^[^\n]*%)'))  --> Attention(8, 2, window=3, softcap=2, scale=0.5)
	local cross = nn.Attention(8, 2, {memory = 6})
	local memory, lengths = tensor.randn(2, 7, 6), tensor{7, 3, dtype = 'int32'}
	local z = cross(x, memory, {lengths = lengths})
	print(z:size())  --> 2 5 8
	assert(z[2]:metrics(cross(x, memory:narrow(2, 1, 3))[2]).max < 1e-6 and z[1]:metrics(cross(x, memory)[1]).max < 1e-6)
	print(graph.trace(cross, {x, memory}):run {x, memory}:size())  --> 2 5 8
	refused("Attention: unknown option 'masks'", m, x, {masks = seen})
	refused('Attention: mask: wanted tensor, got 3', m, x, {mask = 3})
	refused('Attention: wanted a memory (tensor) or a cache (m:cache), got 3', m, x, 3, {})
end)

local x = tensor.zeros(1, 2, 3, 4)
for _, call in ipairs {
	{'wanted q, k and v of shape (batch, heads, time, d), or heads=', tensor.zeros(3, 4), x, x},
	{'wanted k (b, h, s, d) and v (b, h, s, e) that go with q (b, heads, t, d), got q (1, 2, 3, 4), k (1, 2, 3, 5)', x, tensor.zeros(1, 2, 3, 5), x},
	{'wanted k (b, h, s, d) and v (b, h, s, e) that go with q', x, x, tensor.zeros(1, 2, 4, 4)},
	{'wanted k (b, h, s, d) and v (b, h, s, e) that go with q', x, tensor.zeros(2, 2, 3, 4), tensor.zeros(2, 2, 3, 4)},
	{'wanted heads of q that are a multiple of those of k and v', x, tensor.zeros(1, 3, 3, 4), tensor.zeros(1, 3, 3, 4)},
	{'wanted with causal at least as many keys as queries', x, tensor.zeros(1, 2, 2, 4), tensor.zeros(1, 2, 2, 4), {causal = true}},
	{'wanted at least one key of at least one number', x, tensor.zeros(1, 2, 0, 4), tensor.zeros(1, 2, 0, 4)},
	{'operand 3: wanted floats or a quantized tensor, got int32', x, x, tensor.zeros {1, 2, 3, 4, dtype = 'int32'}},
	{'heads: wanted 1 or more, got 0', x, x, x, {heads = 0}},
	{'wanted with heads= q, k and v of shape (batch, time, heads * d)', x, x, x, {heads = 2}},
	{'wanted widths of q and k that are multiples of one head', tensor.zeros(1, 2, 5), tensor.zeros(1, 2, 5), tensor.zeros(1, 2, 5), {heads = 2}},
	{'scale: wanted a finite number, got inf', x, x, x, {scale = 1/0}},
} do
	refused('attention: ' .. call[1], nn.attention, table.unpack(call, 2))
end
