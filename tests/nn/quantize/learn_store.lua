-- SPDX-License-Identifier: MIT
-- file= of m:quantize{method=}: a run that is killed between any two writes goes on with the same bits; files of other runs are refused.
local folder = os.tmpname()
os.execute(('rm %s && mkdir %s'):format(folder, folder))
local _ <close> = setmetatable({}, {__close = function() os.execute('rm -r ' .. folder) end})
local internal = debug.getregistry()['quoll.internal']
local disk = internal.import 'nn/quantize/learn_store'.disk

local MODEL = [[
tensor.seed(5)
local m = nn.Sequential {nn.Linear(12, 12), nn.RMSNorm(12), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 12, {bias = false}), nn.ReLU(), nn.Linear(12, 6)}
local x = tensor.randn(60, 4):matmul(tensor.randn(4, 12)) + 0.1 * tensor.randn(60, 12)
local data = {{x:narrow(1, 1, 30)}, {x:narrow(1, 31, 30)}}
local METHOD = {{'awq', steps = 4}, {'gptq', act = true}, 'biascorrect'}
]]
local m, x, data, METHOD = load(MODEL .. 'return m, x, data, METHOD')()
local function quantize(o)
	local all = {mode = 'weight_only', weight = 'int3:4', method = METHOD, data = data, log = false}
	for key, value in pairs(o or {}) do all[key] = value end
	return m:quantize(all)
end
local function same(a, b)
	local other, n = b:state(), 0
	for name, value in pairs(a:state()) do
		local u, v = value, other[name]
		if u:quantized() then
			assert(u:codes():eq(v:codes()):all():item() and u:qparams().scale:eq(v:qparams().scale):all():item(), name)
			u, v = u:dequantize(), v:dequantize()
		end
		assert(u:eq(v):all():item(), name)
		n = n + 1
	end
	for _ in pairs(other) do n = n - 1 end
	return n == 0
end
local function files()
	local pipe = io.popen('ls ' .. folder)
	local text = pipe:read 'a':gsub('%s+', ' ')
	pipe:close()
	return text
end
local whole, expected = quantize()

it('keeps all blocks, and gives them again', function()
	local q = quantize {file = folder .. '/a.q'}
	assert(same(whole, q))
	assert(files() == 'a.q a.q.1.safetensors a.q.2.safetensors a.q.3.safetensors a.q.4.safetensors ', files())
	local count, before = 0, disk.save
	disk.save = function(...)
		count = count + 1
		return before(...)
	end
	local again, r = quantize {file = folder .. '/a.q'}
	disk.save = before
	assert(same(whole, again) and count == 0)
	for i, row in ipairs(r) do
		for _, column in ipairs {'method', 'rtn', 'error', 'block', 'block_rtn', 'why', 'bits', 'bytes'} do assert(row[column] == expected[i][column], column) end
	end
end)
it('goes on after kill -9 before and after each write', function()
	local script = folder .. '/s.lua'
	local handle = io.open(script, 'w')
	handle:write(MODEL, ([[
local disk = debug.getregistry()['quoll.internal'].import 'nn/quantize/learn_store'.disk
local at, n = tonumber(arg[1]), 0
for name, f in pairs(disk) do
	disk[name] = function(...)
		n = n + 1
		if n == at then os.execute 'kill -9 $PPID' end
		f(...)
	end
end
local _, r = m:quantize {mode = 'weight_only', weight = 'int3:4', method = METHOD, data = data, log = false, file = %q}
print 'finished'
]]):format(folder .. '/k.q'))
	handle:close()
	local killed = 0
	for _, at in ipairs {2, 3, 4, 6, 7, 11} do
		os.execute(('rm -f %s/k.q*'):format(folder))
		local pipe = io.popen(('exec /proc/$PPID/exe %s %d 2>&1'):format(script, at))
		local text = pipe:read 'a'
		pipe:close()
		assert(not text:find 'finished', text)
		killed = killed + 1
		assert(same(whole, (quantize {file = folder .. '/k.q'})), at)
		assert(not files():find 'k.q.values', files())
	end
	print(killed)  --> 6
end)
it('goes on after an error, with the numbers of chance', function()
	local count, before = 0, disk.write
	disk.write = function(...)
		count = count + 1
		if count == 3 then error 'stop' end
		return before(...)
	end
	local good, why = pcall(quantize, {file = folder .. '/b.q'})
	disk.write = before
	assert(not good and why:find('quantize: file: ', 1, true), why)
	assert(same(whole, (quantize {file = folder .. '/b.q'})))
end)
it('goes on with methods that change the whole model, and those of gradients', function()
	local t = nn.Transformer {vocab = 20, d = 16, layers = 2, heads = 2, context = 12}
	local ids = {{tensor.randint {4, 12, low = 1, high = 20}}}
	local function run(method, file)
		tensor.seed(11)
		return (t:quantize {mode = 'weight_only', weight = 'int4:8', method = method, data = ids, log = false, file = file})
	end
	for i, method in ipairs {{'rotate', {'gptq', act = true}}, {'brecq', steps = 10}, {'awq', {'autoround', steps = 5}}} do
		local file, count, before = ('%s/t%d.q'):format(folder, i), 0, disk.write
		disk.write = function(...)
			count = count + 1
			if count == 3 then error 'stop' end
			return before(...)
		end
		assert(not pcall(run, method, file))
		disk.write = before
		assert(same(run(method), run(method, file)))
	end
end)
it('refuses what it does not belong to', function()
	local function refused(text, o)
		local good, message = pcall(quantize, o)
		assert(not good and message:find(text, 1, true) and not message:find '\n', message)
	end
	local file = folder .. '/a.q'
	refused('got those of other data', {file = file, data = {{x}}})
	refused('got those of other options', {file = file, method = 'gptq'})
	refused('got those of other options', {file = file, weight = 'int4:4'})
	refused('got those of other options', {file = file, sequential = false})
	m.linear1.weight:detach():narrow(1, 1, 1):mul_(2)
	refused('got those of other models', {file = file})
	m.linear1.weight:detach():narrow(1, 1, 1):div_(2)
	local handle = io.open(folder .. '/c.q', 'w')
	handle:write 'something else\n'
	handle:close()
	refused('wanted a file of m:quantize of this version', {file = folder .. '/c.q'})
	refused('quantize: file: ', {file = folder .. '/none/c.q'})
	local good, why = pcall(m.quantize, m, {mode = 'weight_only', file = file})
	assert(not good and why:find('file: wanted method= with it', 1, true), why)
	good, why = pcall(m.quantize, m, {mode = 'weight_only', method = 'mse', file = file})
	assert(not good and why:find('file: wanted data= with it', 1, true), why)
	os.remove(file .. '.2.safetensors')
	refused('a.q.2.safetensors', {file = file})
end)
it('keeps codes of convolutions', function()
	local c = nn.Sequential {nn.Conv2d(5, 6, 3, {pad = 1}), nn.ReLU(), nn.Conv2d(6, 4, 3)}
	local images = {{tensor.randn(3, 5, 8, 8)}}
	local function convolutions(file)
		return (c:quantize {mode = 'weight_only', weight = 'int3/1', method = 'gptq', data = images, log = false, file = file})
	end
	local a = convolutions(folder .. '/d.q')
	local b = convolutions(folder .. '/d.q')
	assert(same(a, convolutions()) and same(a, b) and a:nbytes() == b:nbytes())
end)
