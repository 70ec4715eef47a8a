-- SPDX-License-Identifier: MIT
-- labels: full
-- The figures of tutorials/README.md that are made again in seconds: what scripts/figures.lua prints is what the page says.
for _, name in ipairs {'text/tinyshakespeare.txt.xz', 'ptb/ptb.train.txt.xz', 'mnist/t10k-images-idx3-ubyte.gz'} do
	if not data.find(name) then skip('there is no ' .. name) end
end
local function read(path)
	local handle = assert(io.open(path))
	local text = handle:read 'a'
	handle:close()
	return text
end
local page, script = read 'tutorials/README.md':gsub('%s+', ' '), read 'scripts/figures.lua'
local pipe = io.popen '"/proc/$PPID/exe" scripts/figures.lua mlp lenet transformer lstm 2>/dev/null'
local n = 0
for line in pipe:lines() do
	local name, text = line:match '^([^\t]+)\t(.*)$'
	it(line, function() assert(text and page:find(text, 1, true), name) end)
	n = n + 1
end
pipe:close()
print(n)  --> 8
it('the page names a command for each of its paragraphs and rows with figures', function()
	local raw = read 'tutorials/README.md':match '## Figures\n(.*)'
	for block in (raw .. '\n\n'):gmatch '(.-)\n\n+' do
		local table_of = block:match '^|[^\n]*command'
		for row in (table_of and block:match '|%-[^\n]*\n(.*)' or block):gmatch(table_of and '[^\n]+' or '.+') do
			local counted = not row:find '^|' or table_of
			if counted and row:find '%d%.%d' then assert(row:find('./quoll ', 1, true), row) end
			for name in row:gmatch 'scripts/figures%.lua (%w+)`' do assert(script:find('function figures.' .. name .. '(', 1, true), name) end
			for path in row:gmatch '`%./quoll [^`]-([%w_/]+%.lua)' do assert(io.open(path), path):close() end
		end
	end
end)
it('a name that is none is refused', function()
	local refusal = io.popen '"/proc/$PPID/exe" scripts/figures.lua resnet 2>&1'
	assert(refusal:read 'a':find 'figures: wanted some of lenet lstm mlp resnet20 resnet8 resnet9 transformer, got resnet')
	refusal:close()
end)
