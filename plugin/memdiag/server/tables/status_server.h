/*
  Binds the status variables to the server.

  Ownership: the array is static; the server reads it. Threads: any; the shared
  snapshot is under a mutex. Errors: a figure that cannot be read is empty.
*/

#ifndef MEMDIAG_STATUS_SERVER_H
#define MEMDIAG_STATUS_SERVER_H

struct SHOW_VAR;

namespace memdiag::status_server {

/** A SHOW_VAR for each of status_variables and the one that ends them. SHOW
evaluates all variables whatever its LIKE says; they share one snapshot, kept
for max_age_ms, so that no SHOW costs more than one. */
SHOW_VAR *show_variables();

constexpr unsigned max_age_ms = 100;

}  // namespace memdiag::status_server

#endif  // MEMDIAG_STATUS_SERVER_H
