-- SPDX-License-Identifier: MIT
-- labels: full
-- Rows of a table by number in exported C.
local exported = dofile 'tests/tools/exported.lua'
exported.skip()
tensor.seed(22)
local ids = tensor.randint {8, 6, low=1, high=30}:to 'int32'
local m = nn.Sequential {nn.Embedding(30, 7)}
local cases = {{name='floats', x=ids, graph=graph.trace(m, ids:narrow(1, 1, 1))},
	{name='numbers of 64 bits', x=ids:to 'int64', graph=graph.trace(m, ids:narrow(1, 1, 1):to 'int64')}}
for _, spec in ipairs {'int8/1', 'int8', 'uint8/1', 'int4/1', 'int4:3', 'uint4:4', 'int16/1', 'binary/1'} do
	cases[#cases + 1] = {name=spec, x=ids, graph=exported.quantized(m, ids, {mode='weight_only', weight=spec})}
end
local both = nn.Sequential {nn.Embedding(30, 7), nn.Linear(7, 3)}
for _, spec in ipairs {'int8/1', 'int4/1'} do
	cases[#cases + 1] = {name='rows as codes, ' .. spec, x=ids, graph=function()
		local g = exported.quantized(both, ids, {mode='static', weight=spec})
		assert(g:node('embedding1').attrs.out)
		return g
	end}
end
exported.together(cases, {compilers={'cc -O2'}, alone=true})

-- the codes of a quantize behind it
tensor.seed(43)
local w = tensor.randn(20, 6)
for _, dtype in ipairs {'int32', 'int64'} do
	local list = {}
	for _, spec in ipairs {'int8', 'int8/1', 'uint8/1', 'int4/1', 'int16/1', 'int4:3'} do
		local q = w:quantize(spec)
		list[('%s to codes by %s'):format(spec, dtype)] = function(_, i) return q:embedding(i, {out={dtype='uint8', scale=0.03, zero_point=99}}) end
	end
	list['floats to codes by ' .. dtype] = function(_, i) return w:embedding(i, {out={dtype='int16', scale=1e-4}}) end
	exported.functions(list, tensor.randint{1000, 5, low=1, high=20, dtype=dtype})
end
