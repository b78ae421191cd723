/*
  Columns that several tables have.
*/

#ifndef MEMDIAG_SHARED_COLUMNS_H
#define MEMDIAG_SHARED_COLUMNS_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "plugin/memdiag/tables/column.h"

namespace memdiag {

/** The columns of each array, one array after the other. */
template <typename Row, size_t... sizes>
constexpr auto join(const std::array<Column<Row>, sizes> &...parts) {
  std::array<Column<Row>, (sizes + ...)> all{};
  size_t next = 0;
  const auto append = [&](const auto &part) {
    for (const Column<Row> &column : part) all[next++] = column;
  };
  (append(parts), ...);
  return all;
}

/** The arena that a row is about. */
template <typename Row>
constexpr auto arena_columns() {
  return std::array{
      column<Row, &Row::arena>("ARENA", Unit::none, "jemalloc's arena number."),
      text_column<Row, &Row::pool>("POOL", 64, "The arena's pool.")};
}

/** The memory of an arena, or of all arenas of a pool, but for live bytes. */
template <typename Row>
constexpr auto memory_columns() {
  return std::array{
      column<Row, &Row::active_bytes>(
          "ACTIVE_BYTES", Unit::bytes,
          "Pages that hold at least one allocated block."),
      column<Row, &Row::dirty_bytes>(
          "DIRTY_BYTES", Unit::bytes,
          "Unused pages that were not given back. A page that was never "
          "written takes no physical memory and counts as well: "
          "MEMDIAG_LEDGER counts pages in physical memory only."),
      column<Row, &Row::muzzy_bytes>(
          "MUZZY_BYTES", Unit::bytes,
          "Unused pages that the kernel may take when it needs them."),
      column<Row, &Row::resident_bytes>(
          "RESIDENT_BYTES", Unit::bytes,
          "Upper bound of the physical memory: active and dirty pages and "
          "metadata."),
      column<Row, &Row::metadata_bytes>("METADATA_BYTES", Unit::bytes,
                                        "The allocator's bookkeeping."),
      column<Row, &Row::mapped_bytes>(
          "MAPPED_BYTES", Unit::bytes,
          "Address space of active, dirty and muzzy pages and of metadata."),
      column<Row, &Row::retained_bytes>(
          "RETAINED_BYTES", Unit::bytes,
          "Address space without memory, kept for reuse.")};
}

/** jemalloc's decay times in force. */
template <typename Row>
constexpr auto decay_columns(const char *dirty_comment) {
  return std::array{
      column<Row, &Row::dirty_decay_ms>("DIRTY_DECAY_MS", Unit::milliseconds,
                                        dirty_comment),
      column<Row, &Row::muzzy_decay_ms>("MUZZY_DECAY_MS", Unit::milliseconds,
                                        "How long unused pages then stay "
                                        "muzzy. 0: dirty pages go straight to "
                                        "the OS.")};
}

/** Longer texts of stacks are cut. */
inline constexpr uint32_t frames_length = 512;
inline constexpr uint32_t folded_length = 8192;

/** A stack in one line (profile/frames_text.h). */
template <typename Row>
constexpr Column<Row> frames_column() {
  return text_column<Row, &Row::frames>("FRAMES", frames_length,
                                        "The innermost functions that are not "
                                        "the allocator's, from the callee to "
                                        "the caller.");
}

}  // namespace memdiag

#endif  // MEMDIAG_SHARED_COLUMNS_H
