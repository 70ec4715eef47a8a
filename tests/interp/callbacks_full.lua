-- SPDX-License-Identifier: MIT
-- labels: full
-- tests/interp/callbacks.lua for ten minutes, from a seed of the day.
local variables = ('QUOLL_FUZZ_SECONDS=%s QUOLL_FUZZ_SEED=%s'):format(os.getenv 'QUOLL_FUZZ_SECONDS' or 600,
	os.getenv 'QUOLL_FUZZ_SEED' or os.time() // 86400 * 1000000)

it('callbacks do no harm, for long', function()
	local pipe = io.popen(('%s "/proc/$PPID/exe" test tests/interp/callbacks.lua 2>&1'):format(variables))
	local text = pipe:read 'a'
	assert(pipe:close(), text)
end)
