# shellcheck shell=sh disable=SC2034
# Debian: the units read no file of options, and only user mysql may enter a new data directory.
sysconfig='' datadir_mode=0700
