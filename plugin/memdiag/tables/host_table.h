/*
  The columns of INFORMATION_SCHEMA.MEMDIAG_HOST.
*/

#ifndef MEMDIAG_HOST_TABLE_H
#define MEMDIAG_HOST_TABLE_H

#include "plugin/memdiag/host/host.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

inline constexpr Table host_table = [] {
  using Row = host::Row;
  return Table{
      "MEMDIAG_HOST",
      "One row for each figure of the machine, the kernel's settings and the "
      "control group that determines how much memory the server has. A feature "
      "that this machine lacks has no row: pressure stall information, a "
      "control group, swap accounting, several NUMA nodes.",
      0x0100,
      std::array{
          text_column<Row, &Row::subject>(
              "SUBJECT", 16,
              "memory, process, cgroup, pressure, kernel, huge_pages, oom, "
              "numa, device."),
          text_column<Row, &Row::name>(
              "NAME", 64,
              "The figure, by the kernel's name. Some are computed. "
              "effective_limit of cgroup is the lowest limit of the group and "
              "those above it, and effective_usage the use of the group that "
              "has it. effective_room is the least that is free below one of "
              "these limits, not counting page cache that the kernel takes "
              "back first, and room_limit is that limit. safe_limit is how low "
              "the limit of the group of "
              "effective_limit may be set now without a kill "
              "(docs/container-limits.md). pool.NAME of huge_pages is that "
              "pool's memory in huge pages, at most a minute old where reading "
              "it takes less than half a second (Linux 6.7 and later)."),
          column<Row, &Row::number>(
              "NUMBER", Unit::none,
              "The figure, in UNIT. NULL: it is a word, the limit is off, or "
              "it could not be read."),
          text_column<Row, &Row::value>(
              "VALUE", 512,
              "The figure if it is a word; of several choices the one in "
              "force. max: the limit is off."),
          text_column<Row, &Row::unit>("UNIT", 16,
                                       "Unit of NUMBER. Empty: none."),
          text_column<Row, &Row::source>(
              "SOURCE", 512,
              "The file or system variable that it was read from.")}};
}();

static_assert(fingerprint(host_table) == 1545526197u,
              "columns changed: raise the table's version, then set this");

}  // namespace memdiag

#endif  // MEMDIAG_HOST_TABLE_H
