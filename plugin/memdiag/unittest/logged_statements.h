/*
  For tests of what the server recommends: statements that it would write to the
  binary log. On a replica each of them would be an errant transaction, and on
  a source all replicas would run it.
*/

#ifndef MEMDIAG_LOGGED_STATEMENTS_H
#define MEMDIAG_LOGGED_STATEMENTS_H

#include <string>
#include <string_view>

namespace memdiag_test {

/** @return the first of their names in a text, or an empty string */
inline std::string logged_statement(std::string_view text) {
  for (const std::string_view name :
       {"FLUSH ", "OPTIMIZE ", "ANALYZE ", "REPAIR "})
    for (size_t at = text.find(name); at != text.npos;
         at = text.find(name, at + 1))
      if (!text.substr(at + name.size()).starts_with("LOCAL "))
        return std::string(name);
  for (const std::string_view name :
       {"TRUNCATE ", "DROP ", "CREATE ", "ALTER ", "GRANT ", "REVOKE ",
        "INSERT ", "UPDATE ", "DELETE "})
    if (text.find(name) != text.npos) return std::string(name);
  return "";
}

}  // namespace memdiag_test

#endif  // MEMDIAG_LOGGED_STATEMENTS_H
