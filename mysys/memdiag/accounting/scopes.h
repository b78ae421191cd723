/*
  Scope survivors: what a statement, a transaction or a session took from a pool
  of that lifetime and has not freed at its end. It may be a leak, or kept on
  purpose: a session keeps the first block of its memory root. In both cases the
  pool cannot give it back although nothing is at work.

  Counted only while it is asked for. A thread sums, for each route, the bytes
  that it allocated minus those that it freed. When one of its scopes ends, the
  sum is added to the route's survivors; a negative one reduces them. Threads
  that serve no session (InnoDB's own, replica appliers) end no scope, so
  survivors that they free are not subtracted until the route is empty. A row
  therefore never shows more than the live bytes of its route.

  Threads: any. Noting takes no lock; the end of a scope that leaves something
  takes a mutex.
  Memory: a thread's first block, or first end of a scope, takes 27 KB from
  malloc(), which the thread keeps until it ends. Errors: without it the thread
  is not counted. What its last destructors free is not counted either.
  Units: bytes of size classes; microseconds since the epoch.
*/

#ifndef MEMDIAG_SCOPES_H
#define MEMDIAG_SCOPES_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mysys/memdiag/pools/pool.h"

namespace memdiag {

enum class Scope : uint8_t { statement, transaction, session };
constexpr size_t scope_count = 3;
inline constexpr const char *scope_names[scope_count] = {
    "statement", "transaction", "session"};

namespace detail {
/** By pool: its blocks are noted as they come and go. */
inline constexpr auto scopes_of_pools = [] {
  std::array<std::optional<Scope>, pool_count> of_pools{};
  for (size_t pool = 0; pool < pool_count; ++pool)
    for (size_t i = 0; i < scope_count; ++i)
      if (std::string_view{pool_specs[pool].lifetime} == scope_names[i])
        of_pools[pool] = static_cast<Scope>(i);
  return of_pools;
}();
}  // namespace detail

/** The scope that ends a pool's lifetime; none for caches and the server's. */
constexpr std::optional<Scope> scope_of(Pool pool) {
  return detail::scopes_of_pools[static_cast<size_t>(pool)];
}

namespace scopes {

/** Start counting from zero, or stop. What was counted stays on show. */
void track(bool on);

/** A scope of the calling thread has ended. */
void ended(Scope scope);

struct Row {
  std::string route;
  const char *pool_name;
  const char *scope_name;
  uint64_t bytes;
  uint64_t blocks;
  /** Scopes that left more than they found, since the route last had no
  survivors. */
  uint64_t scopes;
  /** When the first and the last of those ended. */
  uint64_t since_us;
  uint64_t last_us;
  /** From since_us to now: no survivor is older. */
  double age_s;
};

/** Routes that have survivors. @throws std::bad_alloc */
std::vector<Row> survivors();

/** Listens to block events while tracking is on. */
void note(Pool pool, pools::Account account, int64_t bytes) noexcept;

/** Around fork(), see mysys/memdiag/fork.cc: the mutex is held. */
void hold() noexcept;
void let_go() noexcept;

}  // namespace scopes
}  // namespace memdiag

#endif  // MEMDIAG_SCOPES_H
