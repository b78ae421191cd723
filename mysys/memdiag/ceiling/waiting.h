/*
  How the calling thread waits for memory.

  Threads: any. Locks: the mutex of Rounds, to wait. Works within malloc(): it
  allocates nothing. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_WAITING_H
#define MEMDIAG_CEILING_WAITING_H

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "mysys/memdiag/ceiling/ask.h"
#include "mysys/memdiag/ceiling/taken.h"

namespace memdiag::ceiling {

constexpr uint64_t look_again_us = 50'000;

/** See let_threads_wait(). */
inline constinit std::atomic<bool> may_wait{false};

/** Reads the kernel if enough was charged since the last reading. */
void read_if_due();
/** The owner is told of a large statement until it listens. */
void tell_large(Thread *self);

/** How a wait may end without room. */
struct May {
  Refusal refusal{Refusal::never};
  /** Raise an error: the thread is not within malloc(). */
  bool raise{false};
  /** The statement has taken less than small_bytes, and asks for no large
  block. It waits only behind has_room_for_small(), for longest_small_us in all.
*/
  bool small{false};
};
/** A small statement leaves its wait where it would not enter one. To
wait until the level is red no more would take the longest wait there is: other
statements take the room first. */
inline bool has_room_for_small(const Account &account) {
  return account.left_bytes() >= -account.marks().reserve_bytes / 4;
}
constexpr uint64_t longest_small_us = 200'000;

/** See Owner::ends_at_once. */
bool ends_at_once(const Thread *self);

/** @param bytes  are promised
@return false: the block is refused */
bool wait(Thread *self, int64_t bytes, May may);

/** An event takes the bytes that are read, its rows, the values that a worker
makes of them, and the rows that it packs for the server's own binary log:
patches/diets/0056-applied-rows.patch and 0057-packed-rows.patch. The bytes of
an UPDATE have its row before and after, and so do the others. */
constexpr int64_t taken_for_event(int64_t bytes, int64_t applied_bytes) {
  // The memory of an event before makes room while this one is applied, but for
  // the bytes or rows that are read, and the rows that are packed.
  return std::max(2 * bytes, 4 * bytes - applied_bytes);
}
/** The thread reads a large event of a replica. It is promised what its workers
will take for it, and waits for that. Meanwhile it gives up the mutex that the
receiver and SHOW REPLICA STATUS need. It waits for longest_ask_us at most; for
longest_large_ask_us if to go on would end the server, and the end of another
event will bring room. Workers never wait. */
void wait_to_read(Thread *self);

/** There is not plenty for more blocks of this size, each perhaps twice as
large as the one before. */
bool needs_lane(int64_t bytes);

/** A large block of malloc() cannot be refused, and the next one of the
statement may be larger. Nor can small ones: a statement that has taken more of
them than the reserve may take several times as much, and look for no KILL
meanwhile. So while there is not plenty for that, one after the other of such
statements comes to its end. To wait at red alone would be too late: each of a
crowd would keep what another one needs.
@param block_bytes  the block, or what it took of small ones
@param bytes  are promised */
void wait_for_lane(Thread *self, int64_t block_bytes, int64_t bytes);
/** The thread took memory: if it has the lane, it keeps it. */
void keep_lane(const Thread *self);
/** The statement has ended. */
void leave_lane(const Thread *self);

/** The transaction will take so much when it commits, where it neither waits
nor ends. So its statement waits for that. Where there is not plenty, one after
the other does: the next one when the transaction has ended, or has asked for
nothing for some seconds. With the turn it waits for longest_ask_us, or longer
if to go on would end the server. All waits of a statement together last for
longest_large_ask_us at most.
@return false: there is no room, or the statement is to end */
bool wait_for_commit(Thread *self, int64_t bytes);
/** The thread's transaction writes more: if it has the turn, it keeps it. */
void keep_turn(const Thread *self);
/** The transaction has ended. */
void leave_turn(const Thread *self);

/** A large packet, and the copy of its text, come before the statement. As a
statement at the gate, it waits while there is not plenty. Then others wait for
what it will take.
@param bytes  are promised */
void wait_as_beginner(Thread *self, int64_t bytes);
/** The same of a message of the X protocol, which is larger when it is read.
@return false: it waited in vain, and must not be read */
bool wait_for_message(Thread *self, int64_t bytes);
/** A message of the X protocol from a client that may have no account. Each of
its bytes may become an object of protobuf's. It waits until there is room for
that, but not for long: a client that logs in sends little.
@param bytes  are promised
@return false: there is no room */
bool wait_to_connect(Thread *self, int64_t bytes);
/** At red: a message of the X protocol, which is read part by part, has taken
some more. @return false: behind the target, the rest must not be read */
bool wait_for_part(Thread *self);
/** The statement with a text of so much has ended. */
void note_text(int64_t bytes, int64_t peak_bytes);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_WAITING_H
