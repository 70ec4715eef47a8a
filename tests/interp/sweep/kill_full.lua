-- SPDX-License-Identifier: MIT
-- labels: full
-- kill.lua with 100 points.
KILLS = 100
dofile 'tests/interp/sweep/kill.lua'
