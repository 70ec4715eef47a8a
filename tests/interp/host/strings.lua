-- SPDX-License-Identifier: MIT
-- string.find, match, gmatch, gsub, rep, lower, upper and reverse: the expectations are what plain Lua 5.4 prints for the same lines.
local function show(f)
	local t = table.pack(pcall(f))

	for i = 2, t.n do
		if type(t[i]) == 'string' then
			t[i] = t[i]:gsub('^[^:]+:%d+: ', '')
			t[i] = '"' .. t[i]:gsub('[%c\\"]', function(c) return ('\\%d'):format(c:byte()) end) .. '"'
		end
		t[i] = tostring(t[i])
	end
	print((t[1] and '' or 'error ') .. table.concat(t, ' ', 2))
end

show(function() return ("hello world"):find("o w") end)  --> 5 7
show(function() return ("hello"):find("l+") end)  --> 3 4
show(function() return ("hello"):find("xyz") end)  --> nil
show(function() return ("hello"):find("") end)  --> 1 0
show(function() return ("hello"):find("", 6) end)  --> 6 5
show(function() return ("hello"):find("", 7) end)  --> nil
show(function() return ("hello"):find("l", -2) end)  --> 4 4
show(function() return ("hello"):find("l", -100) end)  --> 3 3
show(function() return ("a.b"):find(".", 1, true) end)  --> 2 2
show(function() return ("a+b"):find("+b", 1, true) end)  --> 2 3
show(function() return ("a\0b"):find("\0") end)  --> 2 2
show(function() return ("a\0b"):find("%z") end)  --> 2 2
show(function() return ("a\0b"):match("[%z]b") end)  --> "\0b"
show(function() return ("key = value"):match("^(%w+)%s*=%s*(%w+)$") end)  --> "key" "value"
show(function() return ("  trim  "):match("^%s*(.-)%s*$") end)  --> "trim"
show(function() return ("2024-05-06"):match("(%d+)-(%d+)-(%d+)") end)  --> "2024" "05" "06"
show(function() return ("abc"):match("()b()") end)  --> 2 3
show(function() return ("abc"):match("((a)(b))") end)  --> "ab" "a" "b"
show(function() return ("aXb"):match("%u") end)  --> "X"
show(function() return ("f(a(b)c)d"):match("%b()") end)  --> "(a(b)c)"
show(function() return ("((x)"):match("%b()") end)  --> "(x)"
show(function() return ("THE (quick) fox"):find("%((%a+)%)") end)  --> 5 11 "quick"
show(function() return ("THE (quick) fox"):gsub("%f[%a]%a+", string.lower) end)  --> "the (quick) fox" 3
show(function() return ("x"):find("%f[%z]") end)  --> 2 1
show(function() return ("abab"):match("(ab)%1") end)  --> "ab"
show(function() return ("abac"):match("(a)(b)%1(c)") end)  --> "a" "b" "c"
show(function() return ("]]"):match("[]]+") end)  --> "]]"
show(function() return ("a-b"):match("[a-]+") end)  --> "a-"
show(function() return ("a^b"):match("[%^]") end)  --> "^"
show(function() return ("a^b"):match("[^a]+") end)  --> "^b"
show(function() return ("aaa"):match("a-b") end)  --> nil
show(function() return ("aaab"):match("a-b") end)  --> "aaab"
show(function() return ("aaa"):match("a?a?a?a?") end)  --> "aaa"
show(function() return ("aaa"):match("^a-$") end)  --> "aaa"
show(function() return ("a$b"):match("a$b") end)  --> "a$b"
show(function() return ("a$"):match("a%$$") end)  --> "a$"
show(function() return ("abc"):gsub("", "-") end)  --> "-a-b-c-" 4
show(function() return ("abc"):gsub("%w", "%0%0", 2) end)  --> "aabbc" 2
show(function() return ("hello world"):gsub("o", "0", 0) end)  --> "hello world" 0
show(function() return ("abc"):gsub("b", "%%") end)  --> "a%c" 1
show(function() return ("abc"):gsub("(a)(b)", "%2%1") end)  --> "bac" 1
show(function() return ("abc"):gsub("()b", "%1") end)  --> "a2c" 1
show(function() return ("abc"):gsub("^a", "x") end)  --> "xbc" 1
show(function() return ("aaa"):gsub("^a", "x") end)  --> "xaa" 1
show(function() return ("$name is $age"):gsub("%$(%w+)", {name = "Al", age = 5}) end)  --> "Al is 5" 2
show(function() return ("abc"):gsub("%w", {b = false}) end)  --> "abc" 3
show(function() return ("abc"):gsub("%w", function(c) return c == "b" and "B" or nil end) end)  --> "aBc" 3
show(function() return ("abc"):gsub("b", 5) end)  --> "a5c" 1
show(function() return ("abc"):gsub("%w*", "x") end)  --> "x" 1
show(function() return ("abc"):gsub("b", "%2") end)  --> error "invalid capture index %2"
show(function() return ("abc"):gsub("b", "%x") end)  --> error "invalid use of '%' in replacement string"
show(function() return ("abc"):gsub("b", function() return {} end) end)  --> error "invalid replacement value (a table)"
show(function() return ("abc"):gsub("b", true) end)  --> error "bad argument #2 to 'gsub' (string/function/table expected, got boolean)"
show(function() return ("a"):find("[a") end)  --> error "malformed pattern (missing ']')"
show(function() return ("a"):find("%") end)  --> error "malformed pattern (ends with '%')"
show(function() return ("a"):find("(a") end)  --> error "unfinished capture"
show(function() return ("a"):find("a)") end)  --> nil
show(function() return ("a"):find("%1") end)  --> error "invalid capture index %1"
show(function() return ("a"):find("(%1)") end)  --> error "invalid capture index %1"
show(function() return ("a"):find("%b") end)  --> error "malformed pattern (missing arguments to '%b')"
show(function() return ("a"):find("%f") end)  --> error "missing '[' after '%f' in pattern"
show(function() return ("a"):find("[%") end)  --> error "malformed pattern (missing ']')"
show(function() return ("a"):find("[%a") end)  --> error "malformed pattern (missing ']')"
show(function() return ("a"):match(("(a)"):rep(33)) end)  --> nil
show(function() return ("a"):rep(300):find(("a?"):rep(300)) end)  --> error "pattern too complex"
show(function() return ("x"):rep(3, ",") end)  --> "x,x,x"
show(function() return ("x"):rep(0) end)  --> ""
show(function() return ("x"):rep(-1) end)  --> ""
show(function() return ("ab"):rep(1, "-") end)  --> "ab"
show(function() return (""):rep(5, "-") end)  --> "----"
show(function() return (""):rep(1e9) end)  --> ""
show(function() return ("x"):rep(1 << 62) end)  --> error "resulting string too large"
show(function() return pcall(string.rep) end)  --> false "bad argument #1 to 'string.rep' (string expected, got no value)"
show(function() return pcall(string.find, "a") end)  --> false "bad argument #2 to 'string.find' (string expected, got no value)"
show(function() return pcall(string.gsub, "a", "b") end)  --> false "bad argument #3 to 'string.gsub' (string/function/table expected, got no value)"

-- gmatch: empty matches, a starting place, captures, "^" as an ordinary character
local function all(...)
	local t = {}

	for a, b in string.gmatch(...) do t[#t + 1] = tostring(a) .. (b and '/' .. tostring(b) or '') end
	print(#t, table.concat(t, ' '))
end

all('one two  three', '%a+')  --> 3 one two three
all('k=v, a=b', '(%w+)=(%w+)')  --> 2 k/v a/b
all('abc', '()')  --> 4 1 2 3 4
all('abc', 'x*')  --> 4
all('abcabc', 'abc', 2)  --> 1 abc
all('abc', '%a', -2)  --> 2 b c
all('abc', '%a', 10)  --> 0
all('^a^b', '^%a')  --> 2 ^a ^b
print(select(2, pcall(string.gmatch, 'a')))  --> bad argument #2 ...gmatch' (string expected, got no value)

-- rep in pieces that are no power of two, above and below the size of one copy
for _, size in ipairs { 1, 3, 1000, 1 << 20, (1 << 20) + 1 } do
	local unit = ('abc'):rep(size // 3 + 1)

	for n = 1, 3 do
		local parts = {}

		for i = 1, n do parts[i] = unit end
		assert(unit:rep(n, '--') == table.concat(parts, '--'))
	end
end

it('utf8.len counts in pieces as Lua does at once', function()
	local unit = 'aé€😀'
	local long = unit:rep(400000) -- 4 MB
	assert(utf8.len(long) == 1600000 and utf8.len(long, 2) == 1599999 and utf8.len(long, -4) == 1 and utf8.len(long, 1, 1) == 1)
	assert(utf8.len(long, 11, 10) == 0 and utf8.len('') == 0 and utf8.len('', 1) == 0 and utf8.len('x', -1, -1) == 1)
	assert(utf8.len('x', 1, math.mininteger) == 0 and not pcall(utf8.len, 'x', math.maxinteger))
	local bad, at = utf8.len(long .. '\xff' .. unit)
	assert(bad == nil and at == #long + 1)
	bad, at = utf8.len(long .. ('\x80'):rep(3000000))
	assert(bad == nil and at == #long + 1)
	bad, at = utf8.len(long, 3)
	assert(bad == nil and at == 3)
	bad, at = utf8.len(long:sub(1, (1 << 20) + 1) .. long)
	assert((bad == nil) == (long:find('^[\x80-\xbf]', (1 << 20) + 2) ~= nil), at)
	assert(not utf8.len '\u{7FFFFFFF}' and utf8.len('\u{7FFFFFFF}', 1, -1, true) == 1)
	for _, call in ipairs {{'abc', 5}, {'abc', 1, 4}, {'abc', 0}, {'abc', -9}} do
		local good, why = pcall(utf8.len, table.unpack(call))
		assert(not good and why:find 'out of bounds', why)
	end
end)

it('utf8.offset finds what a walk over the bytes finds', function()
	local function starts(text) -- of each character, and behind the last
		local list = {}
		for i = 1, #text + 1 do
			if i > #text or text:byte(i) < 0x80 or text:byte(i) >= 0xc0 then list[#list + 1] = i end
		end
		return list
	end
	local text = 'aé€😀b'
	local list = starts(text)
	for k, i in ipairs(list) do
		for n = 1, 9 do assert(utf8.offset(text, n, i) == list[k + n - 1]) end
		for n = 1, 9 do assert(utf8.offset(text, -n, i) == list[k - n]) end
		local to = list[k + 1] or i + 1
		for at = i, to - 1 do assert(utf8.offset(text, 0, at) == i) end
	end
	assert(utf8.offset(text, -1) == #text and utf8.offset(text, 6) == #text + 1 and utf8.offset('', 1) == 1 and utf8.offset('', 0) == 1)
	assert(utf8.offset(text, 1, -1) == #text and not utf8.offset(text, math.maxinteger) and not utf8.offset(text, math.mininteger))
	local long = ('aé€😀'):rep(300000)
	assert(utf8.offset(long, 1200000) == #long - 3 and utf8.offset(long, -1200000) == 1 and utf8.offset(long, 1200001) == #long + 1)
	for _, call in ipairs {{text, 1, 3}, {text, -1, 3}, {text, 1, 99}, {text, 1, -99}, {text, 0, 0}} do
		local good, why = pcall(utf8.offset, table.unpack(call))
		assert(not good and (why:find 'out of bounds' or why:find 'continuation byte'), why)
	end
end)

it('lower, upper and reverse', function()
	local long = ('aB€'):rep(500000)
	assert(long:lower() == ('ab€'):rep(500000) and long:upper() == ('AB€'):rep(500000) and long:reverse():reverse() == long and long:reverse():sub(-2) == 'Ba')
	assert((''):lower() == '' and (''):reverse() == '' and ('a\0B'):upper() == 'A\0B' and ('abc'):reverse() == 'cba')
end)
