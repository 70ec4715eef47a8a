-- SPDX-License-Identifier: MIT
-- scripts/sweep_slurm.sh and scripts/sweep_parallel.sh, with sbatch, srun and parallel played by small scripts.
local scratch = dofile 'tests/tools/scratch.lua'
local folder, write, read_file = scratch.folder()
local function read(name) return read_file(name) or '' end
os.execute(('mkdir %s/bin %s/place'):format(folder, folder))

local function program(name, text)
	write('bin/' .. name, '#!/bin/sh\n' .. text)
	os.execute(('chmod +x %s/bin/%s'):format(folder, name))
end

-- In folder/place, with folder/bin first on PATH; `quoll` there is this program. The scripts are those of the repository.
local function shell(command)
	local pipe = io.popen(([[here=$PWD; exe=$(readlink /proc/$PPID/exe); cd %s/place && ln -sf "$exe" ../bin/quoll &&
		PATH=%s/bin:$PATH && export PATH here && { %s; } 2>&1]]):format(folder, folder, command))
	local text = pipe:read 'a'
	local _, _, code = pipe:close()
	return text, code
end

-- Array jobs run at once, task by task, each in the environment that Slurm gives it; the log has the options.
program('sbatch', [[
echo "sbatch $*" >>../log
array= dependency=
while :; do
	case $1 in
	--array=*) array=${1#--array=} ;;
	--dependency=*) dependency=$1 ;;
	-*) ;;
	*) break ;;
	esac
	shift
done
SLURM_SUBMIT_DIR=$PWD
export SLURM_SUBMIT_DIR
if [ -n "$array" ]; then
	first=${array%-*} last=${array#*-}
	for i in $(seq "$first" "$last"); do
		[ "$i" != "${LOSE-}" ] || continue
		SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_MIN=$first SLURM_ARRAY_TASK_COUNT=$((last - first + 1)) SLURM_CPUS_PER_TASK=1 \
			sh "$@" >>../tasks 2>&1
	done
	echo '41;cluster'
else
	sh "$@" >>../tasks 2>&1
	echo 42
fi
]])
program('srun', 'echo "srun $*" >>../log\n[ "$1" = --ntasks=1 ] && shift\nexec "$@"\n')

local STUDY = [[local r = sweep.run{name='other', grid={x={1,2,3,4,5}}, run=function(c)
	local f = io.open('ran.txt', 'a') f:write(c.x, '\n') f:close()
	return {y=c.x, threads=tensor.threads()} end}
print(r)]]

local function fresh()
	os.execute(('rm -rf %s/place/* %s/log %s/tasks'):format(folder, folder, folder))
	write('place/study.lua', STUDY)
end

local function rows(file) return sweep.load(folder .. '/place/' .. file) end

it('submits an array of shards and a merge that waits for them', function()
	fresh()
	local text, code = shell 'SBATCH_FLAGS="--partition=short --time=1" sh "$here/scripts/sweep_slurm.sh" 3 study.lua x=1,2,3,4,5,6'
	assert(code == 0 and text == 'shards: job 41; merge into study.db: job 42\n', text .. read 'tasks')
	local log = read 'log'
	assert(log:find 'sbatch %-%-parsable %-%-partition=short %-%-time=1 %-%-array=1%-3 %S+sweep_slurm.sh study.lua x=1,2,3,4,5,6\n', log)
	assert(log:find 'sbatch %-%-parsable %-%-partition=short %-%-time=1 %-%-dependency=afterany:41 %S+ %-%-merge\n', log)
	assert(log:find 'srun %-%-ntasks=1 %S*quoll sweep study.lua x=1,2,3,4,5,6 %-%-shard 2/3 %-%-db study.2of3.db\n', log)
	assert(read 'tasks':find 'study.db: 6 trials from 3 files, 6 done, 6 new here, 0 conflicts', read 'tasks')
	assert(table.concat(rows 'study.db':column 'x', ' ') == '1 2 3 4 5 6' and rows 'study.db'[1].threads == 1)
end)

it('runs only what is missing when it is called again', function()
	fresh()
	shell 'LOSE=2 sh "$here/scripts/sweep_slurm.sh" 2 study.lua'
	assert(read 'tasks':find 'study.2of2.db is missing\nstudy.db: 3 trials from 1 files', read 'tasks')
	assert(read 'place/ran.txt' == '1\n3\n5\n')
	shell 'sh "$here/scripts/sweep_slurm.sh" 2 study.lua'
	assert(read 'place/ran.txt' == '1\n3\n5\n2\n4\n' and #rows 'study.db' == 5)
end)

it('counts from the first index of an array', function()
	fresh()
	for id = 0, 1 do
		shell(('SLURM_ARRAY_TASK_ID=%d SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_COUNT=2 sh "$here/scripts/sweep_slurm.sh" study.lua'):format(id))
	end
	assert(#rows 'study.1of2.db' == 3 and #rows 'study.2of2.db' == 2)
end)

it('says what is wrong with a call', function()
	fresh()
	for _, script in ipairs {'sweep_slurm.sh', 'sweep_parallel.sh'} do
		local function refused(arguments)
			local text, code = shell(('sh "$here/scripts/%s" %s'):format(script, arguments))
			return code == 1 and text:match('^' .. script:gsub('%p', '%%%0') .. ': ([^\n]*)')
		end
		assert(refused '':find '^usage: ')
		assert(refused '0 study.lua' == "wanted a number of shards, got '0'")
		assert(refused '2x study.lua' == "wanted a number of shards, got '2x'")
		assert(refused '2 absent.lua' == 'absent.lua: no such file')
	end
	assert(shell 'HOSTS=: sh "$here/scripts/sweep_parallel.sh" 2 study.lua':find 'wanted names of ssh, got :')
	assert(shell 'QUOLL=/no/quoll sh "$here/scripts/sweep_parallel.sh" 2 study.lua':find 'no such program; set QUOLL')
	assert(shell 'sh "$here/scripts/sweep_slurm.sh" --merge':find 'QUOLL_SWEEP_FILES: is not set')
end)

-- Takes the arguments that the script uses and runs the command for each line of stdin.
program('parallel', [[
echo "parallel $*" >>../log
while :; do
	case $1 in
	--line-buffer | --cleanup) shift ;;
	--*) shift 2 ;;
	*) break ;;
	esac
done
status=0
while read -r i; do
	sh -c "$(printf %s "$1" | sed "s/{}/$i/g")" </dev/null || status=$((status + 1))
done
exit $status
]])

it('runs shards by parallel and merges them', function()
	fresh()
	local code
	local text = shell [[sh "$here/scripts/sweep_parallel.sh" 2 study.lua x=1,2 "w='1'" ; true]]
	assert(text:find "w=: wanted one of the parameters x", 'arguments with quotes arrive whole: ' .. text)
	text, code = shell 'sh "$here/scripts/sweep_parallel.sh" 2 ./study.lua x=1,2,3'
	assert(code == 0 and text:find './study.db: 3 trials from 2 files, 3 done, 3 new here, 0 conflicts\n$', text)
	assert(read 'log':find 'parallel %-%-jobs 1 %-%-joblog ./study.joblog %-%-line%-buffer %-%-tagstring shard {} QUOLL_THREADS=', read 'log')
	text, code = shell 'HOSTS=a,b QUOLL_DATA=/d JOBS=2 sh "$here/scripts/sweep_parallel.sh" 2 study.lua'
	assert(code == 0 and text:find 'study.db: 5 trials from 2 files, 5 done, 2 new here', text)
	assert(read 'log':find('%-%-jobs 2 .*%-%-sshlogin a,b %-%-workdir %.%.%. %-%-cleanup %-%-transferfile study.{}of2.db %-%-return study.{}of2.db ' ..
		'%-%-env QUOLL_DATA '), read 'log')
	assert(select(2, read 'place/ran.txt':gsub('\n', '')) == 5)
end)

it('hands a failure on, and merges all the same', function()
	fresh()
	write('place/study.lua', STUDY:gsub('return {y', 'assert(c.x ~= 4) return {y'))
	local text, code = shell 'sh "$here/scripts/sweep_parallel.sh" 2 study.lua'
	assert(code == 1 and text:find 'study.db: 5 trials from 2 files, 4 done', text)
end)
