-- SPDX-License-Identifier: MIT
-- labels: quick
-- Pass recognize: what is spelled out becomes one op, in all the forms that exporters write; what only looks like it stays.
tensor.seed(6)
local x = tensor.randn(3, 8) * 2
local w, b = tensor.randn(8), tensor.randn(8)

local function ops_of(f, given)
	local g = graph.trace(nn.module(f, {}), given or x)
	local made = g:pass 'layers'
	assert((made:run(given or x) - g:run(given or x)):abs():max():item() < 1e-5)
	assert(#select(2, made:pass 'layers') == 0)
	local names = {}
	for _, name in ipairs(made.order) do
		local op = made:node(name).op
		if op ~= 'input' and op ~= 'const' then names[#names + 1] = op end
	end
	return table.concat(names, ' '), made
end

it('finds activations', function()
	local r2 = math.sqrt(2)
	for _, f in ipairs {function(_, v) return v * 0.5 * ((v / r2):erf() + 1) end, function(_, v) return v * ((v * (1 / r2)):erf() + 1) * 0.5 end,
		function(_, v) return v * (((v / r2):erf() + 1) * 0.5) end} do
		assert(ops_of(f) == 'gelu', ops_of(f))
	end
	for _, f in ipairs {function(_, v) return v * 0.5 * ((math.sqrt(2 / math.pi) * (v + v:pow(3) * 0.044715)):tanh() + 1) end,
		function(_, v) return v * 0.5 * ((math.sqrt(2 / math.pi) * (v + 0.044715 * v * v * v)):tanh() + 1) end} do
		local names, g = ops_of(f)
		assert(names == 'gelu' and g:node(g.order[#g.order]).attrs.approximate == 'tanh', names)
	end
	assert(ops_of(function(_, v) return v * v:sigmoid() end) == 'silu' and ops_of(function(_, v) return v:sigmoid() * v end) == 'silu')
	assert(ops_of(function(_, v) return v * (v + 3):clamp(0, 6) / 6 end) == 'hardswish' and ops_of(function(_, v) return v:clamp(0, 6) end) == 'relu6')
end)

it('finds norms along the last axis', function()
	local function rms(v) return (v:square():mean {axis = 2, keep = true} + 1e-5) end
	assert(ops_of(function(_, v) return v * rms(v):rsqrt() * w end) == 'rmsnorm' and ops_of(function(_, v) return w * (v / rms(v):sqrt()) end) == 'rmsnorm')
	assert(ops_of(function(_, v) return w * (v * rms(v):sqrt():reciprocal()) end) == 'rmsnorm')
	local function norm(v)
		local d = v - v:mean {axis = 2, keep = true}
		return d / (d:pow(2):mean {axis = 2, keep = true} + 1e-6):sqrt() * w + b
	end
	local names, g = ops_of(function(_, v) return norm(v) end)
	assert(names == 'layernorm' and math.abs(g:node(g.order[#g.order]).attrs.eps - 1e-6) < 1e-12, names)
end)

it('leaves what is something else', function()
	assert(ops_of(function(_, v) return v * 0.5 * ((v / 1.5):erf() + 1) end):find 'erf')
	assert(not ops_of(function(_, v) return v * (v + 1):sigmoid() end):find 'silu')
	assert(ops_of(function(_, v) return v:clamp(0, 5) end) == 'clamp')
	assert(ops_of(function(_, v) return v * (v:square():mean {axis = 1, keep = true} + 1e-5):rsqrt() * w end, tensor.randn(3, 4, 8)):find 'mean')
	assert(ops_of(function(_, v) return v * (v:square():mean {axis = 2, keep = true} + 1e-5):rsqrt() * tensor.ones(1) end):find 'mean') -- one weight for all
end)
