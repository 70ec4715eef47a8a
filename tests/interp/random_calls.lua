-- SPDX-License-Identifier: MIT
-- Random wrong calls of everything that has documentation: each error is one line of valid UTF-8 without control characters, and none
-- of Lua's own errors from inside of Quoll ("attempt to …", "bad argument", a line of the prelude) gets out.
local internal = debug.getregistry()['quoll.internal']
local titles = internal.import 'interp/prelude/titles'

-- What writes files, starts programs, measures for long, prints, or changes the process.
local SKIP = {}
for title in ([[help source who collectgarbage quant.fallback tensor.threads hw.force hw.tune hw.doctor hw.hints hw.recommend tensor.save module:save report:save
figure:save graph:dot graph:export sweep.run sweep.merge graph.op tensor.nograd figure:show report:show module:source bench.ops bench.matmul bench.time
jupyter.display jupyter.update jupyter.clear graph:print module:fit module:evaluate optimizer:step]]):gmatch '%S+' do
	SKIP[title] = true
end
local list = {}
titles.each_member(function(title, f)
	if type(f) == 'function' and not SKIP[title] then list[#list + 1] = {title = title, f = f} end
end)
table.sort(list, function(a, b) return a.title < b.title end)

tensor.seed(1)
local state = 20261122
local function random(n)
	state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
	return (state >> 33) % n + 1
end

-- Images are zeros in files of the sizes that their readers want: to unpack the published ones takes most of a minute.
local folder, write = dofile 'tests/tools/scratch.lua'.folder()
local function zeros(name, head, bytes)
	write(name, head)
	assert(os.execute(('truncate -s %d %s/%s'):format(#head + bytes, folder, name)))
end
assert(os.execute(('mkdir %s/cifar10 %s/mnist'):format(folder, folder)))
for b = 1, 5 do zeros(('cifar10/data_batch_%d.bin'):format(b), '', 30730000) end
zeros('cifar10/test_batch.bin', '', 30730000)
for part, n in pairs {train = 60000, t10k = 10000} do
	zeros(('mnist/%s-images-idx3-ubyte'):format(part), string.pack('>I4I4I4I4', 0x803, n, 28, 28), n * 784)
	zeros(('mnist/%s-labels-idx1-ubyte'):format(part), string.pack('>I4I4', 0x801, n), n)
end
for name, file in pairs {ptb = 'ptb.train.txt.xz', text = 'tinyshakespeare.txt.xz'} do
	local path = data.find(name .. '/' .. file)
	if path then assert(os.execute(('ln -s "$(realpath %s)" %s/%s'):format(path:match '^(.*)/', folder, name))) end
end
local getenv = os.getenv
rawset(os, 'getenv', function(name) return name == 'QUOLL_DATA' and folder or getenv(name) end)
assert(#data.cifar10() == 45000 and #data.mnist() == 55000)

local x = tensor.randn(2, 3)
local model = nn.Sequential{nn.Linear(3, 3)}
local set = data.tensors(x, tensor{1, 2, dtype = 'int64'})
local objects = {x = x, module = model, report = report{{a = 1}}, graph = graph.trace(model, x), observer = quant.observer 'int8', figure = plot.line{{1, 2}},
	optimizer = optim.sgd(model), dataset = set}
local values = {x, tensor.ones(2, 2, 2), 'a\nb\27]0;evil\7', {1, 2}, {axis = 1}, -1, 1.5, 0, true, print, nn.ReLU(), 'int8', {}, {{1, 2}, {3}}, 0 / 0,
	x:quantize 'int8', set, '\u{e9}\xff' .. ('\u{fc}'):rep(60), {['a\nb'] = 1}, optim.sgd(model), 1 << 40, data.loader(set, {batch = 1})}

local function trouble(text)
	return text:find '%c' and 'a control character' or not utf8.len(text) and 'no UTF-8' or text:find '^quoll/' and 'a line of the prelude' or
		text:find 'attempt to' and "Lua's own error" or text:find 'bad argument' and "Lua's own error"
end

it('every wrong call is answered in one line', function()
	local seen, refused = {}, 0
	for _ = 1, 6000 do
		local item = list[random(#list)]
		local object, given, count = item.title:match '^(%l+):', {}, random(4) - 1
		if object and random(10) > 1 then
			count = count + 1
			given[1] = objects[object]
		end
		for k = #given + 1, count do given[k] = values[random(#values)] end
		local ok, message = pcall(item.f, table.unpack(given, 1, count))
		local why = not ok and trouble(tostring(message))
		refused = refused + (ok and 0 or 1)
		if why then seen[#seen + 1] = ('%s: %s: %q'):format(item.title, why, tostring(message)) end
	end
	assert(refused > 4000 and #seen == 0, ('%d refused, %d of them badly\n%s'):format(refused, #seen, table.concat(seen, '\n', 1, math.min(#seen, 10))))
end)

local function refused(text, ...)
	local ok, message = pcall(...)
	assert(not ok and message:find(text, 1, true) and not message:find '%c', tostring(message))
end
it('names what it got', function()
	refused('sum: axis: wanted an integer, got float32(3, 3)', x.sum, x, tensor.randn(3, 3))
	refused('got string a\\x1b]0;evil\\x07', tensor.zeros, 'a\27]0;evil\7')
	refused('fit: data: wanted a loader, as in data.loader(ds, {batch=32}), got a data set', model.fit, nn.Linear(3, 3), set)
	refused("sum: unknown option 'aaa'", x.sum, x, {zzz = 1, aaa = 2, mmm = 3})
	refused("time: unknown option 'aaa'", bench.time, print, {zzz = 1, aaa = 2, mmm = 3})
	refused('ReLU: wanted a tensor, got 5', nn.ReLU(), 5)
	refused('seed: wanted an integer, got string x', tensor.seed, 'x')
	refused('size: wanted an integer, got table', x.size, x, {})
end)
