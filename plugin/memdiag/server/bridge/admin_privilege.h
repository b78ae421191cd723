/*
  The dynamic privilege MEMDIAG_ADMIN: made known to GRANT, and asked for.

  Threads: register and unregister from the plugin's start and end; the question
  from the session's own thread.
*/

#ifndef MEMDIAG_ADMIN_PRIVILEGE_H
#define MEMDIAG_ADMIN_PRIVILEGE_H

class THD;

namespace memdiag::admin_privilege {

/** @return whether GRANT knows it now */
bool register_it();
void unregister_it();

/** True if the session has it, by itself, a role or --skip-grant-tables; if
not, the error is raised. */
bool check(THD *thd);

}  // namespace memdiag::admin_privilege

#endif  // MEMDIAG_ADMIN_PRIVILEGE_H
