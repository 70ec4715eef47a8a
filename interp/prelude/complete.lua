-- SPDX-License-Identifier: MIT
return function() return {from = 0, to = 0, matches = {}} end
