-- SPDX-License-Identifier: MIT
-- A disk that is full (a tmpfs of 1 MB) and a home that is read-only: everything that writes says so in one line, what was
-- there before stays, nothing half-written is left, and the next call with room does the rest. Needs mounts of its own
-- (unshare), which may not be allowed.
local internal = debug.getregistry()['quoll.internal']
local program = dofile 'tests/tools/scratch.lua'.program
local folder = os.tmpname()
os.execute(('rm %s && mkdir %s'):format(folder, folder))
local _ <close> = setmetatable({}, {__close = function() os.execute('rm -r ' .. folder) end})

-- Runs the script in an empty file system of 1 MB, which is also the home; $Q is the program, `fill` leaves 0 bytes.
local function within(script)
	local file = folder .. '/script'
	internal.write_file(file, ([[
mount -t tmpfs -o size=1m,mode=755 none %s/disk && cd %s/disk || exit 99
export HOME=$PWD Q=%s TERM=dumb
unset XDG_STATE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME JUPYTER_DATA_DIR QUOLL_JOURNAL
fill() { cat /dev/zero >filler 2>/dev/null; true; }
]]):format(folder, folder, program) .. script)
	os.execute(('mkdir -p %s/disk'):format(folder))
	local pipe = io.popen(('unshare %s sh %s 2>&1'):format(os.execute 'test "$(id -u)" = 0' and '-m' or '-rm', file))
	local text = pipe:read 'a'
	local _, _, code = pipe:close()
	return text, code
end

if select(2, within 'exit 0') ~= 0 then skip 'no file system can be mounted here' end

-- Each of the patterns must be found, in their order.
local function has(text, ...)
	local at = 1
	for _, pattern in ipairs {...} do
		local _, to = text:find(pattern, at)
		assert(to, ('no %q behind byte %d of: %s'):format(pattern, at, text))
		at = to + 1
	end
	assert(not text:find 'quoll/interp/', text)
end

describe('a file system that is read-only', function()
	it('costs no results of a sweep', function()
		has(within [[
printf "sweep.run{name='s', grid={a={1, 2}}, run=function(c) return {y=c.a * 10} end}\n" >s.lua
$Q sweep s.lua --db r.db >/dev/null; mount -o remount,ro . || true
$Q sweep report r.db; echo code $?; $Q -e "print(#sweep.load 'r.db')"; $Q sweep s.lua --db r.db; echo code $?]],
			'1 +10', '2 +20', 'code 0\n', '2\n', 'sweep: r.db: [^\n]*%(Read%-only file system%)', 'code 1')
	end)
end)

describe('a full disk', function()
	it('costs a notebook no output, and what was kept stays', function()
		has(within [[
printf 'print("first")\n' >a.lua && $Q run a.lua --html a.html && cp a.out.json before.json && cp a.html before.html
printf 'print(("x"):rep(100000))\nprint "end"\n' >a.lua; fill
$Q run a.lua --html a.html --md a.md >/dev/full; echo code $?
$Q run a.lua --html a.html --md a.md | tail -n 1; $Q run a.lua --html a.html >/dev/null 2>&1; echo code $?
cmp a.out.json before.json && cmp a.html before.html && echo same; ls; rm filler; $Q run a.lua --html a.html | tail -n 1; cmp a.html before.html]],
			'first\n', 'code 1\n', 'the outputs are not kept: [^\n]*No space left on device\n', 'a.html: [^\n]*No space left on device\n',
			'a.md: [^\n]*No space left on device\n', 'end\ncode 1\nsame\n',
			'a.html\na.lua\na.out.json\nbefore.html\nbefore.json\nfiller\nend\n', 'a.html before.html differ')
	end)
	it('costs a conversion nothing but the result', function()
		has(within [[
printf 'print(1)\n' >a.lua; fill; $Q convert a.lua a.ipynb; echo code $?; ls; rm filler; $Q convert a.lua a.ipynb; echo code $?]],
			'a.ipynb: [^\n]*No space left on device\ncode 1\na.lua\nfiller\ncode 0')
	end)
	it('is named by a sweep, whose results can still be read', function()
		has(within [[
printf "sweep.run{name='s', grid={a={1, 2}}, run=function(c) return {y=c.a * 10} end}\n" >s.lua
$Q sweep s.lua --db r.db >/dev/null; echo code $?; fill
$Q sweep report r.db; echo code $?
printf "sweep.run{name='s', grid={a={1, 2, 3}}, run=function(c) return {y=c.a * 10} end}\n" >/tmp/quoll-disk-$$.lua
$Q sweep /tmp/quoll-disk-$$.lua --db r.db 2>&1 | head -n 1; rm filler /tmp/quoll-disk-$$.lua
$Q sweep report r.db | grep -c '[12]0'; ls]],
			'code 0\n', '1 +10', '2 +20', 'code 0\n', 'No space left on device', '2\n', 'r.db\ns.lua\n')
	end)
	it('costs the prompt neither variables nor what was saved', function()
		has(within [[
echo 'x = tensor{1, 2, 3}
%save s x
os.execute "cat /dev/zero >filler 2>/dev/null"
x = tensor.ones(500, 500)
%save s x
tensor.save("t.npy", x)
report{{a = 1}}:save "r.csv"
%history -f h.lua
%set precision 2 --save
x:size()
os.remove "filler"
x = nil
%load s
x:size()' | $Q -i; ls -A]],
			'1 variable in s.safetensors', 's.safetensors\'?: [^\n]*No space left on device', 't.npy\'?: [^\n]*No space left', 'r.csv: [^\n]*No space left',
			'h.lua: [^\n]*No space left', 'No space left', 'Out%[10%]: 500\t500', '1 variable of s.safetensors', 'Out%[14%]: 3\n', 's.safetensors\n$')
	end)
	it('costs the journal only, told once', function()
		local text = within [[
fill; printf 'x = 6\nx * 7\nprint "on"\n' | $Q --journal $HOME/j -i; rm filler; echo '1 + 1' | $Q --journal $HOME/k -i; ls -A]]
		has(text, 'Out%[2%]: 42\n', 'on\n', 'Out%[1%]: 2\n', 'k\n$')
		assert(select(2, text:gsub('No space left', '')) == 1, text)
	end)
	it('costs a sweep no finished trial', function()
		has(within [[
cat >s.lua <<'END'
sweep.run{name='s', grid={x={1, 2, 3, 4}}, run=function(c)
	if c.x == 3 and not os.getenv 'ROOM' then os.execute 'cat /dev/zero >filler 2>/dev/null' end
	return {v=c.x * c.x, text=('t'):rep(20000)}
end}
END
$Q sweep s.lua; echo code $?; rm filler; ROOM=1 $Q sweep s.lua; echo code $?; $Q -e 'for _, r in ipairs(sweep.load "s.db") do print(r.x, r.v) end']],
			'quoll: sweep: s.db: database or disk is full\n', 'code [1-9]', '[23] of 4 trials were done before\n', '4 of 4 trials are done', 'code 0\n1\t1\n2\t4\n3\t9\n4\t16\n')
	end)
end)

describe('a read-only home', function()
	it('lets the prompt work, and says what it cannot keep', function()
		has(within [[
printf 'print(5)\n' >a.lua; mount -o remount,ro none .
echo 'x = 2
%set precision 2 --save
%save s x
x + 40' | $Q -i; $Q run a.lua; echo code $?; $Q convert a.lua b.ipynb; echo code $?; $Q kernel install; echo code $?; $Q doctor >/dev/null; echo code $?]],
			'Read%-only file system', 's.safetensors\'?: [^\n]*Read%-only', 'Out%[4%]: 42\n', '5\n', 'the outputs are not kept: [^\n]*Read%-only', 'code 1\n',
			'b.ipynb: [^\n]*Read%-only', 'code 1\n', 'Read%-only file system', 'code 1\n', 'code 0\n')
	end)
	it('ends a sweep before anything ran', function()
		local text = within [[
echo "sweep.run{name='s', grid={x={1}}, run=function(c) print('RA' .. 'N') return {v=1} end}" >s.lua; mount -o remount,ro none .; $Q sweep s.lua; echo code $?]]
		has(text, 's.db: ', 'code 1')
		assert(not text:find 'RAN', text)
	end)
end)
