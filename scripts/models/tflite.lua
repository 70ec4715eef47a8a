-- SPDX-License-Identifier: MIT
-- Section tflite: MLPerf Tiny's models beside LiteRT's reference kernels, 200 random inputs: outputs, of integers their codes.
local _, judges = ...
local ask, folder = judges.ask, judges.folder

-- kws_float has weights of 8 bits, with which LiteRT rounds activations, too.
local TFLITE = {'models/kws/kws_int8.tflite', 'models/kws/kws_float.tflite', 'models/ad01/ad01_int8.tflite', 'models/ad01/ad01_fp32.tflite',
	'weights/mlperf-tiny-resnet8-int8.tflite', 'models/resnet8/resnet8_float.tflite'}

-- How many of the codes are equal and how far others are off; of floats the error.
local function compared(got, want)
	if quant.dtype(want:dtype()).float then
		local error = (got:to 'float64' - want:to 'float64'):abs():max():item() / want:to 'float64':abs():max():item()
		return ('%.1e of the largest output'):format(error)
	end
	local off = (got:codes():to 'int32' - want:to 'int32'):abs()
	return ('%d of %d codes equal, most off by %d'):format(off:eq(0):to 'int64':sum():item(), off:nelem(), off:max():item())
end

local function section()
	local rows = {columns = {'model', 'result'}}
	for _, name in ipairs(TFLITE) do
		local path, result = data.find(name), 'skipped: not in the data folder (QUOLL_DATA)'
		if path and ask('tflite', path, folder, 200) then
			local t = tensor.load(folder .. '/m.npz')
			result = compared(graph.load(path):run(t['in']), t.out)
		end
		rows[#rows + 1] = {name:match '[^/]+$', result}
	end
	return rows
end

return {needs = 'ai_edge_litert', run = section}
