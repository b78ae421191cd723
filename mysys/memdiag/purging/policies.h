/*
  Policies: when a pool's unused pages go back to the system. pool_list.h
  declares them, and server variables change them at run time.

  A variable holds a list "pool=value,...", where `all` stands for every pool
  that can have the policy. Of several entries for a pool the last counts. Times
  go up to an hour. A dirty_limit may end in K, M or G. A pool that the list
  does not name has the declared value. So the list is the whole state, fit for
  SET PERSIST.

  Threads: any. Reading is a relaxed load; changing takes a mutex.
  Errors: a list is taken as a whole or not at all.
  Units: milliseconds, bytes.
*/

#ifndef MEMDIAG_POLICIES_H
#define MEMDIAG_POLICIES_H

#include <cstdint>
#include <string>
#include <string_view>

#include "mysys/memdiag/pools/pool.h"

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

/** The value in force. -2 is a decay time as jemalloc's options say, of a pool
that uses_malloc() and that no list names. */
int64_t get(Policy policy, Pool pool);

/** Take a list over. @return empty, or what is wrong with it */
std::string set(Policy policy, std::string_view list);

/** The fault of a list, in words, or empty; changes nothing. */
std::string check(Policy policy, std::string_view list);

/** Values of the server's variables, in the order of Policy. It sets them while
it reads its command line, and keeps them. */
extern const char *options[policy_count];

/** Take the options over, at start-up. Lists before the first wrong one are in
force; later ones are not looked at. @return as set() */
std::string apply_options();

/** Around fork(), see mysys/memdiag/fork.cc: the mutex is held. */
void hold() noexcept;
void let_go() noexcept;

}  // namespace policies
}  // namespace memdiag

#endif  // MEMDIAG_POLICIES_H
