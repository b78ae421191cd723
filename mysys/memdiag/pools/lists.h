/*
  Lists in options: entries with commas between them. Shared by those who parse
  the server's variables; no state, no errors of its own.
*/

#ifndef MEMDIAG_LISTS_H
#define MEMDIAG_LISTS_H

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag {

/** For messages: the pools for which is_meant(pool) is true. */
template <typename Predicate>
std::string names_of_pools(Predicate is_meant) {
  std::string names;
  for (size_t i = 0; i < pool_count; ++i)
    if (is_meant(static_cast<Pool>(i)))
      names += (names.empty() ? "" : ", ") + std::string(pool_specs[i].name);
  return names;
}

/** Calls visit(entry) for each entry, without the blanks around it, while it
returns an empty text. @return what the last call returned */
template <typename Visitor>
std::string for_each_entry(std::string_view list, Visitor visit) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    std::string_view entry = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    while (entry.starts_with(' ')) entry.remove_prefix(1);
    while (entry.ends_with(' ')) entry.remove_suffix(1);
    if (std::string wrong = visit(entry); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace memdiag

#endif  // MEMDIAG_LISTS_H
