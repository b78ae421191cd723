#include "plugin/memdiag/ceiling/ceiling_log.h"

#include <algorithm>

namespace memdiag::ceiling {
namespace {

constexpr uint64_t one_row_us = 1'000'000;

bool is_step(Action action) { return action <= Action::caches; }

bool is_loss(Action action) {
  return action == Action::end || action == Action::refuse ||
         action == Action::went_on;
}

Row row_of(const Done &from) {
  const bool of_session = from.processlist_id != 0;
  return {from.time_us,
          action_names[static_cast<size_t>(from.action)],
          from.acted,
          of_session ? std::optional(from.processlist_id) : std::nullopt,
          of_session ? sessions::text_of(from.digest) : std::nullopt,
          from.bytes,
          from.duration_us,
          from.left_before_bytes,
          from.left_after_bytes,
          level_names[static_cast<size_t>(from.level)]};
}

}  // namespace

void Log::add(const Done &done) {
  Numbered &newest = m_others.places[(m_others.count - 1) % max_others];
  if (m_others.count != 0 && newest.number == m_count - 1 &&
      is_step(done.action)) {
    Done &last = newest.done;
    if (last.action == done.action && last.acted == done.acted &&
        done.time_us - last.time_us < one_row_us) {
      last.bytes += done.bytes;
      last.duration_us += done.duration_us;
      last.left_after_bytes = done.left_after_bytes;
      last.level = std::max(last.level, done.level);
      return;
    }
  }
  if (is_loss(done.action))
    m_lost.add(m_count++, done);
  else
    m_others.add(m_count++, done);
}

std::vector<Row> Log::rows() const {
  std::vector<const Numbered *> in_order;
  in_order.reserve(max_lost + max_others);
  const auto take = [&in_order](const Numbered &each) {
    in_order.push_back(&each);
  };
  m_lost.each(take);
  m_others.each(take);
  std::sort(in_order.begin(), in_order.end(),
            [](const Numbered *a, const Numbered *b) {
              return a->number < b->number;
            });
  std::vector<Row> rows;
  rows.reserve(in_order.size());
  for (const Numbered *each : in_order) rows.push_back(row_of(each->done));
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
