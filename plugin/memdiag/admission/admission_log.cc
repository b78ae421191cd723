#include "plugin/memdiag/admission/admission_log.h"

#include <algorithm>

namespace memdiag::admission {
namespace {

/** @return a sum that does not overflow */
uint64_t add(uint64_t a, uint64_t b) { return sum(a, b).value_or(UINT64_MAX); }

std::string text(Reading bytes) {
  return bytes ? std::to_string(*bytes) : "unknown";
}

/** The room, less the peaks of other statements and the reserve. */
Reading left(const Decided &decided) {
  const Reading &room = decided.figures.room_bytes;
  if (!room) return std::nullopt;
  return *room - std::min(*room, add(decided.reserved_bytes,
                                     decided.figures.reserve_bytes));
}

}  // namespace

std::optional<uint64_t> Log::add(const Decided &decided, uint64_t now_us) {
  m_ring[m_count++ % max_rows] = decided;
  if (m_line_us && now_us - *m_line_us < line_pause_us) {
    ++m_without_line;
    return std::nullopt;
  }
  m_line_us = now_us;
  const uint64_t without_line = m_without_line;
  m_without_line = 0;
  return without_line;
}

std::vector<Row> Log::rows() const {
  std::vector<Row> rows;
  const uint64_t count = std::min<uint64_t>(m_count, max_rows);
  rows.reserve(count);
  for (uint64_t i = m_count - count; i < m_count; ++i) {
    const Decided &from = m_ring[i % max_rows];
    rows.push_back(
        {from.time_us, from.processlist_id, sessions::text_of(from.digest),
         decision_names[static_cast<size_t>(from.decision)],
         from.expected_bytes, from.figures.limit_bytes, from.figures.room_bytes,
         from.figures.unused_bytes, from.reserved_bytes, from.waited_us});
  }
  return rows;
}

std::string line(const Decided &decided, uint64_t without_line) {
  constexpr const char *words[] = {"ran", "was refused", "was killed",
                                   "reached max_execution_time",
                                   "would have waited, and ran"};
  std::string text = "admission: a statement of session " +
                     std::to_string(decided.processlist_id) + " " +
                     words[static_cast<size_t>(decided.decision)] + " after " +
                     std::to_string(decided.waited_us / 1000) +
                     " ms: it was expected to take " +
                     std::to_string(decided.expected_bytes) + " bytes, and " +
                     admission::text(left(decided)) +
                     " were left below the limit of " +
                     admission::text(decided.figures.limit_bytes);
  if (without_line != 0)
    text += "; " + std::to_string(without_line) +
            " more decisions since the last line";
  return text + " (INFORMATION_SCHEMA.MEMDIAG_ADMISSIONS)";
}

std::string refusal(const Decided &decided) {
  return "Memory is short: the statement waited for " +
         std::to_string(decided.waited_us / 1000) +
         " ms (memdiag_admission_wait_ms) and was not run. It was expected to "
         "take " +
         std::to_string(decided.expected_bytes) + " bytes, and " +
         text(left(decided)) + " were left. Run it again later";
}

}  // namespace memdiag::admission
