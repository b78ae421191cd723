/*
  What each holder of the list (holder_list.h) has, of figures that the
  collectors took.

  An instrument counts for one holder: for the one whose beginning of a name
  fits most of it. A holder with a pool of its own has the rest of that pool.
  Resident bytes are estimated as MEMDIAG_INSTRUMENTS does: each instrument of a
  pool has the same resident part. All holders together have no more of a pool
  than is resident of it.

  Pure functions. Threads: any. Units: bytes. Errors: an unknown figure counts
  as none, and std::bad_alloc is thrown.
*/

#ifndef MEMDIAG_HOLDINGS_H
#define MEMDIAG_HOLDINGS_H

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "mysys/memdiag/routes/routes.h"
#include "plugin/memdiag/advice/holder_list.h"
#include "plugin/memdiag/allocator/allocator_snapshot.h"
#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/ledger/instruments.h"

namespace memdiag::advisor {

/** A client's session, and the most that it can hold: what Performance Schema
counts for it, but no more of an instrument than lives of it at all. */
struct Session {
  uint64_t processlist_id;
  uint64_t bytes;
  /** Its end rolls back what it has changed. */
  bool in_transaction{false};
  /** It is the one that asks. */
  bool reads_this{false};
  /** It waits for a statement. */
  bool is_idle{false};
};

struct Holding {
  const Holder *holder;
  /** Resident, as far as that is known of the pools. */
  uint64_t bytes;
  uint64_t allocated_bytes;
  /** The one that has most of it; empty: it lies in none. */
  std::optional<Pool> pool{};
  /** The session that has at least half of it, with its part. */
  std::optional<Session> owner{};
  /** Performance Schema counts so much of it for somebody. Empty: it has no
  instrument of it. */
  Reading counted_bytes{};
};

/** Tables in the table caches, and temporary tables that sessions created:
their memory has the same names. */
struct Tables {
  uint64_t temporary{0};
  /** Of InnoDB's definitions of those. */
  uint64_t temporary_heap_bytes{0};
  /** InnoDB's other definitions. */
  uint64_t definitions{0};
  uint64_t heap_bytes{0};
  /** Instances in the table cache. */
  uint64_t open{0};
};

/** What the functions below are made of. All are valid during the call. */
struct Holding_figures {
  std::span<const Pool_row, pool_count> pools;
  /** Of each pool's live bytes. */
  instruments::Shares resident_shares;
  std::span<const routes::Row> routes;
  /** For what malloc() serves: pools do not count it. */
  std::span<const instruments::Counted> counted;
  /** What threads that send the binary log have of
  memory/sql/String::value. */
  uint64_t dump_thread_bytes;
  /** What programs of triggers have of memory/sql/sp_head::main_mem_root. */
  uint64_t trigger_bytes;
  /** Resident, of mapped files of temporary tables. */
  Reading temp_table_file_bytes;
  Tables tables;
  /** The session that can hold most, and what it holds. */
  std::optional<uint64_t> largest_processlist_id;
  std::span<const instruments::Held> held_by_largest;
  /** Resident: pages that the allocator did not take, and those of files that
  are neither programs nor temporary tables. */
  uint64_t beside_allocator_bytes{0};
  uint64_t mapped_file_bytes{0};
  /** The session with most of innodb_heaps. */
  std::optional<Session> most_heaps{};
};

/** The instrument of all heaps of InnoDB. */
inline constexpr std::string_view innodb_heaps = "memory/innodb/memory";

/** The holder of an instrument or a place in its pool. nullptr: none. */
const Holder *holder_of(std::string_view instrument, Pool pool);

/** Those that have anything, in the order of the list. */
std::vector<Holding> holdings(const Holding_figures &figures);

}  // namespace memdiag::advisor

#endif  // MEMDIAG_HOLDINGS_H
