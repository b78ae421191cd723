/*
  Admission: whether a large statement fits below the limit now, or waits. Pure
  decisions and their log; server/admission.h makes sessions wait.

  A statement needs as much as one of its digest has taken before. What lets it
  run is room: the bytes that are free below the limit, less the peaks of the
  large statements that run. Memory that these hold already counts twice, in
  their peaks and in the kernel's figures. The allocator counts a block before
  its pages are written, so the part of a peak that the kernel has counted is
  not known. Near the limit, large statements therefore run one after the
  other.

  Threads: a Gate and a Log belong to their users' mutexes.
  Errors: where a figure is not known, statements run.
  Units: bytes; microseconds, of a clock that does not go back unless said.
*/

#ifndef MEMDIAG_ADMISSION_ADVICE_H
#define MEMDIAG_ADMISSION_ADVICE_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/accounting/sessions.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag::admission {

struct Figures {
  Reading limit_bytes;
  /** Free below the limit, with page cache that the kernel drops at once. */
  Reading room_bytes;
  /** Unused pages of the pools, which a purge gives back. */
  Reading unused_bytes;
  /** Room that statements leave free (memdiag_admission_reserve). */
  uint64_t reserve_bytes;
};

struct Request {
  uint64_t peak_bytes;
  uint64_t asked_us;
  /** How long it may wait. */
  uint64_t wait_us;
};

enum class Step : uint8_t {
  run,
  /** Purge the pools, then ask again. */
  purge,
  wait,
  /** It has waited for long enough. */
  refuse
};

/** The place of a statement that runs. It belongs to the caller, and stays
where it is while it is entered. */
struct Place {
  uint64_t peak_bytes = 0;
  Place *next = nullptr;
  Place *previous = nullptr;
};

class Gate {
 public:
  /** Several statements that wait do not purge one after the other. */
  static constexpr uint64_t purge_pause_us = 1'000'000;

  /** The next step of a statement. */
  Step step(const Request &request, const Figures &figures, uint64_t now_us);
  void enter(Place *place);
  void leave(Place *place);
  /** The peaks of the statements that run. */
  uint64_t reserved_bytes() const;

 private:
  Place *m_first{nullptr};
  Reading m_purged_us;
};

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
  uint64_t peak_bytes;
  /** As the figures were when it asked first. */
  Reading limit_bytes;
  Reading room_bytes;
  Reading unused_bytes;
  uint64_t reserved_bytes;
  uint64_t waited_us;
};

struct Decided {
  uint64_t time_us;
  uint64_t processlist_id;
  sessions::Digest digest;
  Decision decision;
  uint64_t peak_bytes;
  Figures figures;
  uint64_t reserved_bytes;
  uint64_t waited_us;
};

/** The last decisions, and which of them are a line of the error log. */
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

#endif  // MEMDIAG_ADMISSION_ADVICE_H
