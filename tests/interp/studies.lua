-- SPDX-License-Identifier: MIT
-- The studies of scripts/ with --quick: they run, their results make sense, and a second run has nothing to do.
local folder = os.tmpname()
os.execute(('rm %s && mkdir %s'):format(folder, folder))
local _ <close> = setmetatable({}, {__close = function() os.execute('rm -r ' .. folder) end})

-- Runs a study in the folder, with its results there.
local function run(study, arguments)
	local pipe = io.popen(([[here=$PWD; exe=/proc/$PPID/exe; cd %s &&
		$exe sweep "$here/scripts/%s.lua" --quick --db %s.db %s 2>&1]])
		:format(folder, study, study, arguments or ''))
	local text = pipe:read 'a'
	local _, _, code = pipe:close()
	assert(code == 0, text)
	return text
end

local function results(study, name) return sweep.load(('%s/%s.db'):format(folder, study), {study = name}) end

local function exists(file)
	local handle = io.open(folder .. '/out/' .. file)
	if handle then handle:close() end
	return handle ~= nil
end

local function check_again(study, arguments)
	local text = run(study, arguments)
	assert(not text:find '%] done', 'nothing is run again: ' .. text)
end

it('ptq: schemes, bits, granularity, modes', function()
	run('ptq', 'scheme=symmetric,float')
	local r = results 'ptq'
	assert(#r == 2 * (1 + 2 * 5), #r .. ' rows')
	local full = r:where {model = 'mlp', mode = 'float32'}
	local eight = r:where {model = 'mlp', mode = 'static', bits = 8}
	local two = r:where {model = 'mlp', mode = 'weight_only', bits = 2, block = false}
	assert(full.metric == 'accuracy' and full.value > 40, full.value)
	assert(math.abs(eight.value - full.value) < 5 and eight.weight_bytes < 0.3 * full.weight_bytes)
	assert(two.weight_bytes < 0.6 * eight.weight_bytes)
	assert(exists 'ptq.csv')
	check_again('ptq', 'scheme=symmetric,float')
end)

it('observers: every observer on every model', function()
	run('observers', 'model=mlp')
	local r = results 'observers'
	assert(#r == 6 * 2)
	for _, row in ipairs(r:where {bits = 8}) do assert(math.abs(row.change) < 5, row.observer) end
	assert(exists 'observers.csv')
	check_again('observers', 'model=mlp')
end)

it('latency: the kernels of every level', function()
	run 'latency'
	local r, ops = results('latency', 'latency_quick'), results('latency', 'latency_ops_quick')
	local levels = {}
	for _, row in ipairs(r) do
		levels[row.level] = true
		assert(row.ms > 0 and row.gops > 0 and row.kernel:find '^gemm_', row.kernel)
		if row.level == 'ref' then assert(row.kernel:find '_ref$', row.kernel) end
	end
	local n = 0
	for _ in pairs(levels) do n = n + 1 end
	assert(#r == 4 * n and #ops == 4 * n)
	for _, row in ipairs(ops:where {op = 'quantize', level = 'ref'}) do assert(row.kernel == 'quantize_ref') end
	check_again 'latency'
end)
