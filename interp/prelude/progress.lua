-- SPDX-License-Identifier: MIT
-- One line on the terminal that says how far a loop is: bar, text, time to go. Where stderr is no terminal, only the lines
-- that `done` leaves are written. Nothing goes to stdout: that is for results.
local _, internal = ...
local clock = hw.clock
local progress = {}

local INTERVAL = {terminal = 0.1, notebook = 0.5} -- seconds between two drawings; a notebook keeps each in its file
local BAR = 24       -- characters

local function time_text(seconds)
	if seconds >= 3600 then return ('%d:%02d:%02d'):format(seconds // 3600, seconds // 60 % 60, seconds % 60) end
	return ('%d:%02d'):format(seconds // 60, seconds % 60)
end
progress.time_text = time_text

local methods = {}
local meta = {__index = methods}

-- Covers what the last drawing left.
local function draw(self, text)
	local width = internal.width and internal.width() or 80
	if #text >= width then text = text:sub(1, width - 1) end
	io.stderr:write('\r', text, (' '):rep(self.drawn - #text))
	io.stderr:flush()
	self.drawn = #text
end

-- Step i of the total (nil: unknown); `text` is a function, called only when something is drawn.
function methods:update(i, text)
	local now = clock()
	if not self.live or now - self.last < self.interval then return end
	self.last = now
	if not self.total then
		draw(self, ('%s  %d  %s'):format(self.label, i, text()))
		return
	end
	local share = i / self.total
	local filled = math.floor(share * BAR)
	local left = share > 0 and time_text(math.ceil((now - self.start) / share * (1 - share))) or '-:--'
	draw(self, ('%s  [%s%s] %3d %%  %s  %s to go'):format(self.label, ('='):rep(filled), (' '):rep(BAR - filled),
		math.floor(100 * share), text(), left))
end

-- Clears the line; a text is left in its place.
function methods:done(text)
	if self.live and self.drawn > 0 then
		local width = internal.width and internal.width() or 80
		io.stderr:write('\r', (' '):rep(math.min(self.drawn + 2, width - 1)), '\r') -- with the ^C that a terminal shows after it
		io.stderr:flush()
		self.drawn = 0
	end
	if text and self.log then io.stderr:write(text, '\n') end
end

meta.__close = function(self) self:done() end

-- log: false for silence.
function progress.start(label, total, log)
	local now = clock()
	return setmetatable({label = label, total = total, log = log ~= false, live = log ~= false and internal.live(), drawn = 0,
		start = now, last = now, interval = internal.kernel and INTERVAL.notebook or INTERVAL.terminal}, meta)
end

return progress
