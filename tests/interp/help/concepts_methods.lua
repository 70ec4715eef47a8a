-- SPDX-License-Identifier: MIT
-- help 'methods': every method of methods.def with its text and options.
local internal = debug.getregistry()['quoll.internal']
local method = internal.import 'nn/quantize/method'
local entry = internal.import 'interp/help/help_index'.by_title.methods

it('names every method, its text, what it reads and its options', function()
	local text = entry.text:gsub('%s+', ' ')
	assert(#method.names >= 6)
	for _, name in ipairs(method.names) do
		local m = method.find(name)
		assert(entry.text:find('\n  ' .. name .. ' ', 1, true), name)
		assert(text:find(m.text:gsub('%s+', ' '), 1, true), name)
		for _, o in ipairs(m.options or {}) do assert(text:find(o[1] .. '=' .. o[3]:gsub('%s+', ' '), 1, true), name .. ' ' .. o[1]) end
	end
end)
it('has advice only about methods that exist', function()
	for word in entry.text:match 'When to use which:(.-)quant%.methods':gmatch "'(%l+)'" do assert(method.find(word), word) end
end)
