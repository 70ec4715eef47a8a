-- SPDX-License-Identifier: MIT
-- quoll kernel: the kernelspec, and connection files that are refused. What a running kernel does is tested in jupyter/.
local program = '"/proc/$PPID/exe"'

-- Output with errors, and the exit code.
local function run(arguments, before)
	local pipe = io.popen(('%s %s %s 2>&1'):format(before or '', program, arguments))
	local text = pipe:read 'a'
	return text, select(3, pipe:close())
end

local read = dofile 'tests/tools/scratch.lua'.read

local folder = os.tmpname()
os.remove(folder)

-- Without libzmq5 nothing is installed (the last but one case).
local function want_zmq()
	local text = run 'doctor'
	if not text:find 'libzmq 4' then skip 'there is no libzmq5' end
end

it('installs a kernelspec below a prefix and removes it again', function()
	want_zmq()
	local text, code = run(('kernel install --prefix %s'):format(folder))
	local spec = folder .. '/share/jupyter/kernels/quoll'
	assert(code == 0 and text == 'installed ' .. spec .. '\n', text)
	local json = read(spec .. '/kernel.json')
	assert(json:find('"argv": ["/', 1, true) and json:find('"kernel", "{connection_file}"]', 1, true), json)
	assert(json:find('"language": "lua"', 1, true) and json:find('"display_name": "Quoll"', 1, true), json)
	assert(read(spec .. '/logo-svg.svg'):find '^<svg')
	assert(select(2, run(('kernel install --prefix %s'):format(folder))) == 0, 'a second time')
	text, code = run(('kernel uninstall --prefix %s'):format(folder))
	assert(code == 0 and text == 'removed ' .. spec .. '\n' and not read(spec .. '/kernel.json'), text)
	text, code = run(('kernel uninstall --prefix %s'):format(folder))
	assert(code == 1 and text:find 'No such file or directory', text)
end)
it('installs for a user, under another name', function()
	want_zmq()
	local text = run('kernel install --user --name quoll-dev', ('JUPYTER_DATA_DIR=%s/data'):format(folder))
	assert(text == ('installed %s/data/kernels/quoll-dev\n'):format(folder), text)
	assert(read(folder .. '/data/kernels/quoll-dev/kernel.json'):find 'Quoll %(quoll%-dev%)')
	text = run('kernel install', ('env -u JUPYTER_DATA_DIR XDG_DATA_HOME=%s/share'):format(folder))
	assert(text == ('installed %s/share/jupyter/kernels/quoll\n'):format(folder), text)
	text = run('kernel install', ('env -u JUPYTER_DATA_DIR -u XDG_DATA_HOME HOME=%s'):format(folder))
	assert(text == ('installed %s/.local/share/jupyter/kernels/quoll\n'):format(folder), text)
end)
it('leaves the kernelspecs of others alone', function()
	local other = folder .. '/share/jupyter/kernels/other'
	os.execute(('mkdir -p %s && echo \'{"argv": ["python", "-m", "x"], "language": "python"}\' >%s/kernel.json'):format(
		other, other))
	local text, code = run(('kernel uninstall --prefix %s --name other'):format(folder))
	assert(code == 1 and text:find 'no kernelspec of this program' and read(other .. '/kernel.json'), text)
end)
it('says what is wrong with a call', function()
	assert(run('kernel'):find 'wanted install, uninstall or a connection file, got nothing')
	assert(run('kernel install --prefx x'):find "kernel install: %-%-prefx: no such option; did you mean '%-%-prefix'%?")
	assert(run('kernel install --prefix'):find '%-%-prefix: wanted a value, got none')
	assert(run("kernel install --name '../x'"):find "wanted letters, digits and %- %. _, got '%.%./x'")
	want_zmq()
	assert(run('kernel install --prefix /dev/null'):find '/dev/null.*: Not a directory')
end)
it('refuses connection files that it cannot trust', function()
	local file = os.tmpname()
	local function with(text)
		local handle = io.open(file, 'w')
		handle:write(text)
		handle:close()
		local out, code = run('kernel ' .. file)
		assert(code == 1, out)
		return out
	end
	local ports = '"shell_port":1025,"iopub_port":1026,"stdin_port":1027,"control_port":1028,"hb_port":1029'
	assert(with '{}':find "ip: wanted an address of this machine %(127.0.0.1%), got none")
	assert(with('{"ip":"0.0.0.0","key":"k",' .. ports .. '}'):find "got '0%.0%.0%.0'")
	assert(with('{"ip":"127.0.0.1","key":"",' .. ports .. '}'):find 'unsigned messages are not accepted')
	assert(with 'x':find 'wanted a connection file')
	os.remove(file)
	assert(run('kernel ' .. file):find 'No such file')
	assert(run('--kernel ' .. file):find 'wanted one of ref', 'no file, no level')
end)
it('names the package when there is no libzmq', function()
	local file = os.tmpname()
	local handle = io.open(file, 'w')
	handle:write('{"ip":"127.0.0.1","key":"k","shell_port":1025,"iopub_port":1026,"stdin_port":1027,',
		'"control_port":1028,"hb_port":1029}')
	handle:close()
	for _, option in ipairs {'kernel', '--kernel'} do
		local text, code = run(option .. ' ' .. file, 'QUOLL_ZMQ=/nowhere/libzmq.so')
		assert(code == 1 and text:find '/nowhere/libzmq.so' and text:find 'apt%-get install .* libzmq5', text)
	end
	assert(run(('kernel %s'):format(file), 'QUOLL_ZMQ=libc.so.6'):find 'is no libzmq of version 4')
	os.remove(file)
	local text, code = run(('kernel install --prefix %s/none'):format(folder), 'QUOLL_ZMQ=/nowhere/libzmq.so')
	assert(code == 1 and text:find '^quoll: kernel install: nothing was installed: /nowhere/libzmq.so' and
		text:find 'apt%-get install .* libzmq5\n$', text)
	assert(not read(folder .. '/none/share/jupyter/kernels/quoll/kernel.json'))
	assert(select(2, run(('kernel uninstall --prefix %s/none'):format(folder), 'QUOLL_ZMQ=/nowhere/libzmq.so')) == 1)
	assert(run('doctor', 'QUOLL_ZMQ=/nowhere/libzmq.so'):find 'kernel +none')
end)
it('shows values without a front end as text', function()
	assert(jupyter.display(3, {id = 'x'}) == 3 and jupyter.update('x', 4) == 4 and not jupyter.clear())
	assert(not pcall(jupyter.update, 3) and not pcall(jupyter.display, 1, {idd = 'x'}))
end)
os.execute('rm -r ' .. folder)
