-- SPDX-License-Identifier: MIT
-- Names of PyTorch, NumPy and Python: the errors about them tell the name here. The table is checked as a whole: what stands on
-- its left is none of our names, what stands on its right is.
local prompt = dofile 'tests/tools/prompt.lua'
local session = prompt.session
local internal = debug.getregistry()['quoll.internal']
local habits = internal.import 'interp/prelude/habits'

local function says(lines, wanted)
	local out = session(lines)
	if not out:find(wanted, 1, true) then error(('%q: wanted %q in %q'):format(lines, wanted, out), 2) end
end

it('tensors', function()
	says('x = tensor.ones(2, 3)\nx.T', "In[2]:1: tensor: no method 'T'; here: x:t()\n")
	says('x = tensor.ones(2, 3)\nx:mm(x)', "tensor: no method 'mm'; here: x:matmul(y)\n")
	says('x = tensor.ones(2, 3)\nx.shape()', "tensor: no method 'shape'; here: x:size()\n")
	says('x = tensor.ones(2, 3)\nx.shpe', "tensor: no method 'shpe'; did you mean")
	assert(select(2, pcall(function() return tensor{1}:numpy() end)):find "tensor: no method 'numpy'; here: x:totable%(%)$")
end)
it('modules and optimizers', function()
	says('m = nn.Linear(2, 3)\nm:state_dict()', "Linear: no field or method 'state_dict'; here: m:state()\n")
	says('o = optim.sgd(nn.Linear(2, 3))\no:zero_grad()', "(method 'zero_grad'); here: o:zero()\n")
end)
it('functions of modules', function()
	says('nn.CrossEntropyLoss()', "(field 'CrossEntropyLoss'); here: nn.crossentropy(y, target)\n")
	says('tensor.array{1}', "(field 'array'); here: tensor{1, 2}\n")
	says('optim.Adam(1)', "(field 'Adam'); did you mean 'adam'?\n")
	says('quant.prepare(1)', 'here: m:calibrate\n')
end)
it('globals, with what follows them', function()
	says('torch.zeros(3)', "(global 'torch'); here: tensor.zeros\n")
	says('torch.nn.Linear(2, 3)', "(global 'torch'); here: nn.Linear\n")
	says('torch.nn.functional.relu(x)', 'here: x:relu()\n')
	says('torch.optim.Adam(1)', 'here: optim.adam\n')
	says('torch.float16', "here: a dtype is a text: 'float16'\n")
	says('np.array{1}', "(global 'np'); here: tensor{1, 2}\n")
	says('torch.mm(1, 2)', 'here: x:matmul(y)\n')
	says('torch.nothing_like_it()', 'here: tensor, nn, optim and quant\n')
	says('len(In)', "(global 'len'); here: #x\n")
	says('for i in range(3) do end', "(global 'range'); here: for i = 1, n do … end\n")
end)

local META = debug.getregistry()
pcall(function() return tensor{1}.no_such_method end) -- all files of methods have run
local linear = nn.Linear(1, 1)
local OBJECTS = {x = META['quoll.tensor'].methods, y = META['quoll.tensor'].methods, m = linear, o = optim.sgd(linear)}

it('no name on the left is one of ours', function()
	local own = {tensor = OBJECTS.x, functions = tensor, nn = nn, optim = optim, quant = quant, plot = plot, data = data, module = {}, optimizer = {}, global = {}}
	for kind, list in pairs(habits.kinds) do
		for name in pairs(list) do
			assert(own[kind][name] == nil, kind .. ' ' .. name)
			if kind == 'global' then assert(_G[name] == nil, name) end
			if kind == 'module' then assert(not pcall(function() return linear[name] end), name) end
			if kind == 'optimizer' then assert(OBJECTS.o[name] == nil, name) end
		end
	end
end)
it('plots', function()
	says('plot.heatmap{{1}}', "(field 'heatmap'); here: plot.heat{x}\n")
	says('plot.scater{{1}}', "(field 'scater'); did you mean 'scatter'?\n")
	for name, answer in pairs(habits.kinds.plot) do
		local env = {x = tensor{{1, 2}, {3, 4}}, y = {1, 2}, a = {1, 2}, b = {2, 1}, plot = plot}
		local code = answer:gsub('x=, y=', 'x=y, y=y')
		assert(answer:find '^fig:' or pcall(assert(load('return ' .. code, code, 't', env))), name .. ': ' .. answer)
	end
end)
it('all names on the right are', function()
	local n = 0
	for kind, list in pairs(habits.kinds) do
		for name, answer in pairs(list) do
			for object, method in answer:gmatch '%f[%w_]([xymo]):([%w_]+)' do
				assert(OBJECTS[object][method] ~= nil, kind .. ' ' .. name .. ': ' .. answer)
				n = n + 1
			end
			for module, field in answer:gmatch '%f[%w_](%l+)%.(%a[%w_]*)' do
				local place = ({tensor = tensor, nn = nn, optim = optim, quant = quant, plot = plot, math = math, io = io})[module]
				assert(not place or place[field] ~= nil, kind .. ' ' .. name .. ': ' .. answer)
				n = n + 1
			end
		end
	end
	assert(n > 150, n)
end)
it('the answers that are code run', function()
	local env = setmetatable({x = tensor{{1, 2}, {3, 4}}, y = tensor{{1, 2}, {3, 4}}, q = tensor{{1, 2}, {3, 4}}, mask = tensor{{true, false}, {true, true}}, value = 0, lo = 0, hi = 1,
		axis = 1, size = 1, n = 4, weight = tensor{1, 1}, bias = tensor{0, 0}, indices = tensor{{1, 2}, dtype = 'int64'}}, {__index = _G})
	for name, answer in pairs(habits.kinds.tensor) do
		local x = name:find '^q_' and env.x:quantize 'int8' or name == 'int_repr' and env.x:quantize 'int8' or name == 'one_hot' and tensor{1, 2, dtype = 'int64'} or
			(name:find 'pool' and tensor.ones(1, 1, 2, 2)) or (name:find '^logical' and env.mask) or env.x
		local here = setmetatable({x = x, y = x}, {__index = env})
		local f = load('return ' .. answer, answer, 't', here) or load(answer, answer, 't', here)
		if not answer:find 'with a device' then
			assert(f, answer)
			local good, message = pcall(f)
			assert(good, ('%s: %s: %s'):format(name, answer, message))
		end
	end
end)

it('names of plotting and loading have answers, near ones too', function()
	local suggest = debug.getregistry()['quoll.internal'].import 'interp/prelude/habits'
	assert(suggest.answer('plot', 'heatmap'):find 'plot.heat' and suggest.answer('data', 'DataLoader'):find 'data.loader')
	local function hint(text)
		local pipe = io.popen(('"/proc/$PPID/exe" -e %q 2>&1'):format(text))
		local line = pipe:read 'l'
		pipe:close()
		return line
	end
	assert(hint 'plot.heatmap{1}':find 'here: plot.heat{x}', hint 'plot.heatmap{1}')
	assert(hint 'data.dataloader(1)':find 'here: data.loader' and hint 'quant.quantise(1)':find 'here: x:quantize')
	assert(hint 'nn.BatchNorm1d(3)':find 'here: nn.BatchNorm2d' and hint 'plot.scater{1}':find "did you mean 'scatter'")
end)
