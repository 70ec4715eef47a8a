-- SPDX-License-Identifier: MIT
-- Measurements of layers on this machine, kept in a file so that they are made once: how long a Linear or Conv2d of a shape
-- takes float and quantized, and how far its output is off.
--
-- The file is measured.tsv in the user's cache (XDG_CACHE_HOME, else ~/.cache)/quoll: lines
-- "key<TAB>ms<TAB>sqnr<TAB>bytes<TAB>kernel<TAB>load<TAB>spread" (older files lack the last two). The key names processor, device, level of
-- kernels, threads, version, workload and variant; a line that is not whole is ignored. Times that scatter are taken again at once,
-- the least scattered ones count. What scattered all the same is measured again by the next process, ROUNDS times in all; what was
-- measured on a busy machine, when it is quieter.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, describe = base.fail, base.describe
local measured = {}

-- How a layer can run, the plainest first.
measured.variants = {
	{spec = 'float32', mode = 'float', text = 'float32'},
	{spec = 'int8/1', mode = 'dynamic', text = 'int8 weights, activations to uint8 at each call'},
	{spec = 'int8/1', mode = 'static', text = 'int8 weights, activations that arrive as uint8 codes'},
	{spec = 'int8', mode = 'dynamic', text = 'int8 weights of one scale, activations to uint8 at each call'},
	{spec = 'int8', mode = 'static', text = 'int8 weights of one scale, activations that arrive as uint8 codes'},
	{spec = 'int4/1', mode = 'static', text = 'int4 weights, activations that arrive as uint8 codes'},
	{spec = 'int8/1', mode = 'weight_only', text = 'int8 weights, float arithmetic'},
	{spec = 'int4:32', mode = 'weight_only', text = 'int4 weights in blocks of 32, float arithmetic'},
}

---------------------------------------------------------------- workloads

local FIELDS = {
	matmul = {'m', 'n', 'k'},
	conv2d = {'batch', 'channels', 'height', 'width', 'outputs', 'kernel'},
}

-- The numbers of a workload in order; optional stride and groups of conv2d.
function measured.workload(what, w)
	if type(w) ~= 'table' or not FIELDS[w.op] then
		local op = type(w) == 'table' and w.op or nil
		fail("%s: op: wanted 'matmul' or 'conv2d', got %s%s", what, describe(op), base.near(op, {'matmul', 'conv2d'}))
	end
	local parts = {w.op}
	for _, field in ipairs(FIELDS[w.op]) do
		local value = w[field]
		if type(value) ~= 'number' or value % 1 ~= 0 or value < 1 or value > 1 << 20 then
			fail('%s: %s: wanted an integer from 1 to 1048576 for %s, got %s', what, field, w.op, describe(value))
		end
		parts[#parts + 1] = ('%s=%d'):format(field, value)
	end
	for _, field in ipairs {'stride', 'groups'} do
		if w[field] and w[field] ~= 1 then parts[#parts + 1] = ('%s=%d'):format(field, w[field]) end
	end
	return table.concat(parts, ' ')
end

-- Where it is measured: o.device, or where new tensors are.
function measured.device(o) return o.device or tensor.empty(0):device() end

-- A float layer and an input for it, made on the CPU: the same numbers everywhere.
local function layer_of(w)
	local cpu, layer, x = {device = 'cpu'}
	if w.op == 'matmul' then
		layer, x = nn.Linear(w.k, w.n), tensor.randn({w.m, w.k}, cpu)
	else
		layer = nn.Conv2d(w.channels, w.outputs, w.kernel, {pad = w.kernel // 2, stride = w.stride, groups = w.groups})
		x = tensor.randn({w.batch, w.channels, w.height, w.width}, cpu)
	end
	local device = measured.device(w)
	return layer:to(device), x:to(device)
end

---------------------------------------------------------------- the file

local known, path

local BUSY = 0.5   -- load of others for each core from which on a time is not to be trusted
local WIDE = 0.15  -- spread, of the median
local ROUNDS = 3   -- at most, while times scatter

-- On a device its name and the kernels that are allowed.
local function machine_key(device)
	local f = hw.features()
	local name, level = f.name, f.level
	if device ~= 'cpu' then
		local info = gpu.info().devices[1]
		name, level = ('%s %s on %s'):format(device, info and device:find '^cuda:?%d*$' and info.name or '', name), hw.force()
	end
	return ('%s|%s|%d|%s'):format(name, level, tensor.threads(), internal.version or '')
end

local function cache_path()
	local folder = os.getenv 'XDG_CACHE_HOME'
	if not folder or folder == '' then folder = (os.getenv 'HOME' or '') .. '/.cache' end
	if not folder:find '^/' or folder == '/.cache' then return nil end
	return folder .. '/quoll', folder .. '/quoll/measured.tsv'
end

local function load_known()
	if known then return end
	known = {}
	local folder
	folder, path = cache_path()
	local file = folder and io.open(path, 'rb')
	if not file then return end
	for line in file:lines 'L' do
		local key, ms, sqnr, bytes, kernel, load, spread = line:match '^([^\t]+)\t([^\t]+)\t([^\t]+)\t([^\t]+)\t([^\t\n]+)\t?([^\t\n]*)\t?([^\t\n]*)\n$'
		if key and tonumber(ms) then
			known[key] = {ms = tonumber(ms), sqnr = tonumber(sqnr) or math.huge, bytes = tonumber(bytes) or 0, kernel = kernel,
				load = tonumber(load), spread = tonumber(spread), lines = (known[key] and known[key].lines or 0) + 1}
		end
	end
	file:close()
end

-- Without a place for it, the entry lives as long as the program.
local function keep(key, e)
	known[key] = e
	local folder = cache_path()
	if not folder then return end
	os.execute(("mkdir -p '%s' 2>/dev/null"):format(folder:gsub("'", "'\\''")))
	local file = io.open(path, 'ab')
	if not file then return end
	file:write(('%s\t%.6g\t%.6g\t%d\t%s\t%.3g\t%.3g\n'):format(key, e.ms, e.sqnr, e.bytes, e.kernel, e.load or 0, e.spread or 0))
	file:close()
end

---------------------------------------------------------------- measuring

-- Load of the machine for each core, this process not counted.
local function load_now() return math.max(0, (internal.load() or 0) - 1) / math.max(1, hw.features().cores) end

-- Whether times scatter: their median absolute deviation, of the median.
function measured.scattered(e) return (e.spread or 0) > WIDE * e.ms end

-- Whether a time was measured on a busy machine, and it is less busy now, or scattered when another process measured it.
local function doubtful(e)
	local load = e.load or 0
	return load > BUSY and load_now() < 0.7 * load or measured.scattered(e) and e.lines and e.lines < ROUNDS
end

-- The least scattered of at most ROUNDS measurements, one if it does not scatter; and the load before it.
function measured.steady(measure)
	local best, load
	for _ = 1, ROUNDS do
		local now = load_now()
		local r = measure()
		if not best or r.spread / r.ms < best.spread / best.ms then best, load = r, now end
		if not measured.scattered(best) then break end
	end
	return best, load
end

local function variant_of(layer, x, v)
	if v.mode == 'float' then return layer, x end
	local list = nn.Sequential {layer}
	if v.mode == 'static' then
		list:calibrate({{x, x}}, {log = false})
		local q = list:quantize {mode = 'static', weight = v.spec}
		return q, x:quantize(rawget(q[1], 'quantized').input)
	end
	return (list:quantize {mode = v.mode, weight = v.spec}), x
end

local function weight_bytes(m)
	local layer = rawget(m, 'weight') and m or m[1]
	return layer.weight:nbytes()
end

-- The user's random numbers go on after it as if nothing had been drawn.
function measured.own_random()
	local seed, position = internal.rng(20240229, 0)
	return setmetatable({}, {__close = function() internal.rng(seed, position) end})
end

-- Milliseconds of a function of that name, measured now or before.
function measured.time(name, f)
	load_known()
	local key = ('%s|%s'):format(machine_key(measured.device {}), name)
	if not known[key] or doubtful(known[key]) then
		local r, load = measured.steady(function() return bench.time(f, {runs = 7, warmup = 2, timeout = 1}) end)
		keep(key, {ms = r.ms, sqnr = math.huge, bytes = 0, kernel = tostring(r.kernel or 'none'):gsub('[\t\n]', ' '), load = load, spread = r.spread})
	end
	return known[key].ms
end

local function key_of(what, w, v)
	load_known()
	return ('%s|%s|%s %s'):format(machine_key(measured.device(w)), measured.workload(what, w), v.mode, v.spec)
end

-- Whether it was measured before.
function measured.has(what, w, v)
	local e = known[key_of(what, w, v)]
	return e ~= nil and not doubtful(e)
end

-- A function that runs the workload as the variant says, or nil where it cannot run.
function measured.call(w, v)
	local _ <close> = measured.own_random()
	local layer, x = layer_of(w)
	local good, run, input = pcall(variant_of, layer, x, v)
	return good and function() return tensor.nograd(function() return run(input) end) end or nil
end

-- What a workload costs as the variant says: {ms=, sqnr=, bytes=, kernel=}, measured now (runs times) or before.
function measured.get(what, w, v, runs)
	local key = key_of(what, w, v)
	if known[key] and not doubtful(known[key]) then return known[key], false end
	local _ <close> = measured.own_random()
	local _ <close> = internal.nograd()
	local layer, x = layer_of(w)
	local good, run, input = pcall(variant_of, layer, x, v)
	if not good then return nil end -- a block that does not fit the shape, for instance
	local y = layer(x)
	local r, load = measured.steady(function()
		return bench.time(function() return run(input) end, {runs = runs or 7, warmup = 2, timeout = 1})
	end)
	local e = {ms = r.ms, sqnr = v.mode == 'float' and math.huge or y:error(run(input)).sqnr, bytes = weight_bytes(run),
		kernel = ((tostring(r.path):find 'host' and 'host ' or '') .. tostring(r.kernel or 'none')):gsub('[\t\n]', ' '), load = load, spread = r.spread}
	keep(key, e)
	return e, true
end

return measured
