/*
  When a pool's unused pages go back to the system: what mysys/memdiag/pools/pool_list.h
  declares, as changed at run time.

  A policy is changed by a list "pool=value,...", where `all` stands for every
  pool that can have the policy; a pool that the list does not name has what is
  declared. So the list is the whole state, fit for SET PERSIST.

  Threads: any. Reading is a relaxed load; changing takes a mutex.
  Errors: a list is taken as a whole or not at all.
*/

#ifndef MEMDIAG_POLICIES_H
#define MEMDIAG_POLICIES_H

#include <cstdint>
#include <string>
#include <string_view>

#include "mysys/memdiag/pools/pools.h"

namespace memdiag {

enum class Policy : uint8_t {
  /** Pages go back when the pool has been quiet for so many milliseconds; 0:
  not for that reason. */
  quiet_ms,
  /** jemalloc's decay times; -1: never. */
  dirty_decay_ms,
  muzzy_decay_ms,
  /** Bytes of dirty pages above which they go back in the midst of a burst; 0:
  no limit. */
  dirty_limit,
  count
};
constexpr size_t policy_count = static_cast<size_t>(Policy::count);

namespace policies {

/** What is in force. -2 for a decay time of a pool that is_mallocs() and that
no list names: as jemalloc's options say. */
int64_t get(Policy policy, Pool pool);

/** Take a list over. @return empty, or what is wrong with it */
std::string set(Policy policy, std::string_view list);

/** What is wrong with a list, or empty; changes nothing. */
std::string check(Policy policy, std::string_view list);

/** Values of the server's variables, in the order of Policy. It sets them while
it reads its command line, and keeps them. */
extern const char *options[policy_count];

/** Take the options over, at start-up. @return as set() */
std::string apply_options();

}  // namespace policies
}  // namespace memdiag

#endif  // MEMDIAG_POLICIES_H
