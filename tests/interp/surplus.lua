-- SPDX-License-Identifier: MIT
-- No function drops what it is given: every documented function, method and op is called with one argument too many, and
-- with an option that it does not have, and must refuse both by its own name. The names come from the walk of help_index, so
-- a new function is tested without a line here; one with options better has valid arguments in `before`.
local internal = debug.getregistry()['quoll.internal']
local index = internal.import 'interp/help/help_index'
local titles = internal.import 'interp/prelude/titles'
local module = internal.import 'nn/base/module'

local x, model = tensor.ones(2, 2), nn.Sequential{nn.Linear(2, 2)}
local language = nn.Transformer {vocab = 4, d = 4, heads = 1, layers = 1, ff = 4}
local image = tensor.ones(1, 1, 4, 4)
local junk = setmetatable({}, {__name = 'junk'})

local ops = {}
for _, list in ipairs {tensor.ops(), nn.ops()} do
	for _, op in ipairs(list) do ops[op.name] = op end
end

local members, all = {}, {}
titles.each_member(function(title, value)
	if type(value) == 'function' then
		members[title] = value
		all[#all + 1] = title
	end
end)
table.sort(all)

local function is_op(title, name)
	return ops[name] and (title:find '^x:' or title:find '^tensor%.' or title:find '^nn%.' or title == 'quant.lsq')
end

local function bare_of(title) return title:match '[^.:]+$' end

local function op_of(title)
	local bare = bare_of(title)
	local name = ops[bare] and bare or bare:gsub('_$', '')
	return is_op(title, name) and debug.getinfo(members[title], 'S').what == 'C' and ops[name] or nil
end

-- What the call raises; an error when it raises nothing, or not by its name.
local function message_of(title, ...)
	local ok, message = pcall(members[title], ...)
	message = tostring(message):gsub('^%S+:%d+: ', '')
	assert(not ok, title .. ': was accepted')
	local name = bare_of(title):gsub('_$', '')
	assert(message:find('^' .. name) or message:find('^%l+[.:]' .. name) or title == 'quant.observer', title .. ': ' .. message)
	return message
end

local many = {}
for i = 1, 12 do many[i] = junk end

-- Functions that check what they are given by themselves: what they do take, followed by one argument too many.
local own = {
	['tensor.meshgrid'] = {tensor{1}, 5},
	['module:add'] = {model, 'name', nn.ReLU(), 3}, ['optimizer:lr'] = {optim.sgd({tensor{1, grad = true}}), 0.1, 3}, ['report:select'] = {report{{a = 1}}, {'a'}, {'b'}},
	['quant.bytes'] = {{1, 2}, 'int8', junk},
	['plot.bar'] = {x[1], 5}, ['plot.box'] = {x[1], 5}, ['plot.heat'] = {x, 5}, ['plot.hist'] = {x[1], 5}, ['plot.line'] = {x[1], 5},
	['plot.scatter'] = {x[1], 5}, ['plot.image'] = {x, 5},
	help = {'x:relu', 3},
}
local free = {collectgarbage = true, ['tensor.nograd'] = true, ['module:summary'] = true} -- pass on what they are given
assert(not pcall(nn.Linear(2, 2).summary, nn.Linear(2, 2), x, x))

describe('an argument too many', function()
	for _, title in ipairs(all) do
		local op = op_of(title)
		it(title, function()
			if free[title] or title:find '^nn%.%u' then return end
			if op then
				local operands = {}
				for i = 1, math.min(op.arity_max, 8) do operands[i] = x end
				if op.list_in then operands = {{x, x}} end
				for _ = 1, 12 do operands[#operands + 1] = junk end
				message_of(title, table.unpack(operands))
			elseif own[title] then
				message_of(title, table.unpack(own[title]))
			else
				local message = message_of(title, table.unpack(many))
				assert(message:find(': wanted no argument %d+, got '), title .. ': ' .. message)
			end
		end)
	end
end)

-- Arguments with which a kind of module is made.
local make = {Attention = {4, 2}, GroupNorm = {2, 4}, InstanceNorm1d = {2}, InstanceNorm2d = {2}, InstanceNorm3d = {2}, AdaptiveAvgPool2d = {2}, AdaptiveMaxPool2d = {2}, AvgPool1d = {2}, AvgPool3d = {2}, Conv3d = {1, 2, 3}, MaxPool3d = {2},
	 AvgPool2d = {2}, BatchNorm2d = {2}, Conv1d = {1, 2, 3}, Conv2d = {1, 2, 3}, ConvTranspose1d = {1, 2, 3},
	ConvTranspose2d = {1, 2, 3}, Dropout = {}, Embedding = {4, 2}, Encoder = {{vocab = 4, d = 4, heads = 2, layers = 1}}, Flatten = {}, GELU = {}, GRU = {2, 3}, Hardswish = {}, Hardsigmoid = {}, Hardtanh = {},
	Hardshrink = {}, Softshrink = {}, Threshold = {}, ELU = {}, SELU = {}, CELU = {}, Softplus = {}, Mish = {}, Softsign = {}, LogSigmoid = {}, LogSoftmax = {},
	PReLU = {3}, LocalResponseNorm = {3}, LSTM = {2, 3}, LayerNorm = {2}, LeakyReLU = {}, Linear = {2, 2}, MaxPool1d = {2}, MaxPool2d = {2}, RMSNorm = {2}, RNN = {2, 3}, ReLU = {},
	ReLU6 = {}, SiLU = {}, Sigmoid = {}, Softmax = {}, Tanh = {}, Sequential = {{}}, Residual = {{}}, Upsample = {4}, Graph = {graph.trace(nn.ReLU(), tensor.ones(1, 2))},
	Transformer = {{vocab = 4, d = 4, heads = 2, layers = 1}}}

describe('modules', function()
	for name in pairs(module.classes) do
		if nn[name] and name ~= 'module' then
			it(name, function()
				assert(make[name], name .. ': no arguments in this test')
				local m = nn[name](table.unpack(make[name]))
				local class = module.class_of(m)
				assert(tostring(m):find(name, 1, true))
				local given = {table.unpack(make[name])}
				for _ = 1, #(class.positional or {}) do given[#given + 1] = junk end
				given[#given + 1] = 5
				local ok, message = pcall(nn[name], table.unpack(given))
				assert(not ok and message:find(name .. ': wanted no argument ' .. #given, 1, true), tostring(message))
				local options = class.list and given[1] or {}
				options.nosuch = 1
				given = class.list and {options} or {table.unpack(make[name])}
				if not class.list then given[#given + 1] = options end
				ok, message = pcall(nn[name], table.unpack(given))
				assert(not ok and message:find(name .. ": unknown option 'nosuch'", 1, true), tostring(message))
				ok, message = pcall(m, image, junk, junk, junk)
				assert(not ok and message:find(name .. ': wanted no argument %d'), name .. ': ' .. tostring(message))
			end)
		end
	end
end)

-- Valid arguments before the options.
local batches = {{x, tensor{1, 2, dtype = 'int64'}}}
local traced = graph.trace(model, tensor.ones(2, 2))
local parameter = {tensor{1, grad = true}}
local before = {
	['bench.compare'] = false, ['bench.load'] = false, ['bench.matmul'] = {}, ['bench.models'] = {{a = model}}, ['bench.ops'] = {}, ['bench.time'] = {print},
	['data.cifar10'] = {}, ['data.fashion'] = {}, ['data.mnist'] = {}, ['data.ptb'] = {}, ['data.synth'] = {}, ['data.text'] = {},
	['data.folder'] = {'.'}, ['data.loader'] = {data.tensors(x, tensor{1, 2, dtype = 'int64'})}, ['data.tensors'] = {x, tensor{1, 2, dtype = 'int64'}},
	['figure:encode'] = false, ['figure:text'] = {plot.line{{1, 2}}}, ['graph.op'] = {}, ['graph:calibrate'] = {traced, {x}},
	['graph:export'] = {traced}, ['graph:match'] = {traced, {}}, ['graph:pass'] = false, ['graph:plan'] = {traced}, ['graph:print'] = {traced},
	['graph:quantize'] = {traced}, ['graph:run'] = {traced, x}, ['hw.force'] = false, ['hw.efficient'] = false, ['hw.recommend'] = {}, ['hw.tune'] = {{op = 'matmul', m = 1, n = 8, k = 8}},
	['jupyter.display'] = {x}, ['module:calibrate'] = {model, {x}}, ['module:evaluate'] = {model, batches}, ['module:fit'] = {model, batches},
	['module:generate'] = {model, tensor{1, dtype = 'int32'}}, ['module:prompt'] = {language, {1}}, ['bench.generate'] = {language}, ['module:load'] = {model, 'f.npz'}, ['module:quantize'] = {model},
	['observer:plot'] = {quant.observer 'int8'}, ['optim.adam'] = {parameter}, ['optim.adamw'] = {parameter}, ['optim.adagrad'] = {parameter}, ['optim.rmsprop'] = {parameter}, ['optim.clip'] = {parameter},
	['optim.cosine'] = {}, ['optim.onecycle'] = {}, ['optim.sgd'] = {parameter}, ['optim.step'] = {}, ['report:plot'] = false, ['report:group'] = {report{{a = 1}}, 'a', 'count'}, ['report:mean'] = {report{{a = 1}}, 'a', 'a'},
	['report:pivot'] = {report{{a = 1}}}, ['report:show'] = {report{{a = 1}}}, ['report:text'] = {report{{a = 1}}}, report = false, ['graph.trace'] = {model, x},
	['quant.methods'] = {model, {'rtn'}}, ['quant.search'] = {model}, ['quant.sensitivity'] = {model}, ['sweep.diff'] = {'a.db', 'b.db'}, ['sweep.load'] = {'a.db'}, ['sweep.merge'] = {{'a.db', 'b.db'}},
	['sweep.run'] = {}, ['sweep.steps'] = {'a.db'}, ['tensor.save'] = {'f.npz', x}, ['tokenizer:encode'] = false, ['tensor.memory'] = false,
	['plot.bar'] = {x[1]}, ['plot.box'] = {x[1]}, ['plot.heat'] = {x}, ['plot.hist'] = {x[1]}, ['plot.line'] = {x[1]}, ['plot.scatter'] = {x[1], x[1]}, ['plot.image'] = {x},
	['quant.observer'] = {}, ['quant.spec'] = {}, ['quant.params'] = false, ['quant.bytes'] = {{1}, 'int8'}, ['quant.fallback'] = false, ['quant.ledger'] = false,
	['quant.log'] = false, ['quant.dtype'] = false,
}

-- The object of a method; a function without a line in `before` must at least refuse the table.
local objects = {x = x, module = model, report = report{{a = 1}}, graph = traced, observer = quant.observer 'int8', figure = plot.line{{1, 2}},
	optimizer = optim.sgd(parameter), dataset = data.tensors(x, x)}
local function sample(title) return objects[title:match '^(%l+):'] end

describe('an option that does not exist', function()
	for _, title in ipairs(all) do
		local op, entry = op_of(title), index.by_title[title]
		local options = not title:find '^nn%.%u' and entry and (#entry.options > 0 or before[title])
		it(title, function()
			if op then
				local operands = {}
				for i = 1, math.min(op.arity_min, 8) do operands[i] = x end
				if op.list_in then operands = {{x, x}} end
				operands[#operands + 1] = {nosuch = 1}
				local message = message_of(title, table.unpack(operands))
				assert(message:find "unknown %l+ 'nosuch'", message)
			elseif options then
				if before[title] == false then return end
				if not before[title] then return (message_of(title, table.unpack(title:find ':' and {sample(title), {nosuch = 1}} or {{nosuch = 1}}))) end
				local given = {table.unpack(before[title])}
				given[#given + 1] = {nosuch = 1}
				local message = message_of(title, table.unpack(given))
				assert(message:find "unknown %l+ 'nosuch'", message)
			end
		end)
	end
end)

-- Lists: what stands beside the items by name would be dropped.
it('lists refuse fields by name', function()
	local r, m = report {{a = 1, b = 2}}, nn.Linear(2, 2)
	local function refused(f, ...)
		local good, message = pcall(f, ...)
		assert(not good and message:find "wanted a list.*, got a field 'nosuch' beside it" and not message:find '\n', message)
	end
	refused(tensor.cat, {x, x, nosuch = 1})
	refused(tensor.stack, {x, x, nosuch = 1}, {axis = 1})
	refused(x.sum, x, {axis = {1, nosuch = 1}})
	refused(function() return x[{1, nosuch = 1}] end)
	refused(quant.spec, {bits = {8, 4, nosuch = 1}, axis = 1})
	refused(quant.compare, x, {'int8', nosuch = 1})
	refused(quant.compare, x, {nosuch = {'int8'}})
	refused(quant.search, m, {data = {{x, x}}, choices = {'int8', nosuch = 'int4'}, metric = 'loss', drop = 1})
	refused(bench.compare, x, {'int8', nosuch = 1})
	refused(bench.matmul, {sizes = {8, nosuch = 1}})
	refused(bench.ops, {sizes = {8, nosuch = 1}})
	refused(report, {{a = 1}, columns = {'a', nosuch = 1}})
	refused(r.group, r, {nosuch = 'a'})
	refused(r.group, r, 'a', {b = {'mean', nosuch = 'max'}})
	refused(r.pivot, r, {rows = {'a', nosuch = 1}, columns = 'b', values = 'b'})
	refused(r.sort, r, {'a', nosuch = true})
	refused(plot.line, {{1, 2, 3, nosuch = 'a'}})
	refused(plot.line, {{1, 2, 3}, {1, 2, 3, nosuch = 'a'}})
end)

-- What a module's call, the constructors and some methods take as PyTorch does.
print(nn.LeakyReLU(0.1)(tensor{-1}))                              --> float32(1)  -0.1000
print(nn.Conv2d(3, 4, 3, 2)(tensor.ones(1, 3, 7, 7)):size())      --> 1 4 3 3
print(nn.Conv2d(3, 4, 3, 2, 1)(tensor.ones(1, 3, 7, 7)):size())   --> 1 4 4 4
print(nn.MaxPool2d(3, 2)(tensor.ones(1, 1, 7, 7)):size())         --> 1 1 3 3
print(nn.AvgPool2d(3, 2, 1)(tensor.ones(1, 1, 7, 7)):size())      --> 1 1 4 4
print(#nn.Linear(3, 4, false):parameters())                       --> 1
print(nn.Dropout(0.5):train(false)(tensor.ones(4)))               --> float32(4)  1 1 1 1
print(optim.sgd({tensor{1, grad = true}}, 0.25):lr())             --> 0.25
print(x:size(1, nil), pcall(x.size, x, 1, 2))                     --> 2 false size: wanted no argument 3, got number 2

-- Values that stand where nothing is read: behind a list, in a list, in a file's options, in a batch.
local function refuses(wanted, ...)
	local ok, message = pcall(...)
	message = tostring(message):gsub('^%S+:%d+: ', '')
	assert(not ok and message:find(wanted, 1, true), (ok and 'was accepted: ' or 'message: ') .. message)
end

it('lists hold items only', function()
	refuses("tensor: wanted no argument 2, got table; options go into the list", tensor, {1, 2}, {dtype = 'int8'})
	refuses('tensor: wanted no argument 2, got string int8', tensor, {1, 2}, 'int8')
	refuses('tensor: wanted no argument 3, got number 3', tensor, 1, nil, 3)
	refuses("tensor: wanted a list of numbers, got a field 5 beside it", tensor, {1, 2, [5] = 3})
	refuses("tensor: wanted a list of numbers, got a field 'dtype' beside it", tensor, {{1, 2, dtype = 'int8'}, {1, 2}})
	refuses("tensor: wanted a list of numbers, got a field 0 beside it", tensor, {[0] = 1, 2})
	refuses('tensor: level 2: wanted lists of 0 items each', tensor, {{}, {5}})
	refuses('tensor: values: wanted them as items', tensor, {values = 3})
	for _ = 1, 10 do refuses("cat: wanted a list of tensors, then options in a table, got a field 'axis' beside it", tensor.cat, {x, x, keep = 1, axis = 1, foo = 3}) end
	refuses("stack: wanted a list of tensors, then options in a table, got a field 4 beside it", tensor.stack, {x, x, [4] = x})
	print(tensor({1, 2}, nil), tensor(3), tensor{{}, {}}, tensor.cat({x, x}, {axis = 1}):size(1)) --> float32(2)  1  2 3 float32(2, 0) 4
	local lazy = setmetatable({}, {__len = function() return 2 end, __index = function(_, i) return i end})
	print(tensor(lazy)) --> float32(2)  1  2
end)

it('options of another file format', function()
	local file = os.tmpname()
	for _, format in ipairs {'npy', 'png', 'safetensors'} do
		local value = format == 'safetensors' and {a = x} or x:to 'uint8'
		refuses('compress: wanted a name that ends in .npz, got .' .. format, tensor.save, file .. '.' .. format, value, {compress = true})
		assert(not io.open(file .. '.' .. format))
		tensor.save(file .. '.' .. format, value, {compress = false})
		os.remove(file .. '.' .. format)
	end
end)

it('batches and inputs', function()
	local y = tensor{1, 2, dtype = 'int64'}
	local quiet = {log = false}
	for _, f in ipairs {model.fit, model.evaluate, model.calibrate} do
		refuses('data: item 1: wanted a batch {x, y}, got one with a field 3', f, model, {{x, y, 3}}, quiet)
		refuses('data: item 2: wanted a batch {x, y}, got 5', f, model, {{x, y}, 5, {x, y}}, quiet)
		refuses('data: item 2: wanted a batch {x, y}, got nil', f, model, {{x, y}, nil, {x, y}}, quiet)
		refuses('data: item 2: wanted a batch {x, y}, got one without x', f, model, {{x, y}, {nil, y}}, quiet)
	end
	refuses('run: inputs: wanted only inputs of the graph, got another at 2', traced.run, traced, {x, x})
	refuses("run: inputs: wanted only inputs of the graph, got another at 'mask'", traced.run, traced, {x, mask = x})
	for _, bad in ipairs {3, 'sgd', {lr = 0.1}, {}} do refuses('fit: opt: wanted an optimizer, as in optim.sgd', model.fit, model, {{x, y}}, {opt = bad}) end
	refuses('fit: loss: wanted a tensor of one element, got 3', model.fit, model, {{x, y}}, {loss = function() return 3 end, log = false})
end)

it('words and flags', function()
	refuses("memory: wanted 'reset' or nothing, got 'rest'", tensor.memory, 'rest')
	for _, f in ipairs {tensor.memory, quant.fallback} do refuses('wanted a text, got table', f, {nosuch = 1}) end
	refuses('ledger: wanted true or false, got table', quant.ledger, {nosuch = 1})
	refuses("log: wanted 'reset' or nothing, got 'rest'", quant.log, 'rest')
end)

it('m:to takes floats and devices, and changes nothing otherwise', function()
	for _, name in ipairs {'int8', 'uint8', 'int32', 'bool', 'int4', 'binary'} do
		local m = nn.Linear(2, 2)
		refuses(("to: wanted a float dtype or a device, got '%s'; m:quantize gives a model with codes"):format(name), m.to, m, name)
		assert(m.weight:dtype() == 'float32' and m.bias:dtype() == 'float32')
	end
	refuses("wanted the name of a dtype or device, got 'nosuch'", nn.ReLU().to, nn.ReLU(), 'nosuch')
	for _, name in ipairs {'float16', 'bfloat16', 'float64', 'float32'} do assert(nn.Linear(2, 2):to(name).weight:dtype() == name) end
	assert(nn.Linear(2, 2):to('cpu').weight:dtype() == 'float32')
end)

it('a table of options serves more than one call', function()
	local y = tensor{1, 2, dtype = 'int64'}
	local options = {log = false}
	for _ = 1, 2 do
		local m = nn.Linear(2, 2)
		local was = m.weight:detach():clone()
		m:fit({{x, y}}, options)
		assert(m.weight:detach():error(was).max > 0)
		assert(next(options) == 'log' and next(options, 'log') == nil)
	end
end)

it('nn.Sequential of arguments', function()
	refuses('Sequential: wanted a list, as in nn.Sequential{module, module, …}, got ReLU', nn.Sequential, nn.ReLU(), nn.ReLU())
	refuses('Sequential: wanted no argument 2, got ReLU', nn.Sequential, {nn.ReLU()}, nn.ReLU())
end)

it('items behind a gap and fields in lists', function()
	local relu = nn.ReLU
	refuses('Sequential: item 2: wanted no gap in the list, got none', nn.Sequential, {relu(), nil, relu()})
	refuses('Sequential: item 2: wanted no gap in the list, got none', nn.Sequential, {relu(), [3] = relu()})
	refuses('Sequential: item 3: wanted no gap in the list, got none', nn.Sequential, {relu(), relu(), nil, relu(), nil})
	refuses('module: item 1: wanted no gap in the list, got none', nn.module, function() end, {[2] = relu()})
	refuses('report: item 2: wanted no gap in the list, got none', report, {{a = 1}, [3] = {a = 2}})
	local p = tensor{1, grad = true}
	refuses("sgd: wanted a list, got a field 'b' beside it", optim.sgd, {p, b = tensor{1, grad = true}})
	refuses('sgd: item 2: wanted no gap in the list, got none', optim.sgd, {p, nil, p})
	refuses("compare: specs: wanted a list, got a field 'a' beside it", quant.compare, x, {'int8', a = 'int4'})
	refuses("trace: wanted a list, got a field 'mask' beside it", graph.trace, model, {x, mask = x})
	refuses("view: wanted a list of integers, got a field 4 beside it", x.view, x, {2, 2, [4] = 1})
	refuses("index: wanted a list of two ends and a step, got a field 'step' beside it", function() return x[{1, {1, 2, step = 2}}] end)
	refuses("index: wanted a list of indices, got a field 4 beside it", function() return x[{1, 1, [4] = 1}] end)
	refuses("plot: wanted a list of numbers, options beside the data, got a field 'title' beside it", plot.line, {1, 2}, {title = 'a'}, {title = 'b'})
	print(#plot.line{{1, 2}, vlines = {a = 1}, hlines = {1, 2}}:text() > 0, #nn.Sequential{relu(), relu()}) --> true 2
end)
