-- SPDX-License-Identifier: MIT
-- The beginning of every page that is written for a browser, up to the body: a format for the title. A policy forbids
-- scripts and everything that would have to be loaded.
return [[
<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<meta name="generator" content="Quoll"><title>%s</title>
<style>
:root { --page: #fff; --text: #24292f; --soft: #57606a; --line: #d8dee4; --code: #f6f8fa; --link: #0969da; --bad: #b3261e;
	--badpage: #fff4f2; --k: #a626a4; --s: #2d6a30; --n: #8a4b00; --c: #6a737d; --e: #0b6e74; --g: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --page: #15181c; --text: #dfe4ea; --soft: #9aa4af; --line: #343b44;
	--code: #1e2329; --link: #6cb2ff; --bad: #ff9d94; --badpage: #2c1b1b; --k: #d7a1f0; --s: #9bd49d; --n: #f0b674; --c: #8a949e;
	--e: #77cfd4; --g: #8fc1ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 62rem; background: var(--page); color: var(--text);
	font: 16px/1.6 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; overflow-wrap: break-word; }
a { color: var(--link); }
h1, h2, h3, h4 { line-height: 1.25; margin: 1.8em 0 .6em; }
h1 { font-size: 1.9rem; margin-top: .8em; } h2 { font-size: 1.4rem; } h3 { font-size: 1.15rem; }
h2 { border-bottom: 1px solid var(--line); padding-bottom: .2em; }
pre, code { tab-size: 4; font: .82em/1.5 ui-monospace, "DejaVu Sans Mono", Consolas, monospace; }
code { font-size: .88em; background: var(--code); padding: .1em .3em; border-radius: 4px; }
pre { margin: 0; padding: .6rem .8rem; overflow-x: auto; white-space: pre; }
pre code { padding: 0; background: none; font-size: 1em; }
.text > pre { background: var(--code); border-radius: 6px; margin: 1em 0; }
.cell { margin: 1rem 0; border: 1px solid var(--line); border-radius: 6px; }
.cell summary { padding: .15rem .8rem; cursor: pointer; color: var(--soft); font-size: .8rem; }
.cell > details > pre { background: var(--code); border-top: 1px solid var(--line); border-radius: 0 0 6px 6px; }
.cell .t { color: var(--text); font-weight: 600; margin-left: .6em; }
.cell .r { float: right; }
.out { border-top: 1px solid var(--line); padding: .2rem 0; overflow-x: auto; }
.out > *:not(pre):not(details) { margin: .5rem .8rem; }
.out pre { padding: .2rem .8rem; line-height: 1.35; }
.err, .bad { background: var(--badpage); color: var(--bad); }
.note, .warn { color: var(--soft); }
.fig { display: block; overflow-x: auto; }
.fig svg, .fig img, .text img { max-width: 100%%; height: auto; background: #fff; border-radius: 6px; }
@media (prefers-color-scheme: dark) {
	svg[color="#262626"] { background: none; }
	[color="#262626"] > rect:first-child { fill: none; }
	[color="#262626"] text[fill="#262626"] { fill: var(--text); }
	[color="#262626"] [stroke="#4D4D4D"] { stroke: #8b949e; }
	[color="#262626"] text[fill="#6B6B6B"] { fill: var(--soft); } [color="#262626"] [stroke="#6B6B6B"] { stroke: var(--soft); }
	[color="#262626"] [stroke="#9A9A9A"] { stroke: #7d8590; }
	[color="#262626"] [stroke="#E3E3E3"], [color="#262626"] [stroke="#D0D0D0"] { stroke: #30363d; }
	[color="#262626"] [stroke="#F1F1F1"] { stroke: #22272e; }
	[color="#262626"] [fill="#FFFFFF"][fill-opacity] { fill: var(--page); }
	[color="#262626"] [fill="#4B3B8F"] { fill: #a89af0; } [color="#262626"] [stroke="#4B3B8F"] { stroke: #a89af0; }
}
table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .8em 0; display: block; overflow-x: auto; }
.out table { font-size: .86em; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { border-bottom-width: 2px; }
caption { text-align: left; color: var(--soft); padding-bottom: .3em; white-space: nowrap; }
.n, .tensor td { text-align: right; }
.tensor td { padding: .05rem .6rem; border: 0; }
blockquote { margin: 1em 0; padding: .1em 1em; border-left: 4px solid var(--line); color: var(--soft); }
hr { border: 0; border-top: 1px solid var(--line); margin: 2em 0; }
nav { margin: 1rem 0; padding: .4rem .8rem; background: var(--code); border-radius: 6px; font-size: .92em; }
nav ul { list-style: none; padding: 0; margin: .3em 0; } nav summary { cursor: pointer; }
nav .l2 { padding-left: 1.2em; } nav .l3 { padding-left: 2.4em; }
.k { color: var(--k); } .s { color: var(--s); } span.n { color: var(--n); } .c { color: var(--c); font-style: italic; }
.e { color: var(--e); } .g { color: var(--g); }
math { font-size: 1.08em; } math[display="block"] { margin: 1em 0; } .b { font-weight: bold; }
.left mtd, .align mtd:nth-child(even) { text-align: left; } .align mtd:nth-child(odd) { text-align: right; }
footer { margin-top: 3rem; color: var(--soft); font-size: .85rem; }
@media print { body { max-width: none; } .cell { break-inside: avoid; } }
</style></head><body>
]]
