# shellcheck shell=sh disable=SC2034
# RPM systems: the units read this sysconfig file. Every user may enter a new data directory,
# because clients of these systems look for the socket there.
sysconfig=/etc/sysconfig/mysql datadir_mode=0751
