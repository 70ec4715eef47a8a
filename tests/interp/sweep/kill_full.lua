-- SPDX-License-Identifier: MIT
-- labels: full
-- kill.lua with 40 points; QUOLL_KILLS=1000: for long.
KILLS = 40
dofile 'tests/interp/sweep/kill.lua'
