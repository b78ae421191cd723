/*
  The log of admission: statements that did not fit below the limit at once
  (admission_gate.h), and the texts about them for the error log and the client.

  Threads: the caller's mutex protects a Log.
  Units: bytes; microseconds, of a clock that does not go back unless said.
*/

#ifndef MEMDIAG_ADMISSION_LOG_H
#define MEMDIAG_ADMISSION_LOG_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/digests.h"
#include "plugin/memdiag/admission/admission_gate.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag::admission {

enum class Decision : uint8_t { ran, refused, killed, timed_out, would_wait };
inline constexpr const char *decision_names[] = {"ran", "refused", "killed",
                                                 "timed_out", "would_wait"};

/** A statement that did not fit at once. */
struct Row {
  /** Since the epoch: when it was decided. */
  uint64_t time_us;
  uint64_t processlist_id;
  std::optional<std::string> digest;
  const char *decision;
  uint64_t expected_bytes;
  /** As the figures were when it began to wait. */
  Reading limit_bytes;
  Reading room_bytes;
  Reading unused_bytes;
  uint64_t reserved_bytes;
  uint64_t waited_us;
};

struct Decided {
  /** Since the epoch. */
  uint64_t time_us;
  uint64_t processlist_id;
  sessions::Digest digest;
  Decision decision;
  uint64_t expected_bytes;
  Figures figures;
  uint64_t reserved_bytes;
  uint64_t waited_us;
};

/** The last decisions. It also chooses those that the error log shows. */
class Log {
 public:
  static constexpr size_t max_rows = 1000;
  static constexpr uint64_t line_pause_us = 10'000'000;

  /** @return how many decisions since the last line were without one; empty:
  this one is without a line, too */
  std::optional<uint64_t> add(const Decided &decided, uint64_t now_us);
  /** Oldest first. @throws std::bad_alloc */
  std::vector<Row> rows() const;

 private:
  std::array<Decided, max_rows> m_ring{};
  uint64_t m_count{0};
  Reading m_line_us;
  uint64_t m_without_line{0};
};

/** For the error log and for the client: figures, and no name or text that a
user chose. @throws std::bad_alloc */
std::string line(const Decided &decided, uint64_t without_line);
std::string refusal(const Decided &decided);

}  // namespace memdiag::admission

#endif  // MEMDIAG_ADMISSION_LOG_H
