-- SPDX-License-Identifier: MIT
-- What every module has: names, parts, modes, copies, files.
tensor.seed(1)
local function net()
	return nn.Sequential {nn.Flatten(), nn.Linear(12, 8), nn.ReLU(), nn.Residual {nn.Linear(8, 8), nn.Tanh()},
		nn.Linear(8, 3, {name='last'})}
end

local function names(t)
	local list = {}
	for name in pairs(t) do list[#list + 1] = name end
	return table.concat(list, ' ')
end

local function refused(pattern, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(pattern, 1, true), message)
end

local m = net()
print(names(m:named()))  --> flatten1 linear1 relu1 residual1 residual1.linear1 residual1.tanh1 last
print(names(m:state()))  --> linear1.weight linear1.bias residual1.linear1.weight residual1.linear1.bias last.weight last.bias
print(#m:parameters(), m:nbytes())  --> 6 812
print(#m, m.last == m[5], m.residual1.linear1 == m[4][1])  --> 5 true true
print(m(tensor.ones(2, 3, 2, 2)):size())  --> 2 3

it('prints as a tree', function()
	local text = tostring(m)
	assert(text:find('Sequential()  203 parameters', 1, true))
	assert(text:find('\n  linear1    Linear(12, 8)', 1, true) and text:find('\n    tanh1    Tanh()', 1, true), text)
end)

it('has modes, also inside', function()
	m:eval()
	for _, inner in pairs(m:named()) do assert(inner.training == false) end
	m:train()
	for _, inner in pairs(m:named()) do assert(inner.training == true) end
end)

it('a clone is apart, and what is shared stays shared', function()
	local c = m:clone()
	assert(c.last == c[5] and c.last ~= m.last)
	tensor.nograd(function() c.last.weight:fill_(0) end)
	assert(m.last.weight:abs():max():item() > 0 and c.last.weight:requires_grad())
	local shared = nn.Linear(2, 2)
	local twice = nn.module(function(self, x) return self.a(self.b(x)) end, {a=shared, b=shared}):clone()
	assert(twice.a == twice.b and twice.a ~= shared)
end)

it('nn.module: parts by name and in a list', function()
	local custom = nn.module(function(self, x) return self[1](x) * self.gain + self.shift end,
		{nn.Linear(3, 2), gain=tensor.ones(2), ids=tensor{1, 2, dtype='int32'}, shift=5})
	assert(names(custom:state()) == 'gain ids linear1.weight linear1.bias')
	assert(#custom:parameters() == 3 and custom.shift == 5 and custom.nothing == nil)
	assert(custom(tensor.zeros(1, 3)):size(2) == 2)
	refused('module: wanted a function, got 3', nn.module, 3)
	refused('module: wanted modules in the list of parts, got 3', nn.module, print, {3})
end)

it('wrong names are found', function()
	refused("Linear: no field or method 'wieght'; did you mean 'weight'?", function() return m.last.wieght end)
	refused("Sequential: no field or method 'fitt'; did you mean 'fit'?", function() return m:fitt() end)
	refused('parameters: wanted a module', m.parameters, 3)
	refused("Sequential: wanted names that differ, got 'a' twice", nn.Sequential,
		{nn.Linear(1, 1, {name='a'}), nn.Linear(1, 1, {name='a'})})
	refused('Sequential: wanted modules, got 3', nn.Sequential, {3})
	refused("Linear: name: wanted letters, digits, '_' and '.', got 'a b'", nn.Linear, 1, 1, {name='a b'})
end)

it('to casts what is float', function()
	local half = net():to 'float16'
	assert(half.last.weight:dtype() == 'float16' and half:nbytes() == 406 and half.last.weight:requires_grad())
end)

it('save and load', function()
	local name = os.tmpname()
	local file = name .. '.safetensors'
	m:save(file)
	local other = net()
	local weight = other.last.weight
	assert(other:load(file) == other and other.last.weight == weight, 'the tensors that optimizers hold were replaced')
	for key, value in pairs(m:state()) do assert(other:state()[key]:detach():error(value:detach()).max == 0) end
	local all = tensor.load(file)
	all['last.bias'], all.more = nil, tensor{1}
	all['last.weight'] = tensor.ones(3, 9)
	tensor.save(file, all)
	local before = other.linear1.weight:detach():clone()
	tensor.nograd(function() other.linear1.weight:add_(1) end)
	refused('1 missing: last.bias; 1 extra: more; last.weight has shape (3, 8), the file has (3, 9)', other.load, other, file)
	assert(other.linear1.weight:detach():error(before + 1).max == 0, 'a refused load has changed the model')
	all['last.weight'] = tensor.ones(3, 8)
	tensor.save(file, all)
	refused('1 missing: last.bias; 1 extra: more', other.load, other, file)
	local same, r = other:load(file, {partial=true, log=false})
	assert(same == other and other.last.weight:min():item() == 1)
	assert(r:where{state='missing'}[1].name == 'last.bias' and r:where{state='extra'}[1].name == 'more')
	assert(tostring(r):find('1 missing: last.bias; 1 extra: more', 1, true), tostring(r))
	refused('load:', other.load, other, name .. '.none')
	local renamed = nn.Sequential {nn.Linear(3, 2, {name='fc'})}
	tensor.save(file, {['model.fc.weight']=tensor.ones(2, 3), ['model.fc.bias']=tensor{5, 6}})
	renamed:load(file, {rename=function(key) return 'model.' .. key end})
	assert(renamed.fc.bias:totable()[2] == 6)
	os.remove(file)
	os.remove(name)
end)


it('prints names of any length and depth', function()
	local name = ('a'):rep(120)
	local long = tostring(nn.module(function(_, y) return y end, {[name] = nn.Linear(2, 2)}))
	assert(long:find(name .. '  Linear(2, 2)', 1, true), long)
	local deep = nn.Linear(2, 2)
	for _ = 1, 300 do deep = nn.Sequential{deep} end
	assert(#tostring(deep) < 100000 and tostring(deep):find 'linear1')
end)

it('summary', function()
	local r = m:summary(tensor.ones(2, 3, 2, 2))
	assert(#r == 7 and r[2].name == 'linear1' and r[2].parameters == 104 and r[2].bytes == 416 and r[2].output == 'float32(2, 8)')
	assert(r[4].output == 'float32(2, 8)' and tostring(r):find '203 parameters, 812 bytes')
	local plain = nn.Linear(2, 3):summary()
	assert(#plain == 1 and plain.name == 'linear' and plain.parameters == 9)
	assert(m(tensor.ones(2, 3, 2, 2)):size(2) == 3, 'hooks are left')
end)

it('dequantize', function()
	local q = m:quantize {mode='weight_only', weight='int4:4'}
	local x = tensor.randn(5, 12)
	local f = q:dequantize()
	assert(f(x):detach():error(q(x)).max < 1e-6 and f.last.weight:requires_grad() and f:train())
	refused('dequantize: wanted a quantized model, got a float one', m.dequantize, m)
end)

m.last:source()  --> -- quoll/nn/modules/linear...
--> ...self:compute(module.real(x, self.weight), self.weight)...
