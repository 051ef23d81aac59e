#!/bin/sh
# Runs a command for each line of a list, three at a time, and prints what was found.
phalanx spawn a b c -q
xargs -I{} phalanx task create {} -q -- ./check.sh {} <list.txt
phalanx wait --until done
failed=$?
phalanx down
exit $failed
