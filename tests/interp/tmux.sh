#!/bin/sh
# SPDX-License-Identifier: MIT
# The prompt in a real terminal multiplexer: ten scenarios of several features at once, typed as keys, judged by the screen
# that tmux has. tmux.sh QUOLL; skipped by name when there is no tmux.
# labels: full serial
program=$1
if ! command -v tmux >/dev/null; then
	echo 'skipped: the prompt in tmux: tmux is not installed'
	echo '0 passed, 0 failed, 10 skipped'
	exit 0
fi
home=$(mktemp -d)
number=0
socket=
passed=0
failed=0

tm() { tmux -S "$socket" -f /dev/null "$@"; }

# start [argument]: a fresh prompt
start() {
	[ -z "$socket" ] || tm kill-server 2>/dev/null
	number=$((number + 1))
	socket=$home/socket$number # one that ends may still answer
	tm new-session -d -x 100 -y 48 "HOME=$home TERM=${terminal:-screen} QUOLL_PLOT=${plot-text} $program $*"
	shows 'In \[[0-9]*\]: *$' || echo "$scenario: no prompt"
}
screen() { tm capture-pane -p | sed 's/ *$//'; }
keys() { tm send-keys "$@"; }
line() { tm send-keys -l "$1" && tm send-keys Enter; }
# shows PATTERN: waits until a line of the screen has it
shows() {
	for _ in $(seq 200); do
		screen 2>/dev/null | grep -q "$1" && return 0
		tm has-session 2>/dev/null || return 1
		sleep 0.1
	done
	return 1
}
scenario() {
	scenario=$1
	bad=
}
check() {
	shows "$1" || {
		bad=yes
		echo "$scenario: no '$1' on the screen:"
		screen
	}
}
check_not() {
	! screen | grep -q "$1" || {
		bad=yes
		echo "$scenario: '$1' on the screen"
	}
}
end() {
	if [ -z "$bad" ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

scenario 'a session: values, locals, a function of several lines, _'
start
line 'local n = 6'
line 'function times(m)'
line 'return n * m'
line 'end'
line 'times(7)'
check 'Out\[3\]: 42'
line '_ + Out[3]'
check 'Out\[4\]: 84'
end

scenario 'stale inputs are told and run again'
start
line 'w = tensor{1, 2, 3}'
line 's = w:sum():item()'
line 'w:mul_(10);'
check 'stale now: In\[2\]'
line '%run stale'
line 's'
check 'Out\[5\]: 60.0'
line '%stale'
check 'nothing is stale'
end

scenario 'an error, its tensors, the debugger, and on'
start
line 'function f(a) local b = a:t() return b:matmul(b) end'
line 'f(tensor.ones(2, 3))'
check 'b = float32(3, 2)'
line '%debug'
check '^debug:'
line 'b:size()'
check '^3	*  *2'
line 'up'
check '> .*In\[2\]'
line 'quit'
line '1 + 1'
check 'Out\[4\]: 2'
end

scenario 'Ctrl-C in a loop, in a kernel, in a command of the shell; variables stay'
start
line 'kept = 5 a = tensor.ones(1500, 1500)'
line 'while true do end'
sleep 0.5
keys C-c
check 'interrupted'
line 'while true do a:matmul(a) end'
sleep 0.5
keys C-c
check 'In \[4\]: *$'
line '!sleep 60'
sleep 0.5
keys C-c
check '^^Cinterrupted'
line '"kept " .. kept'
check '"kept 5"'
end

scenario 'fallbacks, %explain, %bench'
start
line "q = tensor.randn(64, 64):quantize 'int8'"
line '(q + 1):exp();'
check '1 op fell back to float32; %explain shows why'
line '%explain'
check 'the result is float32 without out='
line '%bench q:relu()'
check 'median time of a call'
line '_.name'
check '"q:relu()"'
end

scenario 'variables through a file into a new session'
start
line "m = nn.Linear(3, 2) q = tensor{1, 2}:quantize 'int8' local k = {1, {2}}"
line "%save $home/all"
check '3 variables in'
start
line "%load $home/all"
check 'k (local) m q'
line 'q:dtype(), k[2][1], m.weight:size()'
check 'Out\[2\]: "int8"	*  *2	*  *2	*  *3'
end

scenario 'kill -9, --restore, %run above'
start
line 'x = 40'
line 'x = x + 2'
line 'x'
check 'Out\[3\]: 42'
kill -9 "$(tm display-message -p '#{pane_pid}')"
sleep 0.3
start --restore
check 'nothing was run'
line 'x'
check 'Out\[4\]: nil'
line '%run above'
line 'x'
check 'Out\[6\]: 42'
end

scenario 'settings are kept, a plot of characters'
start
line '%set precision 1 --save'
check 'saved in'
start
line 'tensor{0.25, 0.5}'
check 'float32(2)  0.2  0.5'
line "plot.line{{1, 4, 9}, title='a title'}"
check 'a title'
rm -f "$home/.config/quoll/settings"
end

scenario '%edit, %history, %run of the result'
printf '#!/bin/sh\necho "y = 7 * 3" > "$1"\n' >"$home/editor"
chmod +x "$home/editor"
VISUAL=$home/editor
export VISUAL
start
line 'y = 1'
line '%edit'
line 'y'
check 'Out\[3\]: 21'
line '%history -n 2'
check '   2: y = 7 \* 3'
line "%history -f $home/notes.lua"
line "y = nil"
line "%run $home/notes.lua"
line 'y'
check 'Out\[8\]: 21'
end

scenario 'help, suggestions, a dumb terminal without escape bytes'
terminal=dumb
start
line 'tesnor{1}'
check "did you mean 'tensor'?"
line '?x:relu'
check 'x:relu'
line '%hsitory'
check "did you mean 'history'?"
line '??nothing_of_that_name'
check 'In \[5\]: *$'
check_not '\[3[0-9]m'
terminal=
end

tm kill-server 2>/dev/null
rm -rf "$home"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
