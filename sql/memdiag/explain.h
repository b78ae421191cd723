/*
  Shows in EXPLAIN ANALYZE what the iterators took
  (sql/memdiag/iterator_memory.h). A plan that was run while memdiag_sessions
  was OFF stays as it is.

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

inline constexpr const char *taken_key = "actual_taken_bytes";
inline constexpr const char *peak_key = "actual_peak_bytes";
inline constexpr const char *note_key = "memory_note";

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

/** True if a plan, or a part of one, has memory of an iterator. */
inline bool has_memory(const Json_dom *dom) {
  if (dom == nullptr) return false;
  if (dom->json_type() == enum_json_type::J_OBJECT)
    for (const auto &[key, value] : *down_cast<const Json_object *>(dom))
      if (key == taken_key || has_memory(value.get())) return true;
  if (dom->json_type() == enum_json_type::J_ARRAY)
    for (const auto &value : *down_cast<const Json_array *>(dom))
      if (has_memory(value.get())) return true;
  return false;
}

/** Say in the plan what the figures do not count. */
template <typename Object>
bool add_memory_note(const Object &plan) {
  return has_memory(plan->get("query_plan")) &&
         plan->add_alias(
             note_key,
             create_dom_ptr<Json_string>(
                 "Memory is what the statement's thread took from pools. "
                 "Blocks "
                 "that malloc() serves, because no route leads them to a pool, "
                 "are not counted."));
}

/** The same as text, behind the times of an iterator. */
inline std::string memory_text(const Json_object *node) {
  const auto text = [node](const char *key) {
    return std::to_string(
        down_cast<const Json_uint *>(node->get(key))->value());
  };
  if (node->get(taken_key) == nullptr) return "";
  return " (memory taken=" + text(taken_key) + " peak=" + text(peak_key) + ")";
}

/** And behind the plan. */
inline std::string memory_note_text(const Json_object *plan) {
  const Json_dom *note = plan->get(note_key);
  if (note == nullptr) return "";
  return down_cast<const Json_string *>(note)->value() + "\n";
}

}  // namespace memdiag

#endif  // MEMDIAG_EXPLAIN_H
