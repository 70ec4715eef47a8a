-- SPDX-License-Identifier: MIT
-- What shells and man want to know of the command line: completions for bash, zsh and fish, and the manual page (mdoc(7)).
-- The options of a command are the words of its arguments that begin with --.
local shell = {}

-- Options of a command: {name, takes a value}.
local function options_of(command)
	local list = {}
	for name, rest in (command.arguments .. ' '):gmatch '(%-%-[%w-]+)([^%-|]*)' do
		local value = rest:match '^[ =]([%w]+[%w=]*)' -- [--html F]: a value follows
		list[#list + 1] = {name = name, value = value and value ~= '' and not rest:find '^%]' and value or nil}
	end
	return list
end

-- What may stand before the command, with one dash or two.
local function general(program)
	local list = {}
	for _, l in ipairs(program.letters) do
		for name in l.name:gmatch '%-+%a[%a-]*' do
			list[#list + 1] = {name = name, text = l.text, value = l.argument ~= '' and l.argument or nil}
		end
	end
	for _, o in ipairs(program.options) do
		list[#list + 1] = {name = '--' .. o.name, text = o.text, value = o.argument ~= '' and o.argument or nil}
	end
	return list
end

local function names_of(list)
	local names = {}
	for i, item in ipairs(list) do names[i] = item.name end
	return table.concat(names, ' ')
end

---------------------------------------------------------------- bash

local BASH = [=[
# Completion of quoll for bash: written by `quoll doc --bash`; source it, or put it into
# ~/.local/share/bash-completion/completions/quoll
_quoll() {
	local word=${COMP_WORDS[COMP_CWORD]} command= words i
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		%s) command=${COMP_WORDS[i]}; break ;;
		esac
	done
	case $command in
%s
	'') words='%s %s' ;;
	esac
	case $word in
	-*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
	*) COMPREPLY=($(compgen -f -- "$word"))
		[ -n "$command" ] || COMPREPLY+=($(compgen -W '%s' -- "$word")) ;;
	esac
}
complete -o filenames -F _quoll quoll ./quoll
]=]

function shell.bash(program)
	local cases, patterns = {}, {}
	for i, command in ipairs(program.commands) do
		patterns[i] = command.name
		cases[i] = ("\t%s) words='%s' ;;"):format(command.name, names_of(options_of(command)))
	end
	local names = names_of(program.commands)
	return BASH:format(table.concat(patterns, '|'), table.concat(cases, '\n'), names_of(general(program)), names, names)
end

---------------------------------------------------------------- zsh

local function zsh_text(text) return (text:gsub('[%[%]:\\]', '\\%0'):gsub("'", "'\\''")) end

local function zsh_option(o)
	local text = zsh_text(o.text or '')
	return ("'%s[%s]%s'"):format(o.name, text, o.value and (':%s:%s'):format(o.value, o.value == 'F' and '_files' or ' ') or '')
end

local ZSH = [=[
#compdef quoll
# Completion of quoll for zsh: written by `quoll doc --zsh`; a file _quoll in a folder of $fpath.
_quoll() {
	local context state line
	local -a commands
	commands=(
%s
	)
	_arguments -C %s '1: :->first' '*:: :->rest'
	case $state in
	first)
		_describe command commands
		_files ;;
	rest)
		case $words[1] in
%s
		*) _files ;;
		esac ;;
	esac
}
_quoll "$@"
]=]

function shell.zsh(program)
	local commands, cases, options = {}, {}, {}
	for i, o in ipairs(general(program)) do options[i] = zsh_option(o) end
	for i, command in ipairs(program.commands) do
		commands[i] = ("\t\t'%s:%s'"):format(command.name, zsh_text(command.text))
		local words = {}
		for k, o in ipairs(options_of(command)) do words[k] = zsh_option(o) end
		cases[i] = ("\t\t%s) _arguments %s '*:file:_files' ;;"):format(command.name, table.concat(words, ' '))
	end
	return ZSH:format(table.concat(commands, '\n'), table.concat(options, ' '), table.concat(cases, '\n'))
end

---------------------------------------------------------------- fish

local function fish_text(text) return "'" .. text:gsub("[\\']", '\\%0') .. "'" end

function shell.fish(program)
	local out = {'# Completion of quoll for fish: written by `quoll doc --fish`; put it into',
		'# ~/.config/fish/completions/quoll.fish'}
	local function add(condition, o)
		local long, short = o.name:match '^%-%-(.+)$', o.name:match '^%-(%a)$'
		out[#out + 1] = ('complete -c quoll -n %s %s%s -d %s'):format(condition, long and '-l ' .. long or '-s ' .. short,
			o.value and ' -r' or '', fish_text(o.text or ''))
	end
	for _, o in ipairs(general(program)) do add('__fish_use_subcommand', o) end
	for _, command in ipairs(program.commands) do
		out[#out + 1] = ('complete -c quoll -n __fish_use_subcommand -a %s -d %s'):format(command.name, fish_text(command.text))
		for _, o in ipairs(options_of(command)) do
			add(("'__fish_seen_subcommand_from %s'"):format(command.name), {name = o.name, value = o.value, text = ''})
		end
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
