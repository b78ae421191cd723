/*
  For tests of what the server recommends: statements that it would write to the
  binary log. On a replica each of them would be an errant transaction, and on
  a source all replicas would run it.
*/

#ifndef MEMDIAG_LOGGED_STATEMENTS_H
#define MEMDIAG_LOGGED_STATEMENTS_H

#include <cctype>
#include <set>
#include <sstream>
#include <string>

namespace memdiag_test {

/** @return the first one in a text, or an empty string */
inline std::string logged_statement(const std::string &text) {
  static const std::set<std::string> always{"TRUNCATE", "DROP",   "CREATE",
                                            "ALTER",    "GRANT",  "REVOKE",
                                            "INSERT",   "UPDATE", "DELETE"};
  static const std::set<std::string> unless_local{"FLUSH", "OPTIMIZE",
                                                  "ANALYZE", "REPAIR"};
  std::istringstream words(text);
  std::string verb;
  std::string next;
  for (words >> verb; words >> next; verb = next)
    if (std::isupper(static_cast<unsigned char>(next.front())) &&
        (always.count(verb) != 0 ||
         (unless_local.count(verb) != 0 && next != "LOCAL")))
      return verb + " " + next;
  return "";
}

}  // namespace memdiag_test

#endif  // MEMDIAG_LOGGED_STATEMENTS_H
