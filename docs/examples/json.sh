#!/bin/sh
# Prints the failed tasks of a run as JSON, with their output.
phalanx up checks.toml --json | jq -c '.tasks[] | select(.state == "failed") | {key, exit_code, tail}'
