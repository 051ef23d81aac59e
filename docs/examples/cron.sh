#!/bin/sh
# Started by cron each hour: while an earlier run goes on, waits for it and exits with its code.
exec phalanx up nightly.toml --timeout 3000
