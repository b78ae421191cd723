/*
  The sensor of the ceiling: jemalloc calls it on a thread that has allocated
  64 KB more. It charges the account, lets one thread read the kernel when that
  is due, calls the giver when memory is short, and lets a statement's thread
  wait while the level is red.

  switch_on() installs it at first. jemalloc has no way to take it back, so
  after switch_off() each call returns at once. Before the first switch_on()
  there is no call.

  Blocks of 1 MB and more are promised until their pages are touched: the kernel
  says which are. Of the blocks that are smaller, a thread's last one is.

  Only threads with a statement that may wait ever wait: begin() says so.
  Between two statements, such a thread waits before a watched block: its client
  sends a large packet, or the text of one is copied. There it waits for what
  others with such texts are expected to take, by what texts took before.
  Threads wait at two places:
  - in pools::allocate(), before it takes a shard or an arena's flag, for pools
    of statements and sessions, and for triggers and routines that are parsed.
    Pools of InnoDB never wait: their callers hold latches.
  - in jemalloc's callback, after malloc() has the block and before it returns.
    There the thread may be within pools::allocate() and hold a shard. It then
    only charges, and the next ask of the thread waits. While the attention bit
    is set, pools::allocate() marks the thread. A thread that entered it before
    has one event at most, so a thread's first event after the bit was set never
    waits. One of a megabyte and more always may, unless a pool asked for it.

  A thread that serves no statement yet is charged too. It may become one that
  waits: the owner is told when it is large, and may begin its statement then.

  Ownership: a Taker is the calling thread's and lives until its end.
  Threads: any, unless said otherwise. Locks: the mutex of Rounds, to wait.
  Allocates nothing. errno stays.
  Errors: switch_on() returns an errno. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_SENSOR_H
#define MEMDIAG_CEILING_SENSOR_H

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/ceiling/account.h"
#include "mysys/memdiag/ceiling/ask.h"
#include "mysys/memdiag/ceiling/rounds.h"
#include "mysys/memdiag/pools/pool.h"

namespace memdiag::ceiling {

/** A thread is seen after so many bytes. */
constexpr uint64_t interval_bytes = 64 << 10;

extern Account account;
extern Rounds rounds;
extern Tokens tokens;

/** Sums since the server started. */
struct Counters {
  /** Waits of running statements. */
  std::atomic<uint64_t> waits{0};
  std::atomic<uint64_t> wait_us{0};
  std::atomic<uint64_t> longest_wait_us{0};
  /** Waits that ended without room. */
  std::atomic<uint64_t> went_on{0};
  /** Statements that ended because of the ceiling. */
  std::atomic<uint64_t> ended{0};
  /** Statements that did not begin. */
  std::atomic<uint64_t> refused{0};
  /** Bytes of the buffer pool's frames that are given back now. */
  std::atomic<uint64_t> parked_bytes{0};
  /** memdiag_memory_target is not OFF. */
  std::atomic<bool> on{false};
  /** Nor is it WATCH. */
  std::atomic<bool> acts{false};
};
extern Counters counters;

/** The part of a thread that others read. */
struct Taker {
  /** Growth of the thread since its statement began, as of its last event. */
  std::atomic<int64_t> grown_bytes{0};
  std::atomic<bool> told_to_end{false};
  /** It waits for memory. */
  std::atomic<bool> waits{false};
  /** In malloc(), where a block cannot be refused. To end the statement brings
  nothing before it has the block. */
  std::atomic<bool> waits_in_malloc{false};
  /** For so much. */
  std::atomic<int64_t> asks_bytes{0};

  /** What it took, and what it waits for: a block that is larger than the room
  would wait for ever otherwise. */
  int64_t wants_bytes() const {
    return grown_bytes.load(std::memory_order_relaxed) +
           asks_bytes.load(std::memory_order_relaxed);
  }
};

/** A statement that grew so much is told to the owner. */
constexpr int64_t large_bytes = 1 << 20;
/** A statement that grew less does not wait while the target is kept. */
constexpr int64_t small_bytes = 256 << 10;

/** Whom the sensor tells what threads do. Each function may be null. */
struct Owner {
  /** Wakes the giver. Called from malloc(): it allocates nothing. */
  void (*call_giver)(){nullptr};
  /** The calling thread grew by large_bytes since its statement began or, if
  none has begun, since the last one ended. Or its statement, or at red what it
  does before one, is about to wait.
  Called from malloc(): it allocates nothing, and waits for nothing.
  @return false: to be told again after the next event */
  bool (*is_large)(){nullptr};
  /** The calling thread serves a new session. Called where it may lock and
  allocate.
  @return true: before its first statement, it waits as between two others */
  bool (*session_begins)(){nullptr};
  /** The calling thread reads the text of its statement, which begin_late()
  began. What it makes of the text then takes up to a quarter as much again (32
  of bench/workloads/killers.py, json_row, come to 1,182 of 1,200 MB with a
  sixteenth), and the statement cannot end while it does. Called from malloc().
   */
  bool (*is_parsing)(){nullptr};
  /** The calling thread is in the parser of SQL, where no latch is held. It
  parses triggers and routines into blocks of Pool::table_cache, of which InnoDB
  takes some below latches. Called before a pool is asked. */
  bool (*is_in_parser)(){nullptr};
  /** The calling thread copies the text of its statement, and has not begun to
  parse it. Upstream looks whether it got the memory for that. Called before a
  pool is asked. */
  bool (*is_before_parser)(){nullptr};
  /** The calling thread, whose statement has not begun, serves no client that
  sends one: it sends the binary log, clones, fetches rows of a cursor, or is
  the server's own. It neither waits nor is expected to take anything: what it
  does may last as long as the server. Called before a pool is asked. */
  bool (*never_waits)(){nullptr};
  /** Called before a pool is asked by a thread whose statement has not begun.
  @return true: it reads a packet, or copies a text. The owner calls end() when
  its statement, if there is one, has ended. false: a small statement runs, and
  is a large one */
  bool (*text_comes)(){nullptr};
  /** The calling thread must not wait for others for long: they may wait for
  what its session holds, or it was killed. Called from malloc(). */
  bool (*goes_on)(){nullptr};
  /** How long the calling thread's statement may wait before it begins, or
  while nothing else waits for it. Called from malloc(). */
  uint64_t (*longest_wait_us)(){nullptr};
  /** KILL, a time limit or the ceiling ends the calling thread's statement. The
  thread then waits as one that was told to end. Called from malloc(). */
  bool (*is_killed)(){nullptr};
  /** The calling thread adds to a value that its session keeps, and does little
  else: to a variable (SET), or to a parameter of a later statement
  (COM_STMT_SEND_LONG_DATA).
  Upstream looks whether it got the memory for that. Called before a pool is
  asked. */
  bool (*keeps_value)(){nullptr};
  /** The calling thread's statement is executed: it is neither read nor parsed.
  Called before a pool is asked. */
  bool (*is_executing)(){nullptr};
  /** The calling thread's statement was told to end, and asks for more. Called
  before a pool is asked: it may allocate and raise an error.
  @return true: it raised one that the caller of the pool looks for before it
  uses the block. So the block takes hardly any memory, and nobody waits */
  bool (*ends_at_once)(){nullptr};
  /** The calling thread's packet has waited as long as it may. As ends_at_once,
  for what passes no gate, and would be kept by its session.
  @return true: it raised the error */
  bool (*gives_up)(){nullptr};
  /** The calling thread gets no block, because its statement is to end or
  because it waited in vain for a value that its session keeps. Called before
  the caller sees that: it raises the error of the end, because not every caller
  does, and an answer without the block would be wrong. */
  void (*refused)(){nullptr};
  /** A wait ended without room. Called where a thread may wait. */
  void (*went_on)(uint64_t waited_us, int64_t left_before_bytes){nullptr};
};

/** @param owner  lives for ever
@return 0, or an errno: there is no sensor. One thread at a time */
int switch_on(const Owner *owner);
void switch_off();

/** False: threads are charged, and never wait. They ask from the moment on when
one of them sees that memory is short, whatever the giver does meanwhile. */
void let_threads_wait(bool may_wait);
/** The level is green again, or not: threads ask before they allocate. Nothing
happens while another thread says so. */
void let_threads_ask(bool ask);

/** The calling thread's statement begins.
@param expected_bytes  what it will take, as far as is known */
Taker *begin(int64_t expected_bytes);
/** A statement begins that is known to be small. If it grows large even so, the
owner is told, and may begin it then with begin_late().
@return false: memory is short, or it has begun already */
bool begin_small();
/** It has begun already, and its growth so far counts.
@param parses  its text may be parsed still */
Taker *begin_late(bool parses);
/** How long the calling thread waited before it read the large packet of its
statement. */
uint64_t waited_for_text_us();
/** It has ended. Nothing happens if none has begun.
@return the most that it grew by, as of its events */
int64_t end();

/** The calling thread serves a new session. */
void session_begins();
/** The calling thread never waits until it begins another statement, or until
this is taken back: its statement is exempt. */
void exempt_thread(bool exempt);

/** A new connection waits while the level is red, for a second at most. */
void before_connection();

/** @name What jemalloc and the pools call; for tests @{ */
void on_event(bool by_allocation, uint64_t allocated, uint64_t freed);
bool on_ask(Pool pool, size_t size);
void on_allocated(const void *block, size_t size);
void on_freed(const void *block);
/** @} */

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_SENSOR_H
