/*
  Shows in EXPLAIN ANALYZE what the iterators took
  (sql/memdiag/iterator_memory.h) from pools. Blocks that malloc() serves are
  not counted. A plan that was run while memdiag_sessions was OFF stays as it
  is.

  Ownership: the plan owns what is added to it. Threads: the session's own.
  Errors: true from a function means that there was no memory. Units: bytes.

  Only explain_access_path.cc includes this header.
*/

#ifndef MEMDIAG_EXPLAIN_H
#define MEMDIAG_EXPLAIN_H

#include <string>

#include "sql-common/json_dom.h"
#include "sql/iterators/timing_iterator.h"
#include "template_utils.h"

namespace memdiag {

inline constexpr const char *taken_key = "actual_pool_taken_bytes";
inline constexpr const char *peak_key = "actual_pool_peak_bytes";

/** Add to the iterator's object of the plan. */
template <typename Object>
bool add_memory(const Object &node, const IteratorProfiler *profiler) {
  const Iterator_memory &memory =
      down_cast<const IteratorProfilerImpl *>(profiler)->memory;
  return memory.is_counted() &&
         (node->add_alias(taken_key,
                          create_dom_ptr<Json_uint>(memory.taken_bytes())) ||
          node->add_alias(peak_key,
                          create_dom_ptr<Json_uint>(memory.peak_bytes())));
}

/** The same as text, behind the times of an iterator. */
inline std::string memory_text(const Json_object *node) {
  const auto text = [node](const char *key) {
    return std::to_string(
        down_cast<const Json_uint *>(node->get(key))->value());
  };
  if (node->get(taken_key) == nullptr) return "";
  return " (pool memory taken=" + text(taken_key) + " peak=" + text(peak_key) +
         ")";
}

}  // namespace memdiag

#endif  // MEMDIAG_EXPLAIN_H
