/*
  Grants of the dynamic privilege MEMDIAG_ADMIN, which early builds asked for.
  memdiag_purge() asks for RELOAD instead, and nothing registers the name any
  more. The server itself registers each name that mysql.global_grants has, as
  it does for a component that is not installed: the data directory starts, SHOW
  GRANTS shows the grants, REVOKE and DROP USER remove them, and they permit
  nothing. Their administrator gets one line in the error log.

  Threads: the one that starts and stops the server.
*/

#ifndef MEMDIAG_OLD_GRANTS_H
#define MEMDIAG_OLD_GRANTS_H

namespace memdiag::old_grants {

/** Grants are read after the plugins have started: has the server call back.
@param plugin  as the server gave it to the plugin's start
@return whether the server will */
bool watch_for(void *plugin);
void stop(void *plugin);

}  // namespace memdiag::old_grants

#endif  // MEMDIAG_OLD_GRANTS_H
