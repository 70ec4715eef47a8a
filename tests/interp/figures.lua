-- SPDX-License-Identifier: MIT
-- labels: full
-- The figures of tutorials/README.md that are made again in seconds: what scripts/figures.lua prints is what the page says.
for _, name in ipairs {'text/tinyshakespeare.txt.xz', 'ptb/ptb.train.txt.xz'} do
	if not data.find(name) then skip('there is no ' .. name) end
end
local handle = assert(io.open 'tutorials/README.md')
local page = handle:read 'a':gsub('%s+', ' ')
handle:close()
local pipe = io.popen '"/proc/$PPID/exe" scripts/figures.lua 2>&1'
local n = 0
for line in pipe:lines() do
	local name, text = line:match '^([^\t]+)\t(.*)$'
	it(line, function() assert(text and page:find(text, 1, true), name) end)
	n = n + 1
end
pipe:close()
print(n)  --> 6
