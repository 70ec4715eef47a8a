-- SPDX-License-Identifier: MIT
-- As in check.h: long loops of similar cases thin themselves out under the sanitizers.
local sanitizers = {under = os.getenv 'QUOLL_TEST_SANITIZERS' ~= nil}

-- Of similar cases those that the sanitizers do without: all but every n-th.
function sanitizers.left_out(i, n) return sanitizers.under and i % n ~= 0 end

return sanitizers
