-- SPDX-License-Identifier: MIT
-- The peak of the devices' memory in reports of measurements: a column device_peak behind peak, where a row has one.
local _, internal = ...
local devices = {}

-- A function that gives the peak above what is in use now; the peak of gpu.memory begins again. Opens no device.
function devices.watch()
	local start = internal.device_peak(true)
	return function()
		local _, peak = internal.device_peak(false)
		return math.max(0, peak - start)
	end
end

-- Rows with a field device_peak: without any the column and the fields are left out.
function devices.show(list)
	local used, at = false, #list.columns
	for _, row in ipairs(list) do used = used or row.device_peak > 0 end
	for i, name in ipairs(list.columns) do at = name == 'peak' and i or at end
	if used then table.insert(list.columns, at + 1, 'device_peak') end
	for _, row in ipairs(list) do row.device_peak = used and row.device_peak or nil end
end

return devices
