/*
  For tests of what the server recommends: statements that it would write to the
  binary log. On a replica each of them would be an errant transaction, and on
  a source all replicas would run it.
*/

#ifndef MEMDIAG_LOGGED_STATEMENTS_H
#define MEMDIAG_LOGGED_STATEMENTS_H

#include <regex>
#include <string>

namespace memdiag_test {

/** @return the first one in a text, or an empty string */
inline std::string logged_statement(const std::string &text) {
  static const std::regex logged(
      "(FLUSH|OPTIMIZE|ANALYZE|REPAIR) (?!LOCAL )[A-Z]+"
      "|(TRUNCATE|DROP|CREATE|ALTER|GRANT|REVOKE|INSERT|UPDATE|DELETE) [A-Z]+");
  std::smatch found;
  return std::regex_search(text, found, logged) ? found.str() : "";
}

}  // namespace memdiag_test

#endif  // MEMDIAG_LOGGED_STATEMENTS_H
