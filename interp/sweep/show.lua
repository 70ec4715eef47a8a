-- SPDX-License-Identifier: MIT
-- What a running sweep shows on stderr. On a terminal: a bar with the time to go and a line for each running trial,
-- drawn over in place; what stays (finished trials that failed) is printed above it. Elsewhere: a line for each trial
-- that ends, and no escape sequence. Text of trials is cleaned: it may hold anything.
local _, internal = ...
local progress = internal.import 'interp/prelude/progress'
local time_text = progress.time_text
local show = {}

local INTERVAL = 0.1 -- seconds between two drawings
local BAR = 24       -- characters
local MOST = 12      -- lines for running trials
local WIDEST = 240   -- characters of a line that stays

-- Text without control characters, of at most `width` characters.
local function clean(text, width)
	if not utf8.len(text) then text = text:gsub('[\128-\255]', '?') end
	text = text:gsub('\t', '  '):gsub('%c', '?'):gsub('\194[\128-\159]', '?')
	if width and utf8.len(text) > width then text = text:sub(1, utf8.offset(text, width) - 1) .. '…' end
	return text
end
show.clean = clean

local methods = {}
local meta = {__index = methods}

local function erase(self)
	if self.drawn > 0 then io.stderr:write(('\27[%dA\r\27[J'):format(self.drawn)) end
	self.drawn = 0
end

-- A line that stays.
function methods:line(text)
	if not self.log then return end
	erase(self)
	io.stderr:write(clean(text, WIDEST), '\n')
	io.stderr:flush()
end

local function number_text(x) return math.type(x) == 'float' and ('%.4g'):format(x) or tostring(x) end

local function results_text(results)
	local parts = {}
	for i = 1, math.min(4, #results) do parts[i] = results[i].name .. '=' .. number_text(results[i].value) end
	return table.concat(parts, ' ')
end

local function seconds_text(seconds)
	return seconds < 100 and ('%.1f s'):format(seconds) or time_text(math.floor(seconds))
end

local function place(self) return ('[%' .. #tostring(self.total) .. 'd/%d]'):format(self.ended, self.total) end

-- On a terminal the bar tells of those that went well.
function methods:finished(text, seconds, results)
	self.run, self.sum = self.run + 1, self.sum + seconds
	if not self.live then
		self:line(('%s done    %s  %s  %s'):format(place(self), clean(text, 120), seconds_text(seconds),
			results_text(results)))
	end
end

function methods:failed(text, why, tail, again)
	self:line(('%s %s  %s: %s'):format(place(self), again and 'again ' or 'FAILED', clean(text, 120), why))
	for line in (tail or ''):gmatch '[^\n]+' do self:line('    | ' .. line) end
end

-- Time to go: what is left takes as long as the trials of this run did on average.
local function left_text(self, jobs)
	if self.run == 0 then return '-:--' end
	return time_text(math.ceil(self.sum / self.run * (self.total - self.ended) / math.max(1, jobs)))
end

-- running: a list of {text=, start=, last=}; others: trials that another process runs
function methods:draw(running, jobs, others)
	local now = hw.clock()
	if not self.live or now - self.last < INTERVAL then return end
	self.last = now
	local width, lines = internal.width() - 1, {}
	local share = self.total > 0 and self.ended / self.total or 1
	local filled = math.floor(share * BAR)
	lines[1] = ('%s  [%s%s] %3d %%  %d of %d, %d failed%s  %s to go'):format(self.name, ('='):rep(filled),
		(' '):rep(BAR - filled), math.floor(100 * share), self.ended, self.total, self.failures(),
		others > 0 and (', %d elsewhere'):format(others) or '',
		left_text(self, jobs))
	for i = 1, math.min(#running, MOST) do
		local one = running[i]
		lines[#lines + 1] = ('  %6s  %s  %s'):format(time_text(math.floor(now - one.start)), one.text, one.last or '')
	end
	if #running > MOST then lines[#lines + 1] = ('  … and %d more'):format(#running - MOST) end
	for i, line in ipairs(lines) do lines[i] = clean(line, width) end
	erase(self)
	io.stderr:write(table.concat(lines, '\n'), '\n')
	io.stderr:flush()
	self.drawn = #lines
end

meta.__close = erase

-- total, ended: trials of this run, and how many of them need nothing more (kept by the caller); log: false for silence
function show.start(name, total, ended, log, failures)
	return setmetatable({name = name, total = total, ended = ended, log = log, live = log and internal.live(),
		drawn = 0, last = -1, run = 0, sum = 0, failures = failures}, meta)
end

return show
