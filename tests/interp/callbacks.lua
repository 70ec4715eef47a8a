-- SPDX-License-Identifier: MIT
-- Calls everything that calls back into Lua (lists with __index, observer and metric functions, data, modules, tostring, trials of
-- a sweep, cells of a notebook, what the prompt shows …) with functions that close, collect, drop and change what is being worked
-- on, raise, yield, or call again. Nothing of that may read freed memory (run it in the asan build), lose memory, or leave
-- gradients switched off. tests/interp/callbacks_prompt.lua does the same in processes of their own.
--
-- QUOLL_FUZZ_SECONDS: how long (2); QUOLL_FUZZ_SEED: the first seed. A failure names the seed of its round.
local seconds = tonumber(os.getenv 'QUOLL_FUZZ_SECONDS') or 2
local first_seed = tonumber(os.getenv 'QUOLL_FUZZ_SEED') or 1
warn '@off'

local callbacks = dofile 'tests/tools/callbacks.lua'
dofile 'tests/tools/callbacks_shown.lua'(callbacks)
local call, chance, pool = callbacks.call, callbacks.chance, callbacks.pool

local made = 0 -- calls
local ways = {
	function() pcall(call) end,
	callbacks.in_a_coroutine,
	function() pcall(tensor.nograd, call) end,
	function() pcall(coroutine.wrap(call)) end,
}

local function round(seed)
	callbacks.begin(seed)
	for _ = 1, 20 do
		if chance(20) then callbacks.fill() end
		callbacks.one_of(ways)()
		made = made + 1
		assert(callbacks.records(), 'gradients are switched off')
	end
	for i = 1, 12 do
		if pool[i] ~= nil then pcall(function() return tostring(pool[i]), pool[i]:nelem() end) end
	end
end

it('callbacks do no harm', function()
	local start, seed, told = os.time(), first_seed, os.time()
	collectgarbage()
	local before = tensor.memory().now
	repeat
		local good, message = xpcall(round, debug.traceback, seed)
		assert(good, ('seed %d: %s'):format(seed, tostring(message)))
		seed = seed + 1
		if os.time() - told >= 60 then
			told = os.time()
			io.stderr:write(('%d s: %d calls, seed %d\n'):format(told - start, made, seed))
		end
	until os.time() - start >= seconds
	callbacks.forget()
	local lost = tensor.memory().now - before -- up to 64 MiB of scratch memory are kept between operations
	assert(lost < 65 << 20, ('%d bytes lost after %d rounds from seed %d'):format(lost, seed - first_seed, first_seed))
	if os.getenv 'QUOLL_FUZZ_SECONDS' then print(('%d rounds, %d calls, %d bytes kept'):format(seed - first_seed, made, lost)) end
end)
