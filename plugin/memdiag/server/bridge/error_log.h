/*
  The plugin's lines in the server's error log. The server's headers want their
  tags defined before; this is the only place that does so.

  Threads: any, from plugin initialisation to its end.
*/

#ifndef MEMDIAG_ERROR_LOG_H
#define MEMDIAG_ERROR_LOG_H

#include <string>

namespace memdiag::error_log {

/** A detail; shown with log_error_verbosity=3. */
void note(const std::string &text);

/** An event of the server as a whole. Shown at any verbosity, and no warning:
upstream's test driver fails a test that causes one. */
void announce(const std::string &text);

/** A state that the administrator should change. */
void warn(const std::string &text);

/** The reason why the server cannot start. */
void error(const std::string &text);

}  // namespace memdiag::error_log

#endif  // MEMDIAG_ERROR_LOG_H
