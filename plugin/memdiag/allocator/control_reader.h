/*
  Reads jemalloc's controls for the collectors. An unreadable control is an
  empty value and an entry in the list of failures; sums over it are empty too.

  Threads: a Control_reader belongs to one thread. Values belong together if
  they were read under the mutex of allocator_snapshot.cc.
  Ownership: the list of failures is the caller's and outlives the reader.
*/

#ifndef MEMDIAG_CONTROL_READER_H
#define MEMDIAG_CONTROL_READER_H

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mysys/memdiag/base/fault.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "plugin/memdiag/base/reading.h"

namespace memdiag {

/** A control that could not be read. */
struct Failed_read {
  Ctl ctl;
  /** The errno of the first failure. */
  int error;
  /** Failures: for a control of arenas, one for each arena. */
  unsigned times;
};

class Control_reader {
 public:
  explicit Control_reader(std::vector<Failed_read> *failed)
      : m_failed(failed) {}

  /** See mallctl::read(). */
  template <Ctl ctl>
  std::optional<ctl_type_t<ctl>> read(unsigned arena = 0, unsigned index = 0) {
    const Result<ctl_type_t<ctl>> result =
        fault::at(fault::Point::control, static_cast<uint32_t>(ctl))
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

/** The arena of a row. */
struct Arena_id {
  unsigned arena;
  /** The name of the arena's pool. */
  const char *pool;
};

}  // namespace memdiag

#endif  // MEMDIAG_CONTROL_READER_H
