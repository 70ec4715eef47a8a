-- SPDX-License-Identifier: MIT
-- %timeit: times a function with bench.time and prints its report.

return function(f)
	print(bench.time(f))
end
