/*
  What configurations and accounts have from this product before 1.0. It does
  nothing any more, and each of it gets a line in the error log.

  Options: an option file that still has one does not keep the server from
  starting. They are no system variables.

  Grants of the dynamic privilege MEMDIAG_ADMIN: memdiag_purge() asks for RELOAD
  instead, and nothing registers the name any more. The server itself registers
  each name that mysql.global_grants has, as it does for a component that is not
  installed: the data directory starts, SHOW GRANTS shows the grants, REVOKE and
  DROP USER remove them, and they permit nothing.

  Threads: the one that starts and stops the server. Errors: none but those
  below.
*/

#ifndef MEMDIAG_BEFORE_1_0_H
#define MEMDIAG_BEFORE_1_0_H

struct SYS_VAR;

namespace memdiag::before_1_0 {

/** For the plugin's declaration. The server owns what it makes of it. */
extern SYS_VAR *options[];

/** A line of the error log for each option that is set.
@throws std::bad_alloc */
void name_set_options();

/** Grants are read after the plugins have started: has the server call back.
@param plugin  as the server gave it to the plugin's start
@return whether the server will */
bool watch_for_grants(void *plugin);
void stop(void *plugin);

}  // namespace memdiag::before_1_0

#endif  // MEMDIAG_BEFORE_1_0_H
