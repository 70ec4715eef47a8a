-- SPDX-License-Identifier: MIT
-- m:load of states in the layout of torchvision: names with digits, num_batches_tracked, tables, names that differ, tensors that are
-- several here. What the networks must give is computed by plain tensor operations from the same state.
tensor.seed(31)

local function conv(inputs, outputs, kernel, stride)
	return nn.Conv2d(inputs, outputs, kernel, {stride = stride, pad = kernel // 2, bias = false})
end

-- torchvision's BasicBlock and the first two layers of its ResNet.
local function block(inputs, outputs, stride)
	local parts = {conv1 = conv(inputs, outputs, 3, stride), bn1 = nn.BatchNorm2d(outputs), conv2 = conv(outputs, outputs, 3, 1), bn2 = nn.BatchNorm2d(outputs)}
	if stride > 1 then parts.downsample = nn.Sequential{{'0', conv(inputs, outputs, 1, stride)}, {'1', nn.BatchNorm2d(outputs)}} end
	return nn.module(function(self, x)
		local y = self.bn2(self.conv2(self.bn1(self.conv1(x)):relu()))
		return (y + (self.downsample and self.downsample(x) or x)):relu()
	end, parts)
end

local function network()
	return nn.module(function(self, x)
		x = self.bn1(self.conv1(x)):relu():maxpool2d(3, {stride = 2, pad = 1})
		return self.fc(self.layer2(self.layer1(x)):mean{axis = {3, 4}})
	end, {conv1 = conv(3, 4, 7, 2), bn1 = nn.BatchNorm2d(4), layer1 = nn.Sequential{{'0', block(4, 4, 1)}, {'1', block(4, 4, 1)}},
		layer2 = nn.Sequential{{'0', block(4, 8, 2)}}, fc = nn.Linear(8, 5)}):eval()
end

local state = {}
local function add_conv(name, outputs, inputs, kernel) state[name .. '.weight'] = tensor.randn(outputs, inputs, kernel, kernel) * 0.3 end
local function add_norm(name, n)
	state[name .. '.weight'], state[name .. '.bias'] = tensor.rand(n) + 0.5, tensor.randn(n) * 0.1
	state[name .. '.running_mean'], state[name .. '.running_var'] = tensor.randn(n) * 0.1, tensor.rand(n) + 0.5
	state[name .. '.num_batches_tracked'] = tensor.full{value = 100, dtype = 'int64'}
end
local function add_block(name, inputs, outputs, stride)
	add_conv(name .. '.conv1', outputs, inputs, 3)
	add_norm(name .. '.bn1', outputs)
	add_conv(name .. '.conv2', outputs, outputs, 3)
	add_norm(name .. '.bn2', outputs)
	if stride > 1 then
		add_conv(name .. '.downsample.0', outputs, inputs, 1)
		add_norm(name .. '.downsample.1', outputs)
	end
end
add_conv('conv1', 4, 3, 7)
add_norm('bn1', 4)
add_block('layer1.0', 4, 4, 1)
add_block('layer1.1', 4, 4, 1)
add_block('layer2.0', 4, 8, 2)
state['fc.weight'], state['fc.bias'] = tensor.randn(5, 8), tensor.randn(5)

-- The same network by operations.
local function norm(x, name)
	local function at(field) return state[name .. field]:view(1, -1, 1, 1) end
	return (x - at '.running_mean') / (at '.running_var' + 1e-5):sqrt() * at '.weight' + at '.bias'
end
local function convolve(x, name, kernel, stride) return x:conv2d(state[name .. '.weight'], {stride = stride, pad = kernel // 2}) end
local function by_hand(x, name, stride)
	local y = norm(convolve(norm(convolve(x, name .. '.conv1', 3, stride), name .. '.bn1'):relu(), name .. '.conv2', 3, 1), name .. '.bn2')
	local around = stride > 1 and norm(convolve(x, name .. '.downsample.0', 1, stride), name .. '.downsample.1') or x
	return (y + around):relu()
end
local function logits(x)
	x = norm(convolve(x, 'conv1', 7, 2), 'bn1'):relu():maxpool2d(3, {stride = 2, pad = 1})
	x = by_hand(by_hand(by_hand(x, 'layer1.0', 1), 'layer1.1', 1), 'layer2.0', 2)
	return x:mean{axis = {3, 4}}:matmul(state['fc.weight']:t()) + state['fc.bias']
end

local x = tensor.randn(3, 3, 32, 32)
local want = logits(x)

local function close(a, b) return a:detach():error(b).max <= 1e-4 * b:abs():max():item() end

local function refused(text, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(text, 1, true) and not message:find '\n', tostring(message))
end

describe('a state of torchvision', function()
	it('loads from a table and from files', function()
		assert(close(network():load(state)(x), want))
		local name = os.tmpname()
		for _, format in ipairs {'.safetensors', '.npz'} do
			tensor.save(name .. format, state)
			assert(close(network():load(name .. format)(x), want))
			os.remove(name .. format)
		end
		os.remove(name)
	end)
	it('leaves the tensors of the table alone', function()
		local m = network():load(state)
		tensor.nograd(function() m.fc.weight:mul_(0) end)
		assert(state['fc.weight']:abs():max():item() > 0)
		assert(close(network():load(m:load(state):state())(x), want))
	end)
	it('has names with digits in rules, graphs and exported C', function()
		local m = network():load(state)
		local names = {}
		for name in pairs(m:named()) do names[name] = true end
		assert(names['layer1.0.conv1'] and names['layer2.0.downsample.0'])
		local _, rows = m:quantize{mode = 'weight_only', weight = 'int8/1', rules = {{'layer1\\.0\\.conv1$', 'int4/1'}, {'layer2.0.downsample.0', false}}}
		local function row(name) return rows:where{name = name}[1] end
		assert(row('layer1.0.conv1').weight:find 'int4' and row('layer1.1.conv1').weight:find 'int8' and row('layer2.0.downsample.0').weight == 'float', tostring(rows))
		local g = graph.trace(m, x)
		assert(close(g:run(x), want) and g:node 'layer1.0.conv1')
		local folder = os.tmpname()
		os.remove(folder)
		g:export{dir = folder, name = 'net', vectors = 1}
		local f = assert(io.open(folder .. '/net.c'))
		assert(f:read 'a':find 'layer1_0_conv1')
		f:close()
		os.execute('rm -r ' .. folder)
	end)
	it('is refused with what is missing and extra, and reported with partial=true', function()
		local less = {}
		for name, value in pairs(state) do less[name] = value end
		less['fc.bias'], less['head.bias'] = nil, tensor.ones(5)
		local m = network()
		local before = m.fc.weight:detach():clone()
		refused("load: the table: wanted the tensors of the model, got 1 missing: fc.bias; 1 extra: head.bias", m.load, m, less)
		assert(m.fc.weight:error(before).max == 0)
		local same, r = m:load(less, {partial = true, log = false})
		local function count(what) return #r:where{state = what} end
		assert(same == m and count 'missing' == 1 and count 'extra' == 1 and count 'ignored' == 8 and count 'loaded' == #m:state() - 1)
		assert(tostring(r):find('1 missing: fc.bias; 1 extra: head.bias; 8 ignored', 1, true), tostring(r))
		assert(m.fc.weight:error(state['fc.weight']).max == 0)
	end)
end)

describe('rename', function()
	local e, heads = 8, 2
	local torch = {in_proj_weight = tensor.randn(3 * e, e), in_proj_bias = tensor.randn(3 * e), ['out_proj.weight'] = tensor.randn(e, e), ['out_proj.bias'] = tensor.randn(e)}
	local input = tensor.randn(2, 5, e)
	-- formulas of nn.MultiheadAttention
	local function by_formula()
		local p = (input:matmul(torch.in_proj_weight:t()) + torch.in_proj_bias):split(e, {axis = 3})
		local function split(t) return t:contiguous():view(2, 5, heads, e // heads):transpose(2, 3) end
		local q, k, v = split(p[1]), split(p[2]), split(p[3])
		local weights = (q:matmul(k:transpose(3, 4)) / math.sqrt(e / heads)):softmax(-1)
		return weights:matmul(v):transpose(2, 3):reshape(2, 5, e):matmul(torch['out_proj.weight']:t()) + torch['out_proj.bias']
	end
	local function layer() return nn.Attention(e, heads) end
	local out = {['out_proj.weight'] = 'out.weight', ['out_proj.bias'] = 'out.bias'}
	local function with(more)
		local all = {}
		for name, item in pairs(out) do all[name] = item end
		for name, item in pairs(more) do all[name] = item end
		return all
	end
	it('divides a tensor among names', function()
		local m = layer():load(torch, {rename = with{in_proj_weight = {'query.weight', 'key.weight', 'value.weight'}, in_proj_bias = {'query.bias', 'key.bias', 'value.bias'}}})
		assert(close(m(input), by_formula()))
	end)
	it('asks functions of a table', function()
		local function parts(field)
			return function(t) return {['query.' .. field] = t:narrow(1, 1, e), ['key.' .. field] = t:narrow(1, e + 1, e), ['value.' .. field] = t:narrow(1, 2 * e + 1, e)} end
		end
		assert(close(layer():load(torch, {rename = with{in_proj_weight = parts 'weight', in_proj_bias = parts 'bias'}})(input), by_formula()))
	end)
	it('is a function from names of the model to names or tensors of the file', function()
		local at = {query = 1, key = 2, value = 3}
		local m = layer():load(torch, {rename = function(name, file)
			local part, field = name:match '^(%l+)%.(%l+)$'
			if part == 'out' then return 'out_proj.' .. field end
			return file['in_proj_' .. field]:narrow(1, (at[part] - 1) * e + 1, e)
		end})
		assert(close(m(input), by_formula()))
	end)
	it('leaves out what is false', function()
		local m = nn.Linear(2, 2)
		m:load({weight = tensor.ones(2, 2), bias = tensor.ones(2), more = tensor{1}}, {rename = {more = false}})
		assert(m.weight:min():item() == 1)
	end)
	it('refuses what it cannot do', function()
		local m, given = nn.Linear(2, 2), {w = tensor.ones(2, 2), bias = tensor.ones(2)}
		refused("load: rename: no tensor 'v'", m.load, m, given, {rename = {v = 'weight'}})
		refused("load: rename: wanted each name once, got 'bias' twice", m.load, m, given, {rename = {w = 'bias'}})
		refused('load: rename: w: wanted a first axis that 3 names divide', m.load, m, given, {rename = {w = {'a', 'b', 'c'}}})
		refused('load: rename: w: wanted a name, a list of names', m.load, m, given, {rename = {w = 5}})
		refused('load: rename: w: wanted a name, a list of names', m.load, m, given, {rename = {w = function() return 3 end}})
		refused('load: rename: wanted a table or a function, got 5', m.load, m, given, {rename = 5})
		refused('load: rename: weight: wanted a function that gives a name or a tensor, got 3', m.load, m, given, {rename = function() return 3 end})
		refused('load: wanted a table name -> tensor, got 5 at w', m.load, m, {w = 5})
		refused('load: wanted a table name -> tensor', m.load, m, {tensor.ones(2)})
		refused('load: wanted a file name or a table of tensors, got nil', m.load, m)
		refused('load: there is no nothing', m.load, m, nil, 'there is no nothing')
		refused('got a model', m.load, m, nn.Linear(2, 2))
	end)
end)

it('names begin with letters, digits or _', function()
	local m = nn.Sequential{nn.Linear(2, 2, {name = '0'}), nn.ReLU(), nn.Linear(2, 2, {name = '2.proj'})}
	assert(m:state()['0.weight'] and m:state()['2.proj.bias'] and m['0'] == m[1])
	refused("name: wanted letters, digits, '_' and '.', got '.0'", nn.Linear, 2, 2, {name = '.0'})
end)
