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

  Threads with a statement that may wait do wait: begin() says so. Between two
  statements, such a thread waits before a watched block and, while threads ask,
  before one of 64 KB: its client sends a large packet, or the text of one is
  copied. There it waits for what others with such texts are expected to take,
  by what texts took before. Without a statement, these wait: a thread that
  reads large events of a replica (loose_blocks.h), one that accepts a
  connection (before_connection()), and one that reads a message of a client
  that connects (wait_to_connect()). Threads wait at two places:
  - in pools::allocate(), before it takes a shard or an arena's flag, for pools
    of statements and sessions, and for triggers and routines that are parsed.
    Pools of InnoDB never wait: their callers hold latches. Where InnoDB calls
    the SQL layer below one, Owner::must_succeed says so.
  - in jemalloc's callback, after malloc() has the block and before it returns.
    There the thread may be within pools::allocate(), and hold a shard or, where
    malloc() serves InnoDB's heaps, a latch. It then only charges, and the next
    ask of the thread waits. While the attention bit is set, pools::allocate()
    marks the thread. A thread that entered it before has one event at most, so
    a thread's first event after the bit was set never waits. One of a megabyte
    and more always may, unless a pool asked for it.

  A thread that serves no statement yet is charged too. It may become one that
  waits: the owner is told when it is large, and may begin its statement then.

  What a thread took is in taken.h, or in loose_blocks.h if none of its
  statements took it, how it waits in waiting.h, whom the sensor
  asks in owner.h, and what the giver sees of it in taker.h.

  Ownership: a Taker is the calling thread's and lives until its end.
  Threads: any, unless said otherwise. Locks: the mutex of Rounds, to wait, and
  that of Loose_blocks.
  Allocates nothing. errno stays.
  Errors: switch_on() returns an errno. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_SENSOR_H
#define MEMDIAG_CEILING_SENSOR_H

#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/ceiling/owner.h"
#include "mysys/memdiag/ceiling/taker.h"
#include "mysys/memdiag/pools/pool.h"

namespace memdiag::ceiling {

/** @param owner  lives for ever
@return 0, or an errno: there is no sensor. One thread at a time */
int switch_on(const Owner *owner);
void switch_off();

/** False: threads are charged, and never wait. They ask from the moment on when
one of them sees that memory is short, whatever the giver does meanwhile. */
void let_threads_wait(bool may_wait);
/** The kernel counts what was touched of loose_blocks. The giver calls it in
each round. */
void see_loose_blocks();
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
/** The calling thread takes a step that looks for no KILL, and can break it off
with an error.
@return true: its statement was told to end, and the error is raised */
bool ends_now();
/** The calling thread's transaction may take so much when it commits, and
others as much at the same time; or the thread never waits. */
bool commit_is_small(int64_t bytes);
/** The transaction of the calling thread's statement will take so much when it
commits. The statement waits for that, where it may. The bytes are promised
until the transaction has ended, as far as the thread has not taken them.
@return false: it must end, and the error is raised */
bool room_for_commit(int64_t bytes);
/** The calling thread's transaction has ended: nothing more is promised to it.
 */
void transaction_ended();
/** A statement of it has ended, and it goes on.
@param undone  the statement was rolled back: no more is promised than before */
void part_of_transaction_ended(bool undone);
/** The calling thread waits for its client, and has for some seconds. */
void client_sleeps();
/** That wait is over. */
void client_is_back();
/** How long the calling thread waited before it read the large packet of its
statement, and the parts of a parameter before that. */
uint64_t waited_for_text_us();
/** It waited in vain. */
bool text_waited_in_vain();
/** The statement has waited for what its text takes, as far as is known. */
bool text_is_expected();
/** The calling thread's statement asks to begin. What the parts of a long
parameter waited counts for one that is executed with it, and for no other.
@param executes  it may be that one */
void see_value(bool executes);
/** The parts that the calling thread's session was sent are gone, or no longer
count: the next one waits as the first of another value.
@return there were some */
bool value_dropped();
/** It has ended. Nothing happens if none has begun.
@return the most that it grew by, as of its events */
int64_t end();

/** @name A message of the X protocol
The plugin reads it with malloc(), into objects that cannot be refused. So it
waits before it is read, as a packet does, and between its parts at red. @{ */
/** The calling thread is about to read it.
@param connects  a client may send such a message before its account is known
@return false: it waited in vain, and the client may have no account */
bool message_comes(size_t size, bool connects);
/** It is about to read a part of the message.
@return false: it waited in vain for what the message becomes */
bool message_goes_on();
/** The message's memory is freed. Nothing happens if its statement has ended.
 */
void message_ended();
/** @} */

/** The calling thread's statement is about to copy so much of its answer with
malloc(), in small blocks that cannot be refused: the X plugin does.
@return false: it must not, and the error was raised */
bool value_comes(size_t size);

/** The calling thread got no block because of an ask, and the error of that was
raised. True once for each block. */
bool error_is_raised();

/** The calling thread serves a new session. */
void session_begins();
/** The calling thread never waits until it begins another statement, or until
this is taken back: its statement is exempt. */
void exempt_thread(bool exempt);

/** While it lives, the calling thread never waits: it takes a step of the
giver, or holds a lock, and all others would wait for it. It is charged
afterwards for what it takes. One may live within another. */
class No_wait {
 public:
  No_wait();
  ~No_wait();
  No_wait(const No_wait &) = delete;
  No_wait &operator=(const No_wait &) = delete;

 private:
  const bool m_was_busy;
};

/** A thread that was made for new connections waits before its first one while
the level is red, for a second at most. */
void before_connection();

/** @name What jemalloc and the pools call; for tests @{ */
void on_event(bool by_allocation, uint64_t allocated, uint64_t freed);
bool on_ask(Pool pool, size_t size, pools::Account account = 0);
void on_allocated(const void *block, size_t size);
void on_freed(const void *block);
/** @} */

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_SENSOR_H
