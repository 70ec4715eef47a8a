-- SPDX-License-Identifier: MIT
-- r:group, r:pivot, r:mean. Intervals are compared with tables of Student's t.
local r = report{columns = {'observer', 'bits', 'seed', 'accuracy', 'ms'},
	{'minmax', 4, 1, 85.0, 1.0}, {'minmax', 4, 2, 86.0, 3.0}, {'minmax', 4, 3, 87.0, 2.0}, {'mse', 4, 1, 88.0, 5.0},
	{'minmax', 8, 1, 91.4, 1.5}, {'mse', 8, 1, 91.0, 1.5}, {'mse', 8, 2, 92.0, nil}}

it('groups', function()
	local g = r:group({'observer', 'bits'}, {accuracy = {'interval', 'min', 'max', 'std', 'median', 'sum', 'count'}, ms = 'median'})
	assert(table.concat(g:columns(), ' ') ==
		'observer bits accuracy accuracy ± accuracy_min accuracy_max accuracy_std accuracy_median accuracy_sum accuracy_count ms count')
	assert(#g == 4 and g[1].observer == 'minmax' and g[1].bits == 4 and g[1].count == 3)
	assert(g[1].accuracy == 86 and g[1].accuracy_min == 85 and g[1].accuracy_max == 87 and g[1].accuracy_median == 86 and g[1].ms == 2)
	assert(math.abs(g[1].accuracy_std - 1) < 1e-12 and g[1].accuracy_sum == 258 and g[1].accuracy_count == 3)
	-- t(0.975, 2) = 4.302653, t(0.975, 1) = 12.706205
	assert(math.abs(g[1]['accuracy ±'] - 4.302653 / 3 ^ 0.5) < 1e-5)
	assert(math.abs(g[4]['accuracy ±'] - 12.706205 * 0.5 ^ 0.5 / 2 ^ 0.5) < 1e-5)
	assert(g[2].accuracy == 88 and g[2]['accuracy ±'] == nil and g[4].ms == 1.5 and g[4].accuracy_count == 2)
	local wide = r:group('bits', {accuracy = 'interval'}, {confidence = 0.99})
	-- t(0.995, 3) = 5.840909; values 85 86 87 88
	assert(math.abs(wide[1]['accuracy ±'] - 5.840909 * (5 / 3) ^ 0.5 / 2) < 1e-5)
end)
print(r:group 'observer')  --> observer   bits   seed  accuracy     ms  count
--> ──────────────────────────────────────────────
--> minmax    5.000  1.750     87.35  1.875      4
--> mse       6.667  1.333     90.33  3.250      3
print(#r:group({}, {ms='max'}), r:group({}, {ms='max'}).ms)  --> 1 5.0
print(r:group('bits', {accuracy=function(list) return #list end})[2].accuracy)  --> 3
print(r:group('bits', {accuracy='interval'}))  --> bits    accuracy  count
--> ───────────────────────
-->    4  86.5 ± 2.1      4
-->    8  91.5 ± 1.3      3
--> ±: 95 % confidence interval of the mean (Student t)
print(r:group({'observer', 'bits'}, {accuracy='interval'}):select{'bits', 'accuracy', 'accuracy ±'})  --> bits    accuracy
--> ────────────────
-->    4  86.0 ± 2.5
-->    4  88.0
-->    8  91.4
-->    8  91.5 ± 6.4
--> ±: 95 % confidence interval of the mean (Student t)
print(r:pivot{rows='observer', columns='bits', values='accuracy'})  --> observer   4     8
--> ──────────────────
--> minmax    86  91.4
--> mse       88  91.5
--> mean of accuracy for each bits
print(r:pivot{rows={'observer', 'seed'}, columns='bits', values='ms', by='count'}:where{seed=3}[1])  --> {observer=minmax, seed=3, 4=1}
print(r:pivot{rows='bits', columns='observer', values='accuracy', by='interval'})  --> bits      minmax     mse
--> ────────────────────────
-->    4  86.0 ± 2.5  88
-->    8  91.4        92 ± 6
--> mean ± 95 % confidence interval of accuracy for each observer
local m, half, n = r:where{bits=4, observer='minmax'}:mean 'accuracy'
print(m, half - 4.302653 / 3 ^ 0.5 < 1e-6, n)               --> 86.0 true 3
print(r:mean('accuracy', 'bits')[2].bits)                   --> 8
print(select('#', report{{a=1}}:mean 'a'), report{{a=1}}:mean 'a')  --> 3 1.0 nil 1
print(#report{columns={'a','b'}}:group 'a')                 --> 0
print(report{{a=1, b=2}, {a=1.0, b=4}, {b=5}}:group('a', {b='mean'}))  --> a  b  count
--> ───────────
--> 1  3      2
--> -  5      1
local nan = report{{a=1, b=0/0}, {a=1, b=2}}:group('a', {b={'mean', 'median', 'min'}})[1]
assert(nan.b_min ~= nan.b_min and nan.b_mean ~= nan.b_mean and nan.b_median ~= nan.b_median)

it('keeps intervals in files and through other methods', function()
	local g, file = r:group('bits', {accuracy = 'interval'}), os.tmpname() .. '.csv'
	g:save(file)
	local back = bench.load(file)
	assert(back == g and tostring(back:sort 'accuracy'):find '86.5 ± 2.1', tostring(back))
	os.remove(file)
	for _, ending in ipairs {'.md', '.html'} do
		file = os.tmpname() .. ending
		g:save(file)
		local handle = io.open(file)
		local text = handle:read 'a'
		handle:close()
		os.remove(file)
		assert(text:find('86.5 ± 2.1', 1, true) and not text:find('accuracy ±', 1, true))
	end
end)
print(report{{mean=3, a=1}}.mean, type(report{{mean=3}, {mean=4}}.mean), (report{{mean=3}, {mean=5}}:mean 'mean'))  --> 3 function 4.0
r:group 'bit'                            --> error: group: wanted one of the columns observer bits seed accuracy ms, got 'bit'; did you mean 'bits'?
r:group('bits', {acuracy='mean'})        --> error: group: wanted one of the columns
r:group('bits', {accuracy='avg'})        --> error: group: accuracy: wanted one of count interval max mean median min std sum or a function, got 'avg'
r:group('bits', {observer='mean'})       --> error: group: column 'observer': wanted numbers, got 'minmax' in row 1
r:group('bits', {bits='mean'})           --> error: group: wanted statistics of other columns than those of the groups, got 'bits'
r:group('bits', 'mean')                  --> error: group: wanted statistics by column
r:group('bits', nil, {confidence=2})     --> error: group: confidence: wanted a number between 0 and 1, got 2
r:group()                                --> error: group: wanted one of the columns
r:pivot{rows='bits', columns='observer'} --> error: pivot: values: wanted the name of a column, got nothing
r:pivot{rows='bits', columns='observer', values='ms', by='men'}  --> error: pivot: by: wanted one of
r:mean 'observer'                        --> error: mean: column 'observer': wanted numbers
