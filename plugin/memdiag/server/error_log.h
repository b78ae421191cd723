/*
  The plugin's lines in the server's error log. The server's headers want their
  tags defined before; this is the only place that does so.

  Threads: any, from plugin initialisation to its end.
*/

#ifndef MEMDIAG_ERROR_LOG_H
#define MEMDIAG_ERROR_LOG_H

#include <string>

namespace memdiag::error_log {

/** What somebody may want to know; shown with log_error_verbosity=3. */
void note(const std::string &text);

/** What somebody should do something about. */
void warn(const std::string &text);

/** Why the server cannot start. */
void error(const std::string &text);

}  // namespace memdiag::error_log

#endif  // MEMDIAG_ERROR_LOG_H
