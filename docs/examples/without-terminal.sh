#!/bin/sh
# As over `ssh HOST`, without a terminal: whole lines, and the report at the end.
phalanx up checks.toml </dev/null
phalanx report checks | grep failed
