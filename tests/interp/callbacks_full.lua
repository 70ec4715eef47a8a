-- SPDX-License-Identifier: MIT
-- labels: full
-- tests/interp/callbacks.lua and callbacks_prompt.lua for 10 seconds each, from a seed of the day; QUOLL_FUZZ_SECONDS: longer.
local variables = ('QUOLL_FUZZ_SECONDS=%s QUOLL_FUZZ_SEED=%s'):format(os.getenv 'QUOLL_FUZZ_SECONDS' or 10,
	os.getenv 'QUOLL_FUZZ_SEED' or os.time() // 86400 * 1000000)

for _, file in ipairs {'callbacks', 'callbacks_prompt'} do
	it(file .. ' do no harm, for long', function()
		local pipe = io.popen(('%s "/proc/$PPID/exe" test tests/interp/%s.lua 2>&1'):format(variables, file))
		local text = pipe:read 'a'
		assert(pipe:close(), text)
	end)
end
