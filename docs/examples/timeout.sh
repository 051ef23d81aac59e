#!/bin/sh
# Gives each task a limit, and all of them another: what is late fails, the rest goes on.
phalanx up - --timeout 60 <<'END'
team = { name = "limits" }
member = [{ name = "w", scale = { min = 2, max = 2 } }]
task = [{ subject = "slow", run = ["sleep", "300"], timeout = 1 }, { subject = "fast", run = ["true"] }]
END
