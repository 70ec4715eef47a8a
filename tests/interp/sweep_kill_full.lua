-- SPDX-License-Identifier: MIT
-- labels: full
-- sweep_kill.lua with 100 points.
KILLS = 100
dofile 'tests/interp/sweep_kill.lua'
