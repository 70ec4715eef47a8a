-- SPDX-License-Identifier: MIT
-- What shells and man want to know of the command line: completions for bash, zsh and fish, and the manual page (mdoc(7)).
-- Subcommands and their options come from the table behind --help (interp/doc/subcommands.lua).
local _, internal = ...
local subcommands = internal.import 'interp/doc/subcommands'
local shell = {}

-- Options of a subcommand: {name, text, value = its argument, values = its words, or 'FILE'}.
local function options_of(entry)
	local options = {}
	for i, o in ipairs(entry.options) do options[i] = {name = o[1], value = o[2], text = o[3], values = o[4]} end
	return options
end

-- What may precede the command, with one dash or two. An option's text that ends in ": a b c" lists its values.
local function general(program)
	local list = {}
	for _, l in ipairs(program.letters) do
		for name in l.name:gmatch '%-+%a[%a-]*' do
			list[#list + 1] = {name = name, text = l.text, value = l.argument ~= '' and l.argument or nil}
		end
	end
	for _, o in ipairs(program.options) do
		list[#list + 1] = {name = '--' .. o.name, text = o.text, value = o.argument ~= '' and o.argument or nil,
			values = o.argument ~= '' and o.text:match '^[^:;]+: ([%w ]+)$' or nil}
	end
	return list
end

local function names_of(list)
	local names = {}
	for i, item in ipairs(list) do names[i] = item.name end
	return table.concat(names, ' ')
end

-- The words of a command: `report merge diff` of sweep, `install uninstall` of kernel.
local function words_of(entry) return table.concat(subcommands.below(entry.name), ' ') end

---------------------------------------------------------------- bash

local BASH = [=[
# Completion of quoll for bash: written by `quoll doc --bash`; source it, or put it into
# ~/.local/share/bash-completion/completions/quoll
_quoll_files() { # one a line: names may hold blanks
	mapfile -t COMPREPLY < <(compgen -f -- "$1")
}
_quoll() {
	local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD-1]} command= words= values= i
	[ "$word" != = ] || word=
	[ "$last" != = ] || last=${COMP_WORDS[COMP_CWORD-2]}
	for ((i = 1; i < COMP_CWORD; i++)); do
		case "$command ${COMP_WORDS[i]}" in
		@COMMANDS@) command="$command ${COMP_WORDS[i]}" ;;
		esac
	done
	case "$command $last" in
@VALUES@
	esac
	if [ "$values" = FILE ]; then
		_quoll_files "$word"
		return
	elif [ -n "$values" ]; then
		COMPREPLY=($(compgen -W "$values" -- "$word"))
		return
	fi
	case $command in
@OPTIONS@
	esac
	case $word in
	-*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
	*)
		_quoll_files "$word"
		COMPREPLY+=($(compgen -W "$values" -- "$word")) ;;
	esac
}
complete -o filenames -F _quoll quoll ./quoll
]=]

-- The case that says what follows an option; `command` is empty before the command, else begins with a blank.
local function bash_values(cases, command, options)
	for _, o in ipairs(options) do
		if o.value then
			cases[#cases + 1] = ("\t'%s %s') values='%s' ;;"):format(command, o.name, o.values or 'FILE')
		end
	end
end

local function bash_words(command, words, values)
	return ("\t'%s') words='%s' values='%s' ;;"):format(command, words, values)
end

function shell.bash(program)
	local patterns, values, options = {}, {}, {}
	bash_values(values, '', general(program))
	options[1] = bash_words('', names_of(general(program)), names_of(program.commands))
	for i, entry in ipairs(subcommands.list) do
		local own = options_of(entry)
		patterns[i] = ("' %s'"):format(entry.name)
		bash_values(values, ' ' .. entry.name, own)
		options[#options + 1] = bash_words(' ' .. entry.name, names_of(own), words_of(entry))
	end
	return (BASH:gsub('@(%u+)@', {COMMANDS = table.concat(patterns, '|'), VALUES = table.concat(values, '\n'),
		OPTIONS = table.concat(options, '\n')}))
end

---------------------------------------------------------------- zsh

local function zsh_text(text) return (text:gsub('[%[%]:\\]', '\\%0'):gsub("'", "'\\''")) end

local function zsh_action(o) return o.values and o.values ~= 'FILE' and '(' .. o.values .. ')' or '_files' end

local function zsh_option(o)
	return ("'%s[%s]%s'"):format(o.name, zsh_text(o.text or ''), o.value and (':%s:%s'):format(zsh_text(o.value), zsh_action(o)) or '')
end

local function zsh_options(list)
	local words = {}
	for i, o in ipairs(list) do words[i] = zsh_option(o) end
	return table.concat(words, ' ')
end

local ZSH = [=[
#compdef quoll
# Completion of quoll for zsh: written by `quoll doc --zsh`; a file _quoll in a folder of $fpath.
_quoll() {
	local context state line command
	local -a commands
	commands=(
@COMMANDS@
	)
	_arguments -C @OPTIONS@ '1: :->first' '*:: :->rest'
	case $state in
	first)
		_describe command commands
		_files ;;
	rest)
		command=$words[1]
		case "$words[1] $words[2]" in
		@TWO@) (( CURRENT > 2 )) && command="$words[1] $words[2]" && shift words && (( CURRENT-- )) ;;
		esac
		case $command in
@CASES@
		*) _files ;;
		esac ;;
	esac
}
_quoll "$@"
]=]

function shell.zsh(program)
	local commands, cases, two = {}, {}, {}
	for i, command in ipairs(program.commands) do commands[i] = ("\t\t'%s:%s'"):format(command.name, zsh_text(command.text)) end
	for i, entry in ipairs(subcommands.list) do
		local words = words_of(entry)
		if entry.name:find ' ' then two[#two + 1] = ("'%s'"):format(entry.name) end
		cases[i] = ("\t\t'%s') _arguments %s %s'*:file:_files' ;;"):format(entry.name, zsh_options(options_of(entry)),
			words ~= '' and ("'1:command or file:{_alternative \"words:command:(%s)\" \"files:file:_files\"}' "):format(words) or '')
	end
	return (ZSH:gsub('@(%u+)@', {COMMANDS = table.concat(commands, '\n'), OPTIONS = zsh_options(general(program)),
		TWO = table.concat(two, '|'), CASES = table.concat(cases, '\n')}))
end

---------------------------------------------------------------- fish

local function fish_text(text) return "'" .. text:gsub("[\\']", '\\%0') .. "'" end

-- When a command of one or two words has been typed.
local function fish_condition(name)
	local first, second = name:match '^(%S+) (%S+)$'
	if second then return ("'__fish_seen_subcommand_from %s; and __fish_seen_subcommand_from %s'"):format(first, second) end
	local below = table.concat(subcommands.below(name), ' ')
	return ("'__fish_seen_subcommand_from %s%s'"):format(name, below ~= '' and '; and not __fish_seen_subcommand_from ' .. below or '')
end

function shell.fish(program)
	local out = {'# Completion of quoll for fish: written by `quoll doc --fish`; put it into',
		'# ~/.config/fish/completions/quoll.fish'}
	local function add(condition, o)
		local long, short = o.name:match '^%-%-(.+)$', o.name:match '^%-(%a)$'
		local words = o.values and o.values ~= 'FILE' and " -f -a '" .. o.values .. "'" or ''
		out[#out + 1] = ('complete -c quoll -n %s %s%s%s -d %s'):format(condition, long and '-l ' .. long or '-s ' .. short,
			o.value and ' -r' or '', words, fish_text(o.text or ''))
	end
	for _, o in ipairs(general(program)) do add('__fish_use_subcommand', o) end
	for _, command in ipairs(program.commands) do
		out[#out + 1] = ('complete -c quoll -n __fish_use_subcommand -a %s -d %s'):format(command.name, fish_text(command.text))
	end
	for _, entry in ipairs(subcommands.list) do
		local first, second = entry.name:match '^(%S+) (%S+)$'
		if second then
			out[#out + 1] = ('complete -c quoll -n %s -a %s -d %s'):format(fish_condition(first), second,
				fish_text(entry.text:gsub('%s+', ' '):match '^.-%.'))
		end
		for _, o in ipairs(options_of(entry)) do add(fish_condition(entry.name), o) end
	end
	return table.concat(out, '\n') .. '\n'
end

---------------------------------------------------------------- the manual page

-- Text of roff in short lines: a point or quote must not begin one, backslashes and dashes are written out.
local function roff(text)
	local lines, line = {}, ''
	for word in text:gmatch '%S+' do
		if #line + #word > 66 then lines[#lines + 1], line = line, '' end
		line = line == '' and word or line .. ' ' .. word
	end
	lines[#lines + 1] = line
	text = table.concat(lines, '\n')
	text = text:gsub('\\', '\\e'):gsub('%-', '\\-'):gsub('`([^`]*)`', '\\fB%1\\fP')
	return (('\n' .. text):gsub('\n([.\'])', '\n\\&%1'):sub(2))
end

local MAN = [[
.\" SPDX-License-Identifier: MIT
.\" Written by quoll doc --man.
.Dd %s
.Dt QUOLL 1
.Os
.Sh NAME
.Nm quoll
.Nd quantization-aware tensors in Lua
.Sh SYNOPSIS
.Nm quoll
.Op Ar options
.Nm quoll
.Op Ar options
.Ar file.lua
.Op Ar argument ...
.Nm quoll
.Op Ar options
.Ar command
.Op Ar argument ...
.Sh DESCRIPTION
Quoll embeds Lua 5.4 and gives it tensors that know how they are quantized.
Without a file or command it opens a prompt, which explains every name: type
.Ql help .
A file is run as a Lua script, and
.Ql \-
is the standard input.
.Sh OPTIONS
.Bl -tag -width Ds
%s
.El
.Sh COMMANDS
.Bl -tag -width Ds
%s
.El
.Sh ENVIRONMENT
.Bl -tag -width Ds
%s
.It Ev NO_COLOR
No colours on the terminal.
.El
.Sh EXIT STATUS
0; 1 after an error; 130 after Ctrl\-C; or what
.Ql os.exit
says.
]]

local function item(name, value, text)
	return ('.It Sy %s%s\n%s'):format(roff(name), value and value ~= '' and ' Ar ' .. roff(value):gsub('\n', '\n.Ar '):gsub('%]\n', ']\\&\n'):gsub('%]$', ']\\&') or '',
		roff(text:sub(1, 1):upper() .. text:sub(2)) .. '.')
end

function shell.man(program)
	local options, commands, variables = {}, {}, {}
	for i, l in ipairs(program.letters) do options[i] = item(l.name:gsub(', ', '\\ or '), l.argument, l.text) end
	for _, o in ipairs(program.options) do
		options[#options + 1] = item('--' .. o.name, o.argument, o.text)
		variables[#variables + 1] = ('.It Ev %s\nThe same as\n.Sy \\-\\-%s .'):format(o.variable, o.name)
	end
	for i, command in ipairs(program.commands) do commands[i] = item(command.name, command.arguments, command.text) end
	return MAN:format((os.date '%B %d, %Y':gsub(' 0', ' ')), table.concat(options, '\n'), table.concat(commands, '\n'), table.concat(variables, '\n'))
end

return shell
