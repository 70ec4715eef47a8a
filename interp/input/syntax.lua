-- SPDX-License-Identifier: MIT
-- What the compiler says about an input, with a hint where it looks like the syntax of another language. syntax(message, text):
-- the message, perhaps longer. The text is the whole input; the message tells the line.
local _, internal = ...

-- Of a line as it stands: {pattern, what to write here, pattern of what is none}. The first that fits counts.
local RAW = {
	{'"""', 'a string of several lines is written in [[ ]]'},
	{"'''", 'a string of several lines is written in [[ ]]'},
}

-- The same for a line without its strings and comments.
local HINTS = {
	{'^%s*[%w_]+%s*=%s*!%s*[%w_]', "'not' is that operator here; what a command prints: io.popen('ls'):read 'a'"},
	{'^%s*del%s+([%w_%.]+)', 'a variable goes away by %1 = nil, a local one of the prompt by %forget %1'},
	{'!=', "'~=' is the operator 'not equal' here"},
	{'([%w_%.%[%]]+)%s*([%+%-%*/%%])=%f[^=]', "there is no '%2=' in Lua: %1 = %1 %2 …"},
	{'([%w_%.%[%]]+)%s*%+%+', "there is no '++' in Lua: %1 = %1 + 1"},
	{'&&', "'and' is that operator here"},
	{'||', "'or' is that operator here"},
	{'^%s*!', "a line that begins with ! runs in the shell, but not within a block or bracket"},
	{'%f[^%w_%)%]%s=]!%s*[%w_%(]', "'not' is that operator here"},
	{'^%s*%l*if%s+%(?%s*[%w_%.]+%s*=%f[^=]', "'==' compares, '=' assigns"},
	{'%f[%w_]elif%f[^%w_]', "Lua writes 'elseif', with 'then' after the condition"},
	{'%f[%w_]else%s+if%f[^%w_]', "'elseif' is one word here"},
	{'%f[%w_]lambda%f[^%w_]', "a function without a name is written: function(x) return … end"},
	{'^%s*%%%%?%a', "a %word is a line of its own, outside of blocks and brackets"},
	{'^%s*%?', "a ? is a line of its own, outside of blocks and brackets"},
	{'^%s*help%s+([%w_%.:]+)', "?%1 or help '%1' asks for help"},
	{'^%s*print%s+[%w_]', "arguments of a call go in parentheses: print(x)"},
	{'%[%s*:', "a range is a text: x[':, 1'], x['1:10'], counted from 1, both ends included"},
	{'%[%s*%-?%d*%s*:%s*%-?%d*', "a range is a text: x['1:10'], counted from 1, both ends included"},
	{'=%s*%[%s*[%w%-%]"\']', 'a list is written in braces: {1, 2, 3}'},
	{'%([^()]-%f[%w_][%a_][%w_]*%s*=%f[^=]', 'options go in braces: f(x, {name = value})'},
	{'%[.*%f[%w_]for%f[^%w_].*%sin%s', 'a list is filled in a loop: for i, v in ipairs(list) do t[i] = v end'},
	{'^%s*%[', 'a list is written in braces: {1, 2, 3}'},
	{'{[^}]*["%w%s]%s*:%s', "fields are written {name = value}, {['any text'] = value}"},
	{'%sif%s.*%selse%s', 'the choice between two values is written: condition and a or b', '%f[%w_]then%f[^%w_]'},
	{'%f[%w_]is%s+not%f[^%w_]', "'~=' compares: x ~= nil"},
	{'%f[%w_]is%s+[%w_]', "'==' compares: x == nil"},
	{'%f[%w_]not%s+in%f[^%w_]', 'whether a table has a field: t.name == nil'},
	{'[%w_%)%]]%s*@%s*[%w_%(]', 'the matrix product is written a:matmul(b)'},
	{'["\']%s*%.%s*%l+%s*%(', "a string needs parentheses before its method: ('%d'):format(3)"},
	{'^%s*[%w_%.]+%s*=%s*[%w_%.]+%s*=%f[^=]', 'each assignment is a statement of its own'},
	{'%?.*:', "the choice between two values is written: condition and a or b"},
	{'%*%*', "'^' is the power here, x^2, or x:pow(2)"},
	{'^%s*//', "'--' begins a comment"},
	{'%s//%s', "'--' begins a comment; // is division that rounds down"},
	{'^%s*#', "'--' begins a comment"},
	{'%s#%s', "'--' begins a comment"},
}

-- Lines that open a block in Python: no line of Lua is like them, and the compiler may complain further down only.
local BLOCKS = {
	{'^%s*def%s+[%w_]+%s*%(', 'a function is written: function name(x) … end'},
	{'^%s*class%s+[%w_]+.*:%s*$', "a module is written: nn.module(function(self, x) … end), see help 'nn.module'"},
	{'^%s*for%s+[%w_, ]+in%s+.*:%s*$', 'a loop is written: for i = 1, n do … end, or: for i, v in ipairs(list) do … end'},
	{'^%s*while%s+.*:%s*$', 'a loop is written: while … do … end'},
	{'^%s*if%s+.*:%s*$', 'a condition is written: if … then … elseif … then … else … end'},
	{'^%s*with%s+.*:%s*$', 'a value is closed at the end of its block by: local x <close> = …'},
	{'^%s*try:%s*$', 'errors are caught by: local good, message = pcall(f, x)'},
	{'^%s*import%s+([%w_]+)', "nothing is imported: tensor, quant, nn, data and plot are there; of files: require '%1'"},
	{'^%s*from%s+[%w_%.]+%s+import', 'nothing is imported: tensor, quant, nn, data and plot are there'},
}

local function line_of(text, number)
	local n = 0
	for line in (text .. '\n'):gmatch '(.-)\n' do
		n = n + 1
		if n == number then return line end
	end
end

-- The line with blanks in place of its strings and comments. What is open at its end stays.
local function plain(line)
	local tokens = internal.tokens(line)
	for i = 1, #tokens, 3 do
		local from, to = tokens[i + 1], tokens[i + 2]
		if tokens[i] == 'comment' or tokens[i] == 'string' then
			line = line:sub(1, from - 1) .. ('"'):rep(to - from + 1):gsub('""', '" ') .. line:sub(to + 1)
		end
	end
	return line
end

local function hint_of(list, line)
	for _, hint in ipairs(list) do
		local a, b = line:match(hint[1])
		if a and not (hint[3] and line:find(hint[3])) then
			return (hint[2]:gsub('%%(%d)', function(i) return i == '1' and a or b end))
		end
	end
end

-- Above the line where the compiler stopped.
local function block_above(text, number)
	for i = 1, number do
		local line = line_of(text, i)
		local hint = line and hint_of(BLOCKS, plain(line))
		if hint then return hint end
	end
end

-- `%timeit -n x 1`: what is after -n is taken for code where it is no number (interp/repl/magic.c), and that may not compile.
local function wrong_option(line)
	local word, rest = line:match '^%s*%%+(%l+)%s+(%-.*)$'
	if word ~= 'timeit' and word ~= 'bench' then return nil end
	local n
	repeat rest, n = rest:gsub('^%-%a%s*%d+%s+', '') until n == 0
	local name, value = rest:match '^%-([nr])%s+([%w_]+)'
	return name and ("%s: -%s: wanted a number, got '%s'"):format(word, name, value)
end

return function(message, text)
	local first, rest = message:match '^([^\n]*)(.*)$'
	local number = math.tointeger(tonumber(first:match ':(%d+):'))
	local line = number and line_of(text, number)
	if not line then return message end
	local wrong = wrong_option(line)
	if wrong then return (first:find '^In%[' and '' or first:match '^.-:%d+: ') .. wrong end
	local hint = block_above(text, number) or hint_of(RAW, line) or hint_of(HINTS, plain(line))
	return hint and first .. '; ' .. hint .. rest or message
end
