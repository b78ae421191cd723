/*
  What the collectors read jemalloc's controls with: a control that cannot be
  read is an empty value and listed, and so is a sum that it is part of.

  Threads: a Reader belongs to one; what it reads belongs together if it was
  read under the lock of allocator_snapshot.cc.
  Ownership: the list of failures is the caller's and outlives the Reader.
*/

#ifndef MEMDIAG_CONTROL_READER_H
#define MEMDIAG_CONTROL_READER_H

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/jemalloc/mallctl.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag {

/** A control that could not be read. */
struct Failed_read {
  Ctl ctl;
  /** The errno of the first failure. */
  int error;
  /** How often it failed: once for each arena, where it is an arena's. */
  unsigned times;
};

namespace detail {
inline constinit std::atomic<Ctl> failing_ctl{Ctl::count};
}

/** Treat a control as unreadable from now on (EIO), to test what a failed read
looks like. Ctl::count ends it. */
inline void fail_reads_for_test(Ctl ctl) { detail::failing_ctl.store(ctl); }

/** Reads controls and remembers which failed. */
class Reader {
 public:
  explicit Reader(std::vector<Failed_read> *failed) : m_failed(failed) {}

  /** See mallctl::read(). */
  template <Ctl ctl>
  std::optional<ctl_type_t<ctl>> read(unsigned arena = 0, unsigned index = 0) {
    const Result<ctl_type_t<ctl>> result =
        detail::failing_ctl.load(std::memory_order_relaxed) == ctl
            ? Result<ctl_type_t<ctl>>::failed(EIO)
            : mallctl::read<ctl>(arena, index);
    if (!result) {
      note_failure(ctl, result.error());
      return std::nullopt;
    }
    return result.value();
  }

  template <Ctl ctl>
  std::optional<std::string> read_text() {
    const std::optional<const char *> text = read<ctl>();
    if (!text) return std::nullopt;
    return std::string{*text == nullptr ? "" : *text};
  }

  std::optional<std::string> arena_name(unsigned arena) {
    char name[mallctl::arena_name_size];
    const int error = mallctl::arena_name(arena, name);
    if (error != 0) {
      note_failure(Ctl::arena_name, error);
      return std::nullopt;
    }
    return std::string{name};
  }

 private:
  void note_failure(Ctl ctl, int error) {
    for (Failed_read &failure : *m_failed) {
      if (failure.ctl == ctl) {
        ++failure.times;
        return;
      }
    }
    m_failed->push_back({ctl, error, 1});
  }

  std::vector<Failed_read> *m_failed;
};

/** Which arena a row is about. */
struct Arena_id {
  unsigned arena;
  /** Name of the pool that it belongs to. */
  const char *pool;
};

}  // namespace memdiag

#endif  // MEMDIAG_CONTROL_READER_H
