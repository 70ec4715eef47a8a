-- SPDX-License-Identifier: MIT
-- Section imports: models of other programs that learn from inputs without labels. KWS: 12 words of 900 recordings, calibrated on the 100 before
-- them. magika: kinds of 129 files, calibrated on 256 files of the packages that are installed, which are listed with their hashes.
local _, tools = ...

local CHAINS = {'rtn', 'mse', 'gptq', {'gptq', act = true}, {'mse', {'gptq', act = true}}, {'gptq', act = true, range = 'mse'}, {'mse', {'gptq', act = true}, 'biascorrect'}, 'adaround', 'autoround'}

---------------------------------------------------------------- KWS

local function kws()
	local m = nn.Graph(graph.load(tools.need 'models/kws/kws_float.tflite'))
	local codes = tensor.load(tools.need 'models/kws/inputs_int8.npy')
	local x = ((codes:to 'float32' - 83) * 0.5847029089927673):unsqueeze(4)
	local y = tensor.load(tools.need 'models/kws/labels.npy'):to 'int64'
	local litert = tensor.load(tools.need 'models/kws/litert_reference_int8.npy')
	local function right(z) return (z:argmax(2) - 1):eq(y:narrow(1, 101, 900)):sum():item() end
	local theirs, test = right(litert:narrow(1, 101, 900)), x:narrow(1, 101, 900)
	local calibration = {}
	for i = 1, 100, 25 do calibration[#calibration + 1] = {x:narrow(1, i, 25)} end
	local t = tools.table {unit = 'of 900', higher = true, digits = 0}
	t:add {what = 'KWS, LiteRT int8', once = true, of = function() return theirs end}
	t:add {what = 'KWS, float32', once = true, of = function() return right(m(test)) end}
	t:add {what = 'KWS, static int8', goal = theirs - 3, once = true, of = function()
		local f = m:clone()
		f:calibrate(calibration, {input = 'uint8', log = false})
		return right(f:quantize {mode = 'static', weight = 'int8/1'}(test))
	end}
	for _, method in ipairs(CHAINS) do
		t:add {what = 'KWS int4/1', method = method, once = true, of = function()
			return right(m:quantize {mode = 'weight_only', weight = 'int4/1', method = method, data = calibration, log = false}(test))
		end}
	end
	t:best('KWS int4/1', theirs - 20)
	t:print()
end

---------------------------------------------------------------- magika

local function lines(command)
	local pipe, list = io.popen(command), {}
	for line in pipe:lines() do list[#list + 1] = line end
	pipe:close()
	return list
end

-- What magika reads of a file: its first and last 1024 bytes without blanks around them, 256 where there is none.
local function input_of(path)
	local file = io.open(path, 'rb')
	local text = file and file:read 'a'
	if file then file:close() end
	if not text or #text < 64 then return nil end
	local first, last = text:sub(1, 4096):match '^%s*(.*)$':sub(1, 1024), text:sub(-4096):match '^(.-)%s*$':sub(-1024)
	local list = {first:byte(1, -1)}
	for i = #list + 1, 2048 - #last do list[i] = 256 end
	table.move({last:byte(1, -1)}, 1, #last, 2048 - #last + 1, list)
	return list
end

-- n files by a seed: {path, input}.
local function drawn(seed, n)
	local all, list, seen = lines 'cat /var/lib/dpkg/info/*.list 2>/dev/null | LC_ALL=C sort -u', {}, {}
	if #all == 0 then return nil end
	tensor.seed(seed)
	local order = tensor.randint {20 * n, low = 1, high = #all}:totable()
	for _, i in ipairs(order) do
		local input = not seen[i] and input_of(all[i])
		seen[i] = true
		if input then list[#list + 1] = {all[i], input} end
		if #list == n then return list end
	end
end

local function print_files(list)
	local names = {}
	for i, one in ipairs(list) do names[i] = "'" .. one[1]:gsub("'", "'\\''") .. "'" end
	print(('%d files:'):format(#list))
	for _, line in ipairs(lines('sha256sum ' .. table.concat(names, ' '))) do print(line) end
end

local function magika()
	local m = nn.Graph(graph.load(tools.need 'models/magika/standard_v3_3.onnx'))
	local given = tensor.load(tools.need 'models/magika/magika_eval.npz')
	local x, y = given.bytes:to 'int32', given.label:to 'int64'
	local function right(q) return (q(x):argmax(2) - 1):eq(y):sum():item() end
	local files, calibration = drawn(2026, 256), {}
	if not files then error('skipped: no installed packages (/var/lib/dpkg)', 0) end
	for i = 1, #files, 16 do
		local batch = {}
		for k = i, math.min(i + 15, #files) do batch[#batch + 1] = files[k][2] end
		calibration[#calibration + 1] = {tensor(batch):to 'int32'}
	end
	local t = tools.table {unit = 'of 129', higher = true, digits = 0}
	t:add {what = 'magika, float32', once = true, of = function() return right(m) end}
	t:add {what = 'magika, dynamic int8', goal = 127, once = true, of = function() return right(m:quantize {mode = 'dynamic', weight = 'int8/1'}) end}
	for _, method in ipairs(CHAINS) do
		t:add {what = 'magika int4:32', method = method, once = true, of = function()
			return right(m:quantize {mode = 'weight_only', weight = 'int4:32', method = method, data = calibration, log = false})
		end}
	end
	t:best('magika int4:32', 120)
	t:print()
	print_files(files)
end

return function()
	for _, one in ipairs {kws, magika} do
		local good, why = pcall(one)
		if not good then print((tostring(why))) end
	end
end
