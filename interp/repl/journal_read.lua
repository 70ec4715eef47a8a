-- SPDX-License-Identifier: MIT
-- Reading journals (interp/repl/journal.h): %journal lists them, quoll --restore shows one and puts its inputs into In.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local journal = {}

local KINDS = {session = true, input = true, stdout = true, stderr = true, result = true, display = true, error = true,
	note = true, left = true, done = true, ['end'] = true}

-- The records of a text, up to the first that is not whole: {kind, n, text}; then how many bytes they take.
function journal.records(text)
	local list, at = {}, 1
	while true do
		local from, to, head, kind, n, size, crc = text:find('^((%l+) (%d+) (%d+)) (%x%x%x%x%x%x%x%x)\n', at)
		if not from or not KINDS[kind] or #size > 15 or #n > 15 then break end
		local first = to + 1
		local last = to + math.tointeger(tonumber(size))
		if last + 1 > #text or text:byte(last + 1) ~= 10 then break end
		local body = text:sub(first, last)
		if internal.crc32(head, body) ~= tonumber(crc, 16) then break end
		list[#list + 1] = {kind = kind, n = math.tointeger(tonumber(n)), text = body}
		at = last + 2
	end
	return list, at - 1
end

-- How an input ended. Older journals do not say: an error that was shown is a failure then.
local function outcome(input)
	if not input.done then return 'unfinished' end
	if input.done ~= '' then return input.done end
	for _, r in ipairs(input.output) do
		if r.kind == 'error' then return 'failed' end
	end
	return 'good'
end

-- A session: {path=, when=, version=, folder=, ended=, whole = bytes of whole records, inputs = {{n=, text=, done = text of
-- that record or false, how = good, failed, interrupted or unfinished, output = {records}}}}; nil and a reason.
function journal.read(path)
	local file, reason = io.open(path, 'rb')
	if not file then return nil, reason end
	local text = file:read 'a'
	file:close()
	local records, whole = journal.records(text or '')
	if not records[1] or records[1].kind ~= 'session' then return nil, path .. ': no journal of a session' end
	local version, when, folder = records[1].text:match '^quoll (%S+)\n([^\n]*)\n(.*)$'
	local s = {path = path, when = when or '?', version = version, folder = folder, inputs = {}, ended = false, whole = whole}
	local last
	for _, r in ipairs(records) do
		if r.kind == 'input' then
			last = {n = r.n, text = r.text, output = {}, done = false}
			s.inputs[#s.inputs + 1] = last
		elseif r.kind == 'done' and last then
			last.done = r.text
		elseif r.kind == 'end' then
			s.ended = true
		elseif last and r.kind ~= 'session' then
			last.output[#last.output + 1] = r
		end
	end
	for _, input in ipairs(s.inputs) do input.how = outcome(input) end
	return s
end

---------------------------------------------------------------- choosing

-- All sessions that others do not write just now, the newest first.
function journal.sessions()
	local list = {}
	for _, file in ipairs(internal.journal_files()) do
		local s = not file.own and not file.alive and journal.read(file.path)
		if s then list[#list + 1] = s end
	end
	return list
end

-- The last session that did not end by itself and had inputs.
function journal.crashed()
	for _, s in ipairs(journal.sessions()) do
		if not s.ended and #s.inputs > 0 then return s end
	end
end

local function first_line(text, most)
	local line = text:match '[^\n]*'
	return (utf8.len(line) or #line) > most and line:sub(1, (utf8.offset(line, most) or most) - 1) .. '…' or line
end

-- %journal
function journal.list()
	local files = internal.journal_files()
	for _, file in ipairs(files) do
		local s = journal.read(file.path)
		local state = file.own and 'this session' or file.alive and 'running' or s and (s.ended and 'ended' or 'did not end') or
			'not readable'
		local last = s and s.inputs[#s.inputs]
		local line = ('%s  %-12s  %3d inputs  '):format(s and s.when or os.date('%Y-%m-%d %H:%M:%S', file.time), state,
			s and #s.inputs or 0)
		print(line .. (last and first_line(last.text, math.max(20, internal.width() - #line)) or ''))
	end
	print(files[1] and 'The files are in ' .. files[1].path:match '^(.*/)' or 'no journals yet')
end

---------------------------------------------------------------- restoring

local PLAIN = {stdout = true, stderr = true}

local function show_input(input)
	local prompt = ('In [%d]: '):format(input.n)
	local lines = input.text:gsub('%s+$', ''):gsub('\n', '\n' .. (' '):rep(#prompt - 5) .. '...: ')
	io.write(prompt, lines, '\n')
	for _, r in ipairs(input.output) do
		if PLAIN[r.kind] then
			io.write(r.text)
		elseif r.kind == 'result' then
			io.write(('Out[%d]:'):format(input.n), r.text:find '\n' and '\n' or ' ', r.text, '\n')
		elseif r.kind == 'left' then
			io.write('… (', r.text, ' more bytes were not recorded)\n')
		else
			io.write(r.text, '\n')
		end
	end
	if not input.done then io.write('(the session ended while this ran)\n') end
end

-- Shows a session and puts its inputs into In; nothing runs. Returns the number of the next input.
function journal.restore(path)
	local s, reason
	if path then
		s, reason = journal.read(path)
		if not s then error('restore: ' .. reason, 0) end
	else
		s = journal.crashed()
		if not s then error('restore: no session that did not end by itself; %journal lists all, --restore FILE takes one', 0) end
	end
	local next_number = 1
	for _, input in ipairs(s.inputs) do
		show_input(input)
		if type(In) == 'table' then In[input.n] = input.text end
		internal.outcomes[input.n] = input.how ~= 'good' and input.how or nil
		next_number = math.max(next_number, input.n + 1)
	end
	local lines, width = {}, internal.width()
	base.wrap(lines, ('%d input%s of %s, in %s;'):format(#s.inputs, #s.inputs == 1 and '' or 's', s.when, s.folder or '?'), '', width)
	base.wrap(lines, 'nothing was run: %run above runs again what had not failed, %run 3 one', '', width)
	io.write(table.concat(lines, '\n'), '\n')
	return next_number, s
end

-- The records of a restored session go into the journal of this one; then the old one counts as ended.
function journal.adopt(s)
	for _, input in ipairs(s.inputs) do
		internal.journal_put('input', input.n, input.text)
		for _, r in ipairs(input.output) do internal.journal_put(r.kind, r.n, r.text) end
		if input.done then internal.journal_put('done', input.n, input.how) end
	end
	if not s.ended then internal.journal_end(s.path, s.whole) end
end

return journal
