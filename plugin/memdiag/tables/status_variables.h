/*
  The status variables, Memdiag_*: totals, and two figures of each pool in the
  list of pools. Numbers only, so that exporters that
  collect SHOW GLOBAL STATUS pick them up.

  Free of the server's headers: status_server.h registers them, and the
  reference page is made from here.
*/

#ifndef MEMDIAG_STATUS_VARIABLES_H
#define MEMDIAG_STATUS_VARIABLES_H

#include <array>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/profiling/profiler.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/ceiling/figures.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/tables/column.h"

namespace memdiag {

struct Status_variable {
  const char *name;
  Unit unit;
  const char *comment;
  /** SHOW GLOBAL STATUS calls it under LOCK_status, which each disconnect
  needs: it must not wait for another thread. Empty is shown as an empty text.
*/
  Reading (*value)(const Snapshot &);
};

namespace detail {

template <auto member>
Reading total(const Snapshot &snapshot) {
  return snapshot.allocator.*member;
}

template <auto member>
Reading sum_of_pools(const Snapshot &snapshot) {
  uint64_t sum = 0;
  for (const Pool_row &pool : snapshot.pools) sum += pool.*member;
  return sum;
}

template <size_t pool, auto member>
Reading of_pool(const Snapshot &snapshot) {
  return snapshot.pools[pool].*member;
}

}  // namespace detail

inline constexpr auto status_variables = std::to_array<Status_variable>({
    {"Memdiag_allocated_bytes", Unit::bytes,
     "ALLOCATED_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::allocated_bytes>},
    {"Memdiag_active_bytes", Unit::bytes, "ACTIVE_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::active_bytes>},
    {"Memdiag_metadata_bytes", Unit::bytes,
     "METADATA_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::metadata_bytes>},
    {"Memdiag_resident_bytes", Unit::bytes,
     "RESIDENT_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::resident_bytes>},
    {"Memdiag_mapped_bytes", Unit::bytes, "MAPPED_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::mapped_bytes>},
    {"Memdiag_retained_bytes", Unit::bytes,
     "RETAINED_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::retained_bytes>},
    {"Memdiag_dirty_bytes", Unit::bytes, "DIRTY_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::dirty_bytes>},
    {"Memdiag_muzzy_bytes", Unit::bytes, "MUZZY_BYTES of MEMDIAG_ALLOCATOR.",
     detail::total<&Allocator_row::muzzy_bytes>},
    {"Memdiag_cached_bytes", Unit::bytes,
     "CACHED_BYTES of all pools in MEMDIAG_POOLS.",
     [](const Snapshot &snapshot) {
       Reading sum = 0;
       for (const Pool_row &pool : snapshot.pools)
         // Pools that use malloc() have none of their own.
         if (!pool.live_bytes || pool.cached_bytes)
           sum = memdiag::sum(sum, pool.cached_bytes);
       return sum;
     }},
    {"Memdiag_purges", Unit::count, "PURGES of all pools in MEMDIAG_POOLS.",
     detail::sum_of_pools<&Pool_row::purges>},
    {"Memdiag_purged_bytes", Unit::bytes,
     "PURGED_BYTES of all pools in MEMDIAG_POOLS.",
     detail::sum_of_pools<&Pool_row::purged_bytes>},
    {"Memdiag_purge_microseconds", Unit::microseconds,
     "PURGE_MICROSECONDS of all pools in MEMDIAG_POOLS.",
     detail::sum_of_pools<&Pool_row::purge_us>},
    {"Memdiag_safe_limit", Unit::bytes,
     "safe_limit of MEMDIAG_HOST: how low the limit of the control group may "
     "be set now without a kill. Empty: not known, or there is no control "
     "group.",
     [](const Snapshot &) {
       // SHOW GLOBAL STATUS holds a mutex that each disconnect needs. The
       // sampler reads the files each second by default; here they are read
       // only if it does not.
       constexpr uint64_t max_age_us = 2'000'000;
       return limits::now(max_age_us).safe_bytes;
     }},
    {"Memdiag_profile_dropped_samples", Unit::count,
     "Samples that found no room in memdiag_profile_memory since the profiler "
     "was switched on; 0 while it is off.",
     [](const Snapshot &) -> Reading {
       const profiling::View view;
       return view ? view.status().dropped_samples : 0;
     }},
    {"Memdiag_profile_dropped_stacks", Unit::count,
     "Samples whose stack found no room. MEMDIAG_PROFILE has them in the row "
     "whose STACK is NULL.",
     [](const Snapshot &) -> Reading {
       const profiling::View view;
       return view ? view.status().dropped_stacks : 0;
     }},
#define MEMDIAG_CEILING_FIGURE(variable, unit, metric, metric_unit, kind, \
                               value, meaning)                            \
  {"Memdiag_ceiling_" #variable, Unit::unit, meaning,                     \
   [](const Snapshot &) -> Reading {                                      \
     const ceiling::Figures now = ceiling::figures();                     \
     [[maybe_unused]] constexpr Reading when_off = 0;                     \
     return value;                                                        \
   }},
#include "plugin/memdiag/ceiling/figure_list.h"
#undef MEMDIAG_CEILING_FIGURE
#define MEMDIAG_POOL(id, lifetime, shards, cached_max, quiet_ms, dirty_ms, \
                     muzzy_ms, purpose)                                    \
  {"Memdiag_pool_" #id "_live_bytes", Unit::bytes,                         \
   "LIVE_BYTES of the pool in MEMDIAG_POOLS.",                             \
   detail::of_pool<static_cast<size_t>(Pool::id), &Pool_row::held_bytes>}, \
      {"Memdiag_pool_" #id "_resident_bytes", Unit::bytes,                 \
       "RESIDENT_BYTES of the pool in MEMDIAG_POOLS.",                     \
       detail::of_pool<static_cast<size_t>(Pool::id),                      \
                       &Pool_row::resident_bytes>},
#include "mysys/memdiag/pools/pool_list.h"
#undef MEMDIAG_POOL
});

}  // namespace memdiag

#endif  // MEMDIAG_STATUS_VARIABLES_H
