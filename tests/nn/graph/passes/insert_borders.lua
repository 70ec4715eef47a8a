-- SPDX-License-Identifier: MIT
-- Pass insert_borders: dequantize where codes meet a float op, one for all of them; nothing where codes are taken.
tensor.seed(10)

it('stands between codes and ops without an integer version', function()
	local m = nn.Sequential{nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 8)}
	local x = tensor.randn(16, 8)
	local g = graph.trace(m, x)
	local q = g:quantize{mode='static', input={dtype='int8', scale=0.05}, rules={{'linear1', output={dtype='int8', scale=0.03}}},
		fuse=false}
	local list = {}
	for _, name in ipairs(q.order) do
		if q.nodes[name].op ~= 'const' then list[#list + 1] = name end
	end
	print(table.concat(list, ' '))  --> input linear1.quantize linear1 linear1.dequantize gelu1 layernorm1 linear2.quantize relu1 linear2
	quant.fallback 'error'
	q:run(x, {check=true})
	quant.fallback 'silent'
	print(#select(2, q:pass 'insert_borders'))  --> 0
end)

it('is shared by several readers', function()
	local m = nn.module(function(self, v)
		v = self.a(v)
		return v:exp() + v:sin()
	end, {a=nn.Linear(4, 4)})
	local q = graph.trace(m, tensor.randn(1, 4)):quantize{mode='static', rules={{'a', input={dtype='int8', scale=0.1}, output={dtype='int8', scale=0.1}}}}
	print(q:node('exp1').inputs[1], q:node('sin1').inputs[1], q:node('a.dequantize').op)  --> a.dequantize a.dequantize dequantize
end)
