-- SPDX-License-Identifier: MIT
-- labels: full
-- quant.search on ResNet20 with training images only, killed in the middle and started again: 4 and 8 bits mixed in at most 0.65 of
-- the bytes of 8 bits, measured on test images that the search has not seen.
local found = data.find 'weights/resnet20-cifar10.safetensors' and data.find 'cifar10/test_batch_first1000.bin.xz' and
	data.find 'cifar10/data_batch_5.bin.xz'
if not found then
	skip('real input: no data folder (QUOLL_DATA, ./data)')
	return
end
local store, script = os.tmpname(), os.tmpname()
os.remove(store)

-- Prints how often the data was gone through, the seconds, and the rules.
local SEARCH = ([[
local m, norm = dofile 'tutorials/models/resnet20.lua'
m = m:load(data.find 'weights/resnet20-cifar10.safetensors'):eval():fuse()
local valid = data.loader(data.cifar10{split='validation', limit=1000}, {batch=250, normalize=norm})
local passes = 0
local function counted()
	passes = passes + 1
	return valid()
end
local full = m:quantize{mode='weight_only', weight='int8/1'}
local bytes = 0
for _, layer in pairs(full:named()) do
	local good, w = pcall(function() return layer.weight end)
	if good and w and w:quantized() then bytes = bytes + w:nbytes() end
end
local start = hw.clock()
local rules, r = quant.search(m, {data=counted, metric='loss', choices={'int4/1', 'int8/1'}, bytes=0.65 * bytes, file=%q, log=false})
print('passes', passes)
print('seconds', hw.clock() - start)
print('share', r:where{chosen=true}[1].bytes / bytes)
for _, rule in ipairs(rules) do print('rule', rule[1], rule[2]) end
]]):format(store)
local file = io.open(script, 'w')
file:write(SEARCH):close()

local function lines_of(path)
	local list = {}
	for line in io.lines(path) do list[#list + 1] = line end
	return list
end

local first, answer, seconds = {}, '', 0
it('is killed', function()
	local start = hw.clock()
	os.execute(([["/proc/$PPID/exe" %s >/dev/null & pid=$!
		n=0; while [ "$n" -lt 16 ]; do sleep 0.2; n=$(cat %s 2>/dev/null | wc -l); kill -0 $pid || exit 1; done
		kill -9 $pid; wait $pid 2>/dev/null; true]]):format(script, store))
	first, seconds = lines_of(store), hw.clock() - start
	assert(#first >= 16 and #first < 40, #first)
end)
it('goes on without repeating what was finished, in ten minutes', function()
	local pipe = io.popen(([["/proc/$PPID/exe" %s 2>&1]]):format(script))
	answer = pipe:read 'a'
	assert(pipe:close(), answer)
	local all, seen = lines_of(store), {}
	for i, line in ipairs(first) do assert(all[i] == line, line) end -- all that was kept, in its place
	for i = 2, #all do
		local key = all[i]:match '^[^\t]+'
		assert(not seen[key], 'measured twice: ' .. key)
		seen[key] = true
	end
	-- one pass for each new line, one that tells data apart, and one batch to take the layers' times with
	assert(tonumber(answer:match 'passes%s+(%d+)') == #all - #first + 2, answer)
	seconds = seconds + tonumber(answer:match 'seconds%s+([%d.]+)')
	assert(seconds < 600, seconds)
end)
it('mixes 4 and 8 bits that lose at most a point, and a point less than 4 bits everywhere', function()
	local m, norm = dofile 'tutorials/models/resnet20.lua'
	m = m:load(data.find 'weights/resnet20-cifar10.safetensors'):eval():fuse()
	local test = data.loader(data.cifar10 {split='test'}, {batch=250, normalize=norm})
	local function accuracy(model) return model:evaluate(test, {metric='accuracy', log=false}).value end
	local rules = {}
	for pattern, spec in answer:gmatch 'rule%s+(%S+)%s+(%S+)' do rules[#rules + 1] = {pattern, spec} end
	assert(#rules == 20 and tonumber(answer:match 'share%s+([%d.]+)') <= 0.65, answer)
	local float, four = accuracy(m), accuracy(m:quantize {mode='weight_only', weight='int4/1'})
	local mixed = accuracy(m:quantize {mode='weight_only', rules=rules})
	io.stderr:write(('%.0f s: float32 %.1f %%, mixed %.1f %%, int4/1 %.1f %%\n'):format(seconds, float, mixed, four))
	assert(mixed >= float - 1.001 and mixed >= four + 0.999, ('%.1f %.1f %.1f'):format(float, mixed, four))
end)
os.remove(store)
os.remove(script)
