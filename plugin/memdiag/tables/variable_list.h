/*
  Every system variable of this product, declared once: server/variables.cc
  registers them, and the reference page is made from here.

  Free of the server's headers.
*/

#ifndef MEMDIAG_VARIABLE_LIST_H
#define MEMDIAG_VARIABLE_LIST_H

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace memdiag {

/** All are global. */
struct System_variable {
  enum class Type : uint8_t {
    /** Text: entries separated by commas. The default is empty. */
    list,
    boolean,
    number,
    bytes,
    /** One of profile_modes. */
    profile_mode,
    /** OFF, WATCH, AUTO or bytes (ceiling/target.h). The default is AUTO. */
    memory_target
  };
  enum class Changed : uint8_t {
    /** Only by option or option file, when the server starts. */
    at_start,
    /** By SET GLOBAL and SET PERSIST, too. */
    any_time
  };

  const char *name;
  Type type;
  Changed changed;
  /** For a boolean 0 or 1, for a mode its position. */
  uint64_t default_value;
  uint64_t min;
  uint64_t max;
  /** Shown by mysqld --help and on the reference page. */
  const char *comment;
};

/** In the order of profile_switch::Mode. */
inline constexpr const char *profile_modes[] = {"OFF", "ON", "RECORD"};

inline constexpr auto system_variables = [] {
  using enum System_variable::Type;
  using enum System_variable::Changed;
  return std::to_array<System_variable>({
      {"memdiag_routes", list, at_start, 0, 0, 0,
       "Assigns routes to other pools than the built-in ones. A list of "
       "route=pool. A route is the name of a memory instrument, or the "
       "beginning of several names, as INFORMATION_SCHEMA.MEMDIAG_ROUTES shows "
       "them. If several entries match, the last one counts. Example: "
       "memory/sql/NET=general,mem_heap/row=statement"},
      {"memdiag_disabled_pools", list, at_start, 0, 0, 0,
       "Pools that are not used, or all. Their memory comes from malloc(). "
       "Without the pool connection, malloc() of connection threads takes from "
       "jemalloc's automatic arenas; without group_replication, that of the "
       "plugin's threads does"},
      {"memdiag_quiet_ms", list, any_time, 0, 0, 0,
       "How long a pool must be quiet before its unused pages are purged. A "
       "list of pool=milliseconds or all=milliseconds, 0 to 3600000. 0 leaves "
       "a "
       "pool to decay"},
      {"memdiag_dirty_decay_ms", list, any_time, 0, 0, 0,
       "How long unused pages of a busy pool stay dirty (jemalloc's "
       "dirty_decay_ms). A list of pool=milliseconds or all=milliseconds, -1 "
       "to "
       "3600000. -1 keeps them"},
      {"memdiag_muzzy_decay_ms", list, any_time, 0, 0, 0,
       "How long unused pages stay muzzy after they were dirty (jemalloc's "
       "muzzy_decay_ms). A list of pool=milliseconds or all=milliseconds, -1 "
       "to "
       "3600000. -1 keeps them"},
      {"memdiag_dirty_limit", list, any_time, 0, 0, 0,
       "Dirty bytes above which a pool is purged during a burst. A list of "
       "pool=bytes or all=bytes, with K, M or G. 0 is no limit"},
      {"memdiag_scope_survivors", boolean, any_time, 0, 0, 1,
       "Counts the memory that statements, transactions and sessions leave "
       "behind in pools of their lifetime: "
       "INFORMATION_SCHEMA.MEMDIAG_SURVIVORS. Setting it to ON starts at zero. "
       "While it is ON, each block of a pool costs some nanoseconds more, and "
       "each session's thread takes 26 KiB"},
      {"memdiag_sessions", boolean, any_time, 0, 0, 1,
       "Counts the memory that sessions hold in pools and that statements "
       "take: "
       "INFORMATION_SCHEMA.MEMDIAG_SESSIONS and MEMDIAG_DIGESTS. Setting it to "
       "ON starts at zero. While it is ON, each block of a pool costs some "
       "nanoseconds more, and the end of each statement takes a mutex briefly"},
      {"memdiag_history_interval_ms", number, any_time, 1000, 0, 3600 * 1000,
       "Milliseconds between two samples of the server's memory for "
       "INFORMATION_SCHEMA.MEMDIAG_HISTORY. 0 takes one at the start and one "
       "at the shutdown"},
      {"memdiag_history_samples", number, at_start, 3600, 10, 86400,
       "Samples that INFORMATION_SCHEMA.MEMDIAG_HISTORY keeps of this run, and "
       "as many of earlier runs"},
      {"memdiag_profile", profile_mode, any_time, 0, 0, 2,
       "Samples the blocks that the server allocates, with their stacks: "
       "INFORMATION_SCHEMA.MEMDIAG_PROFILE. Blocks from before are not "
       "included. OFF: no samples are taken, and earlier ones are dropped. ON: "
       "samples are taken from now on. RECORD: the stacks are also written to "
       "a file in the data directory, so that "
       "INFORMATION_SCHEMA.MEMDIAG_LAST_RUN_PROFILE has them after the server "
       "was killed"},
      // 0 is no power of two and refused as such. A minimum of 1 would turn it
      // into a sample of each block.
      {"memdiag_profile_sample_bytes", bytes, any_time, 512 << 10, 0, 1 << 30,
       "Bytes that a thread allocates between two samples, on average. A power "
       "of two. Another number is an error; as an option of the start it is "
       "kept, and memdiag_profile cannot be switched on. While memdiag_profile "
       "is not OFF, setting it drops all samples "
       "and begins anew. A sampled block of up to 4 KiB takes 8 KiB while it "
       "lives"},
      {"memdiag_profile_memory", bytes, any_time, 32 << 20, 2 << 20,
       uint64_t{4} << 30,
       "Memory for samples and stacks of memdiag_profile. Half of it holds "
       "samples; status variable Memdiag_profile_dropped_samples counts those "
       "that found no room. While memdiag_profile is not OFF, setting it drops "
       "all samples and begins anew"},
      {"memdiag_memory_target", memory_target, any_time, 0, 0, 0,
       "The ceiling of the server's memory. OFF: none. AUTO: some percent "
       "below the lowest limit of the control group and those above it; "
       "without a limit it does nothing. A number of bytes, which K, M, G or T "
       "may follow, 16M at least: that. Below it, the server gives unused "
       "pages and frames "
       "of the buffer pool back, lets statements wait while there is little "
       "room, and ends the statement that grew most when there is none. WATCH: "
       "as AUTO, but it only records what it would do. "
       "INFORMATION_SCHEMA.MEMDIAG_CEILING lists what was given back, and "
       "which statements waited to begin, ended or went on without room; "
       "status variable Memdiag_ceiling_refused also counts blocks, values and "
       "messages that were refused. A value that cannot be used is a warning "
       "when the server starts, and OFF (docs/ceiling.md)"},
      {"memdiag_memory_wait_ms", number, any_time, 50000, 0, 3600 * 1000,
       "How long a statement waits for memory at most, in milliseconds, before "
       "it begins, while memdiag_memory_target leaves no room for it. Then it "
       "gets an error. max_execution_time of a SELECT ends the wait earlier"},
  });
}();

/** Fails to compile for a name that is not in the list. */
consteval const System_variable &system_variable(std::string_view name) {
  for (const System_variable &variable : system_variables)
    if (variable.name == name) return variable;
  throw std::invalid_argument("no such system variable");
}

}  // namespace memdiag

#endif  // MEMDIAG_VARIABLE_LIST_H
