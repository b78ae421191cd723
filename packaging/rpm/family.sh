# shellcheck shell=sh disable=SC2034
# RPM systems: the units read this file. Every user enters a new data directory, because clients
# of these systems look for the socket there.
sysconfig=/etc/sysconfig/mysql datadir_mode=0751
