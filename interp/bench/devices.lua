-- SPDX-License-Identifier: MIT
-- The devices in reports of measurements: a column device_peak behind peak, and at the end gpu, the name of the device, where a row has one.
local _, internal = ...
local gpu = gpu
local devices = {}

-- A function that gives the peak above what is in use now; the peak of gpu.memory begins again. Opens no device.
function devices.watch()
	local start = internal.device_peak(true)
	return function()
		local _, peak = internal.device_peak(false)
		return math.max(0, peak - start)
	end
end

local function name_of_first()
	local first = (gpu.info().devices or {})[1]
	return first and first.name
end

-- Rows with a field device_peak: without any the columns and the fields are left out.
function devices.show(list)
	local used, at = false, #list.columns
	for _, row in ipairs(list) do used = used or row.device_peak > 0 end
	for i, name in ipairs(list.columns) do at = name == 'peak' and i or at end
	if used then
		table.insert(list.columns, at + 1, 'device_peak')
		table.insert(list.columns, 'gpu')
	end
	for _, row in ipairs(list) do
		row.gpu = used and row.device_peak > 0 and name_of_first() or nil
		row.device_peak = used and row.device_peak or nil
	end
end

return devices
