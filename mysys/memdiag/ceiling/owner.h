/*
  Whom the sensor asks about the calling thread's statement, and tells what
  threads do: plugin/memdiag/server/threads/ceiling_owner.cc.

  Ownership: an Owner lives for ever. Threads: any. Each function says where it
  is called. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_OWNER_H
#define MEMDIAG_CEILING_OWNER_H

#include <atomic>
#include <cstdint>

#include "mysys/memdiag/pools/pools.h"

namespace memdiag::ceiling {

/** A thread of a replica takes a block for this. */
enum class Replica_block : uint8_t {
  /** It is none of these. */
  other,
  /** The bytes of an event that is read from the relay log. */
  event,
  /** The rows of the event whose bytes the thread has read. It copies them, and
  frees the bytes. Or the text of a Query event, which keeps its bytes. */
  rows,
  /** An event is applied. */
  applied
};

/** Each function may be null. */
struct Owner {
  /** Wakes the giver. Called from malloc(): it allocates nothing. */
  void (*call_giver)(){nullptr};
  /** The calling thread grew by large_bytes since its statement began or, if
  none has begun, since the last one ended. Or its statement, or at red what it
  does before one, is about to wait.
  Called from malloc(): it allocates nothing, and waits for nothing.
  @return false: to be told again after the next event */
  bool (*is_large)(){nullptr};
  /** The calling thread waits for its client, and has for some seconds. Called
  where it may lock and free.
  @return a file descriptor that can be read when it should be told this again;
          -1: it need not */
  int (*client_is_idle)(){nullptr};
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
  /** Called before a pool is asked for a block of pools::watched_size by a
  thread that runs no statement. */
  Replica_block (*replica_block)(pools::Account){nullptr};
  /** Called before a pool is asked by a thread whose statement has not begun.
  @return true: it reads a packet, or copies a text. The owner calls end() when
  its statement, if there is one, has ended. false: a small statement runs, and
  is a large one */
  bool (*text_comes)(){nullptr};
  /** The calling thread must not wait for others before its statement: others
  may wait for what its session holds, or it was killed. Called before a pool is
  asked. */
  bool (*goes_on)(){nullptr};
  /** The calling thread, which reads a message of the X protocol, serves a
  session with an account that has run a command. */
  bool (*has_account)(){nullptr};
  /** The calling thread's statement names no table, and its session holds
  nothing that others need. So the statement may wait for long while it runs.
  Called from malloc(). */
  bool (*nobody_waits)(){nullptr};
  /** The longest wait of the calling thread's statement before it begins. A
  statement of nobody_waits() may wait as long while it runs. Called from
  malloc(). */
  uint64_t (*longest_wait_us)(){nullptr};
  /** The calling thread is about to wait before it reads an event. It gives up
  the mutex that the receiver and SHOW REPLICA STATUS need. Called before a pool
  is asked.
  @return true: it did, and takes_lock() follows on the same thread */
  bool (*leaves_lock)(){nullptr};
  void (*takes_lock)(){nullptr};
  /** KILL, a time limit or the ceiling ends the calling thread's statement. The
  thread then waits as one that was told to end. Asked before each sleep of a
  wait as well: what the giver must know of the thread is of that moment. Called
  from malloc(). */
  bool (*is_killed)(){nullptr};
  /** The calling thread adds to a value that its session keeps, and does little
  else: to a variable (SET), or to a parameter of a later statement
  (COM_STMT_SEND_LONG_DATA).
  Upstream looks whether it got the memory for that. Called before a pool is
  asked. */
  bool (*keeps_value)(){nullptr};
  /** Another number shows that the calling thread's session may have dropped
  parameters that it was sent: after COM_STMT_RESET, COM_STMT_CLOSE, a PREPARE,
  or a reset of the session. Called before a pool is asked. */
  uint64_t (*drops_of_values)(){nullptr};
  /** The calling thread's statement is executed: it is neither read nor parsed,
  and no packet is read or sent for it. Called before a pool is asked. */
  bool (*is_executing)(){nullptr};
  /** The calling thread's statement writes to a table whose engine knows no
  transactions, and whose code may not look whether a string got its memory: a
  half row would stay. Called before a pool is asked. */
  bool (*writes_for_good)(){nullptr};
  /** The calling thread's statement was told to end, and asks for more. Called
  before a pool is asked: it may allocate and raise an error.
  @return true: it raised one. The caller of the pool looks for the error before
  it uses the block. So the block takes hardly any memory, and the thread does
  not wait */
  bool (*ends_at_once)(){nullptr};
  /** The transaction of the calling thread's session. It is compared with
  another one, and not looked at. Called where a statement writes a row. */
  const void *(*transaction)(){nullptr};
  /** The calling thread must have what it asks for. It commits, or its
  transaction is rolled back, as a whole or in part: both give memory back, and
  a commit holds LOCK_log or the like, for which each other one waits. Or it
  runs SQL within InnoDB, which may hold the latch of a page, and would go on
  with a wrong value of a virtual column. Or InnoDB writes a row of
  INFORMATION_SCHEMA below a latch.
  Or it reads the dictionary, whose objects are kept. Called from malloc(). */
  bool (*must_succeed)(){nullptr};
  /** The calling thread holds a lock of the server's, or of any session, that
  others need at any time. It waits when it has left that; at once for a block
  that is larger than the reserve. Called from malloc(). */
  bool (*holds_lock)(){nullptr};
  /** The calling thread's statement was told to end, and takes a step that an
  error breaks off. Called where it may allocate.
  @return true: there is an error, and the statement ends */
  bool (*breaks_off)(){nullptr};
  /** The calling thread's packet has waited as long as it may. As ends_at_once,
  for what passes no gate, and would be kept by its session.
  @return true: it raised the error, or the wait was that of another's
  parameter, and it goes on */
  bool (*gives_up)(){nullptr};
  /** The calling thread gets no block, because its statement is to end or
  because it waited in vain, for so long. Called before the caller sees that: it
  raises the error of the end, because not every caller does, and an answer
  without the block would be wrong. */
  void (*refused)(uint64_t waited_us){nullptr};
  /** A wait ended without room. Called where a thread may wait. */
  void (*went_on)(uint64_t waited_us, int64_t left_before_bytes){nullptr};
};

/** nullptr: the sensor was never switched on. */
inline constinit std::atomic<const Owner *> owner_in_use{nullptr};

/** Calls a function of the owner.
@return what it said; `otherwise`: there is no such function */
template <typename Result, typename... Parameters>
Result ask_owner(Result (*Owner::*function)(Parameters...), Result otherwise,
                 Parameters... parameters) {
  const Owner *const asked = owner_in_use.load(std::memory_order_acquire);
  return asked == nullptr || asked->*function == nullptr
             ? otherwise
             : (asked->*function)(parameters...);
}

template <typename... Parameters>
void tell_owner(void (*Owner::*function)(Parameters...),
                Parameters... parameters) {
  const Owner *const told = owner_in_use.load(std::memory_order_acquire);
  if (told != nullptr && told->*function != nullptr)
    (told->*function)(parameters...);
}

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_OWNER_H
