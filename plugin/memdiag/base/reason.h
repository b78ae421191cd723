/*
  The meaning of an errno, for messages.

  A pure function; the caller owns its text. Threads: any.
  Errors: std::bad_alloc. The text of an unknown number says that it is unknown.
*/

#ifndef MEMDIAG_REASON_H
#define MEMDIAG_REASON_H

#include <cstring>
#include <string>

namespace memdiag {

inline std::string reason(int error) {
  char text[128];
  return std::to_string(error) + " - " + strerror_r(error, text, sizeof text);
}

}  // namespace memdiag

#endif  // MEMDIAG_REASON_H
