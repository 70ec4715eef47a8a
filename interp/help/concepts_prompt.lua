-- SPDX-License-Identifier: MIT
-- Help on the prompt itself.
local _, internal = ...
local doc = internal.import 'interp/prelude/base'.doc

local function concept(name, text, example)
	doc {name = name, kind = 'concept', text = text, example = example}
end

concept('prompt', [[Inputs are numbered: In[3] is the text, Out[3] and _ the value, which is shown unless the input
ends in ; . Local variables remain visible in later inputs. In keeps 1000 inputs, Out 100 values; tensors above 1 MiB are kept only
while something else refers to them. A line that begins with
% ? ! or = is not Lua: help 'magics'. A line below an input reports ops that fell back to float32
(%explain shows the reason),
more than a second or 64 MiB of tensors, and inputs that became stale. Ctrl-C interrupts, Ctrl-D exits.

On a terminal every input and its output is recorded: help 'journal'. %set changes how values are shown: help
'settings'.]],
	[[print(io.popen([=[echo "6 * 7" | "/proc/$PPID/exe" -i]=]):read 'a')  --> In [1]: Out[1]: 42
--> In [2]: ]])

concept('magics', [=[Commands of the prompt that begin with %, and other inputs that are not Lua. %magics lists them. Each is a
line of its own; lines of Lua may precede and follow it, but it may not be inside a block or bracket. Lines run in order, and the
value of the last one is shown. %time, %timeit and %bench take as many lines as complete their code, %%time and the like all
following lines.

  %time code  %timeit code  %bench code   once, repeatedly, as a report in Out
                           %timeit -n 100 -r 5 code: 5 samples of 100 calls;
                           only %time keeps the local variables of the code
  %explain                 ops of the last input: kernels, paths, reasons
  %who  %forget name  %reset -f  %save file  %load file      the variables
  %run file | 3 | 3-5 | above | stale     reruns under its number; a notebook
                           (-- %% cells, .ipynb) runs cell by cell
  %edit [n | file]  %history [text] [-n 20] [-o] [-f file]
                           -F: replaces a file; -g: inputs of all sessions
  %cd [folder | -]  %pwd  %ls [folder | *.lua]    where files are
  %sh command  %bash command              %%sh, %%bash: all lines below
  %help [name]             as ?name
  %stale [n]  %journal     what changed; recorded sessions
  %debug                   the variables where the last error was raised
  %set [name [value]] [--save]            help 'settings'
  ?name  name?  ??name  ?*part*  !command  $ command  =expression

For a variable of yours, ?name shows dtype, shape, bytes, spec and scales of a tensor, the fields of a table
(?cfg.lr for one of them), and the parameters, place and comment of a function; ??name shows its source.

Text copied with its prompts, In [3]: or >>>, can be pasted as it is: prompts and outputs are removed.
Other commands of IPython print what to type instead.

%save writes a .safetensors file: tensors with their quantization, models, optimizers, specs, tables with shared
references, strings,
numbers; views become separate tensors, gradients are not saved. It lists what it cannot save: functions, and
models that contain them. %load restores
variables, locals as locals, and runs no code from the file. %save does not replace other files, such as the weights of a
model.

!command runs in the terminal: Ctrl-C ends the command, not the prompt; its output is not recorded, but in a notebook it is kept
with the cell. A nonzero exit status is reported and stops nothing. %edit uses $VISUAL, $EDITOR
or vi.

%debug keeps the values of the failed input until the next error, or until %debug drop.]=],
	[[x = tensor{1, 2}
print(x:sum():item())  --> 3.0]])

concept('stale', [[An input is stale when something that it read has changed since: a variable has another value, a tensor
was modified in place, a table or a model
has other contents, a function that it called was replaced or reads something else, or the value comes from a
stale input.
%stale lists stale inputs with the reason, %stale 4 shows what In[4] read and wrote, %run stale reruns them in order.

Not stale: an input that only defined a function; one that reassigned everything it read; one whose variables were
all reassigned by later
inputs, or that was entered again; one whose tensor later inputs modified further (x:add_(1), then x:mul_(2)).

Reads are found in the compiled code: fields, parameters and inner locals of the same name do not count.
Tables are compared by
contents (the first 20000 entries), C objects other than tensors by identity. Reads of variables
by a computed
name (_G[name]) and reads by methods of objects are not detected.]],
	[[x = tensor{1, 2}
y = x:sum():item()
x:mul_(2)        -- at the prompt: stale now: the input that made y
print(y, x:sum():item())  --> 3.0 6.0]])

concept('journal', [[On a terminal every input with its output, values and errors is written to the session's
file before the next prompt appears:
$XDG_STATE_HOME/quoll/journal/ (default ~/.local/state), readable by you only (0600). A crash, a closed window or
kill -9 loses nothing that was
shown; the file is synced after each input, so a power failure loses at most the running one.

`quoll --restore` shows the last session that did not exit normally and puts its inputs into In without running them: %run
above runs them, except inputs that failed, were interrupted or did not finish, which it lists;
%run 3 runs one. `quoll --restore file` takes another session, %journal lists them. Output that child processes write
directly to the terminal
is not recorded; per input at most 1 MiB, per session at most 32 MiB of output are; files are deleted after 30 days, 200
sessions or 256 MiB.

--journal file records to that file (also a session from a pipe), --journal none (or QUOLL_JOURNAL=none) records nothing.]],
	[[x = 'inputs of the prompt are recorded, those of scripts are not'
print(#x)  --> 59]])

concept('settings', [[%set lists the settings of the prompt with their values, %set name value changes one, %set name
value --save stores all in
$XDG_CONFIG_HOME/quoll/settings (default ~/.config), which a prompt on a terminal reads at start.

  colours auto|on|off      editing_mode auto|emacs|vi  footer auto|on|off
  precision 0 to 16        stale auto|on|off          width 0 or 20 to 1000
  plot auto|kitty|iterm|sixel|text|none]],
	[[print(tensor{1/3})  --> float32(1)  0.3333]])
