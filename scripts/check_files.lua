-- SPDX-License-Identifier: MIT
-- What holds for every file of the repository: a licence line at the top of the sources, no path of somebody's
-- machine, no blanks at the end of a line, a newline at the end of the file. Run in the repository root.
local sources = {c = true, h = true, cu = true, cpp = true, def = true, lua = true, awk = true, sh = true}
local private = {} -- patterns of folders that exist on one machine only
for _, folder in ipairs {'home', 'work', 'root', 'Users'} do private[#private + 1] = '/' .. folder .. '/%a' end
local checked, broken = 0, 0

local function check(good, ...)
	checked = checked + 1
	if not good then
		broken = broken + 1
		print(string.format(...))
	end
end

local function check_text(file, text)
	local number = 0
	for line in text:gmatch '([^\n]*)\n' do
		number = number + 1
		for _, pattern in ipairs(private) do
			if line:find(pattern) then check(false, '%s:%d: a path of one machine', file, number) end
		end
		if line:find '%s$' and not file:find '^tests/golden/' then check(false, '%s:%d: blanks at the end', file, number) end
	end
	check(text == '' or text:sub(-1) == '\n', '%s: no newline at the end', file)
	if sources[file:match '%.(%w+)$'] then
		check(text:match('^#?[^\n]*\n?[^\n]*'):find('SPDX-License-Identifier: MIT', 1, true), '%s: no licence line', file)
	end
end

-- Without git (a released archive) there is nothing but the repository's files, and what was built.
local list = io.popen "git ls-files 2>/dev/null || find . -name build -prune -o -type f -print"
for file in list:lines() do
	local handle = io.open(file, 'rb')
	local text = handle and handle:read 'a' or ''
	if handle then handle:close() end
	if not text:find('\0', 1, true) then check_text(file, text) end
end
print(('%d rules checked, %d broken'):format(checked, broken))
os.exit(broken == 0 and checked > 0)
