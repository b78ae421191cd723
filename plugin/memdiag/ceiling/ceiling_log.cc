#include "plugin/memdiag/ceiling/ceiling_log.h"

#include <algorithm>

namespace memdiag::ceiling {
namespace {

constexpr uint64_t one_row_us = 1'000'000;

bool is_step(Action action) { return action <= Action::caches; }

}  // namespace

void Log::add(const Done &done) {
  if (m_count != 0 && is_step(done.action)) {
    Done &last = m_ring[(m_count - 1) % max_rows];
    if (last.action == done.action && last.acted == done.acted &&
        done.time_us - last.time_us < one_row_us) {
      last.bytes += done.bytes;
      last.duration_us += done.duration_us;
      last.left_after_bytes = done.left_after_bytes;
      last.level = std::max(last.level, done.level);
      return;
    }
  }
  m_ring[m_count++ % max_rows] = done;
}

std::vector<Row> Log::rows() const {
  std::vector<Row> rows;
  const uint64_t count = std::min<uint64_t>(m_count, max_rows);
  rows.reserve(count);
  for (uint64_t i = m_count - count; i < m_count; ++i) {
    const Done &from = m_ring[i % max_rows];
    const bool of_session = from.processlist_id != 0;
    rows.push_back(
        {from.time_us, action_names[static_cast<size_t>(from.action)],
         from.acted,
         of_session ? std::optional(from.processlist_id) : std::nullopt,
         of_session ? sessions::text_of(from.digest) : std::nullopt, from.bytes,
         from.duration_us, from.left_before_bytes, from.left_after_bytes,
         level_names[static_cast<size_t>(from.level)]});
  }
  return rows;
}

std::string text_of_end(uint64_t limit_bytes, uint64_t grown_bytes,
                        size_t statements, bool with_transaction) {
  return "The server's memory has reached its target of " +
         std::to_string(limit_bytes) +
         " bytes (memdiag_memory_target). This statement had taken or asked "
         "for " +
         std::to_string(grown_bytes) + " bytes, one of the largest of " +
         std::to_string(statements) + " that ran, and was ended" +
         (with_transaction ? " with its transaction, whose locks held most of "
                             "that"
                           : "") +
         ". The connection and the server go on. Run it again later, or make "
         "it smaller";
}

std::string text_of_refusal(uint64_t waited_us, Refused what) {
  if (what == Refused::run_of_event)
    return "An earlier run of this event waits for memory "
           "(memdiag_memory_target), and this one did not begin. The server "
           "goes on, and so does the event's schedule";
  constexpr const char *refused[] = {
      "statement did not begin", "session does not keep the value",
      "statement did not get a block that is larger than all that is free"};
  return "No memory was free for " + std::to_string(waited_us / 1000) +
         " ms (memdiag_memory_target), and the " +
         refused[static_cast<size_t>(what)] +
         ". The connection and the server go on. Run the statement again later";
}

}  // namespace memdiag::ceiling
