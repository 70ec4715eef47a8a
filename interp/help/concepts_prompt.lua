-- SPDX-License-Identifier: MIT
-- Help on what the prompt does by itself.
local _, internal = ...
local doc = internal.import 'interp/prelude/base'.doc

local function concept(name, text, example)
	doc {name = name, kind = 'concept', text = text, example = example}
end

concept('prompt', [[Inputs are numbered: In[3] is the text, Out[3] and _ the value, which is shown unless the input
ends in ; . Local variables live on
from input to input. In keeps 1000 inputs, Out 100 values, tensors above 1 MiB only as long as something else holds
them. A line that begins with
% ? ! or = is no Lua: help 'magics'. Below an input stands what a user must know: ops that fell back to float32
(%explain tells why),
more than a second or 64 MiB of tensors, inputs that became stale. Ctrl-C stops what runs, Ctrl-D leaves.

On a terminal every input and its output is recorded: help 'journal'. %set changes how things are shown: help
'settings'.]],
	[[print(io.popen([=[echo "6 * 7" | "/proc/$PPID/exe" -i]=]):read 'a')  --> In [1]: Out[1]: 42
--> In [2]: ]])

concept('magics', [=[Words of the prompt that begin with %, and other inputs that are no Lua. %magics lists them. Each is a
line of its own and may stand between lines of Lua, but not within a block or bracket; the lines run in their order, and the
value of the last one is shown. %time, %timeit and %bench take as many lines as make their code whole, %%time and the like all
that follow.

  %time code  %timeit code  %bench code   once, often, as a report in Out
                           %timeit -n 100 -r 5 code: 5 samples of 100 calls;
                           only %time keeps the local variables of the code
  %explain                 ops of the last input: kernels, paths, reasons
  %who  %forget name  %reset -f  %save file  %load file      the variables
  %run file | 3 | 3-5 | above | stale     again, under its number; a notebook
                           (-- %% cells, .ipynb) runs cell by cell
  %edit [n | file]  %history [text] [-n 20] [-o] [-f file]
                           -F: replaces a file; -g: inputs of all sessions
  %cd [folder | -]  %pwd  %ls [folder | *.lua]    where files are
  %sh command  %bash command              %%sh, %%bash: all lines below
  %help [name]             as ?name
  %stale [n]  %journal     what changed; sessions on record
  %debug                   the variables where the last error was raised
  %set [name [value]] [--save]            help 'settings'
  ?name  name?  ??name  ?*part*  !command  $ command  =expression

?name of a variable of yours tells of a tensor dtype, shape, bytes, spec and scales, of a table its fields
(?cfg.lr one of them), of a function how it is called, where it stands and the comment above it; ??name its text.

A text that was copied with its prompts, In [3]: or >>>, may be pasted as it is: the prompts are cut off, outputs left out.
Other words of IPython say what to type instead.

%save writes a .safetensors file: tensors with their quantization, models, optimizers, specs, tables with what they
share, text,
numbers; views become tensors of their own, gradients are left out. It names what it cannot keep: functions, and
models that hold some. %load brings
them back, locals as locals, and runs nothing of the file. A file that is no such one, the weights of a model for example, is not
replaced.

!command has the terminal: Ctrl-C ends it, not the prompt; what it prints is not recorded, but in a notebook it is kept with
the cell. A status other than 0 is told and stops nothing. %edit uses $VISUAL, $EDITOR
or vi.

%debug keeps the values of the failed input until the next error, or until %debug drop.]=],
	[[x = tensor{1, 2}
print(x:sum():item())  --> 3.0]])

concept('stale', [[An input is stale when something it read has changed since: a variable has another value, a tensor
was changed in place, a table or a model
holds something else, a function that it called is another one or reads something else, or the value was made by a
stale input.
%stale lists them with the reason, %stale 4 tells what In[4] read and wrote, %run stale runs them again in their order.

Not stale: an input that only defined a function; one that assigned again all that it read; one whose variables were
all assigned anew by later
inputs, or that was typed again; one whose tensor later inputs changed on (x:add_(1), then x:mul_(2)).

What is read is known from the compiled code: fields, parameters and inner locals of the same name do not count.
Tables are compared by their
contents (the first 20000 entries), objects of C other than tensors only by which they are. Code that reads variables
by a computed
name (_G[name]), or what methods of objects read, is not seen.]],
	[[x = tensor{1, 2}
y = x:sum():item()
x:mul_(2)        -- at the prompt: stale now: the input that made y
print(y, x:sum():item())  --> 3.0 6.0]])

concept('journal', [[On a terminal every input and what it prints, shows and raises is written to a file of the
session before the next prompt appears:
$XDG_STATE_HOME/quoll/journal/ (default ~/.local/state), for you alone to read (0600). A crash, a closed window or
kill -9 loses nothing that was
shown before; the file is brought to the disk after each input, so a power failure loses at most the running one.

`quoll --restore` shows the last session that did not end by itself and puts its inputs into In; nothing is run: %run
above does it, but for inputs that had failed, were interrupted or had not ended, which it names;
%run 3 runs one. `quoll --restore file` takes another, %journal lists them. What children write to the terminal
themselves
is not recorded, of one input at most 1 MiB, of one session at most 32 MiB of output; files go after 30 days, 200
sessions or 256 MiB.

--journal file records elsewhere (also a pipe's session), --journal none (or QUOLL_JOURNAL=none) not at all.]],
	[[x = 'inputs of the prompt are recorded, those of scripts are not'
print(#x)  --> 59]])

concept('settings', [[%set lists the settings of the prompt with their values, %set name value changes one, %set name
value --save keeps all in
$XDG_CONFIG_HOME/quoll/settings (default ~/.config), which a prompt on a terminal reads.

  colours auto|on|off      editing_mode auto|emacs|vi  footer auto|on|off
  precision 0 to 16        stale auto|on|off          width 0 or 20 to 1000
  plot auto|kitty|iterm|sixel|text|none]],
	[[print(tensor{1/3})  --> float32(1)  0.3333]])
