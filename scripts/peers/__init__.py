# SPDX-License-Identifier: MIT
"""Programs that scripts/peers.py measures beside Quoll. A file per library; each has PEERS: name -> case(case, item, args, threads)."""
