-- SPDX-License-Identifier: MIT
-- labels: quick host
-- Pass raise_quantize: quantize moves up through what moves or compares, bit for bit, and into the out= of integer ops.
tensor.seed(9)
local s = quant.spec{dtype='uint8', scale=0.05, zero_point=90}

local function order(g)
	local list = {}
	for _, name in ipairs(g.order) do
		if g.nodes[name].op ~= 'const' then list[#list + 1] = g.nodes[name].op end
	end
	return table.concat(list, ' ')
end

it('through relu, max pooling, padding and views, with the same codes', function()
	local m = nn.module(function(_, v)
		return v:maxpool2d(2):relu():pad({1, 1}):permute(1, 3, 2, 4):reshape(v:size(1), 3 * 4 * 6):narrow(2, 3, 40):quantize(s)
	end)
	local x = tensor.randn(3, 3, 8, 8) * 6
	local g = graph.trace(m, x)
	local h = g:pass 'fuse'
	print(order(g))  --> input maxpool2d relu pad permute reshape narrow quantize
	print(order(h))  --> input quantize maxpool2d relu pad permute reshape narrow
	for b = 1, 3 do
		local v = tensor.randn(b, 3, 8, 8) * 6
		assert(h:run(v, {check=true}):codes():eq(m(v):codes()):all():item())
	end
	print(h:node('narrow1').dtype, #select(2, h:pass 'fuse'))  --> uint8 0
end)

it('through borders that are numbers; not through packed codes, ranges that are found, other readers', function()
	local function after(run)
		return order(graph.trace(nn.module(run), tensor.randn(2, 3, 8, 8)):pass 'raise_quantize')
	end
	print(after(function(_, v) return v:pad({1, 1}, {value=1}):quantize(s) end))  --> input quantize pad
	local v, m = tensor.randn(2, 3, 8, 8), nn.module(function(_, v) return v:pad({1, 2}, {value=0.37}):quantize(s) end)
	assert(graph.trace(m, v):pass('raise_quantize'):run(v):codes():eq(m(v):codes()):all():item())
	print(after(function(_, v) return v:relu():quantize{dtype='int4', scale=0.5} end))  --> input relu quantize
	print(after(function(_, v) return v:relu():quantize 'int8' end))  --> input relu quantize
	print(after(function(_, v)
		v = v:relu()
		return v:quantize(s), v
	end))  --> input relu quantize
	print(after(function(_, v) return v:relu():quantize{dtype='int8', scheme='log', scale=0.5} end))  --> input relu quantize
end)

it('into an integer layer: one rounding, at most one code away', function()
	local m = nn.Sequential{nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 4)}
	local x = tensor.randn(64, 16)
	m:calibrate({{x, x}}, {log=false})
	local q, r = graph.trace(m, x):quantize{mode='static'}
	print(order(q), q:node('linear1').attrs.out.name, r[1].output)  --> input quantize linear linear uint8 uint8
	local _, inner = q:run(x, {keep='linear1'})
	local spec = q:node('linear1').attrs.out
	local apart = inner.linear1:codes():to 'int32' - m[2](m[1](x)):quantize(spec):codes():to 'int32'
	assert(apart:abs():max():item() <= 3)
	quant.log 'reset'
	q:run(x)
	print(quant.log():where{op='linear'}[1].path, #quant.log():where{path='fallback'})  --> int8 0
end)
