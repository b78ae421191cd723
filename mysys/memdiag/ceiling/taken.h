/*
  The sensor's record of the calling thread: the bytes that the thread took, was
  promised and will take. These functions enter them into the account.

  Ownership: a Thread is its thread's; others read its Taker. Locks: none.
  Works within malloc(): it allocates nothing. Units: bytes; microseconds.
*/

#ifndef MEMDIAG_CEILING_TAKEN_H
#define MEMDIAG_CEILING_TAKEN_H

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "mysys/memdiag/ceiling/owner.h"
#include "mysys/memdiag/ceiling/taker.h"

namespace memdiag::ceiling {

/** 0: off. Each switch_on() has another number, so that threads forget what
they grew by meanwhile. */
inline constinit std::atomic<uint32_t> generation{0};

/** A watched block whose pages are not all touched yet. */
struct Block {
  uintptr_t address;
  size_t size;
  /** Counted as promised. */
  int64_t untouched_bytes;
};

constexpr size_t max_blocks = 4;

struct Thread {
  Taker taker;
  std::array<Block, max_blocks> blocks{};
  size_t block_count{0};
  uint64_t blocks_seen_us{0};
  /** Promised for a watched block that is being allocated. */
  int64_t coming_bytes{0};
  /** No statement runs: the block is one of loose_blocks. */
  bool coming_is_loose{false};
  /** Promised beside it. */
  int64_t coming_later_bytes{0};
  Replica_block coming{Replica_block::other};
  /** The bytes of the event that it read last. They may be freed already. */
  const void *event{nullptr};
  uint64_t allocated_bytes{0};
  int64_t net_bytes{0};
  /** The least of net_bytes since the statement began, or the last one ended.
   */
  int64_t base_bytes{0};
  /** The most of Taker::grown_bytes. */
  int64_t peak_bytes{0};
  /** The statement took so much from malloc() alone since the sensor saw that
  it may take more than there is. */
  int64_t malloc_bytes{0};
  /** Counted as promised. */
  int64_t promised_bytes{0};
  /** The statement will take so much. The account counts the second figure as
  expected. */
  int64_t to_take_bytes{0};
  int64_t expected_bytes{0};
  /** Promised by the last ask, and not seen in an event yet. */
  int64_t asked_bytes{0};
  int64_t token_bytes{0};
  /** See Asked::went_on. */
  uint32_t went_on{0};
  /** How long the statement has waited as a small one. */
  uint64_t small_waited_us{0};
  /** How long it has waited for what its transaction takes when it commits. */
  uint64_t commit_waited_us{0};
  /** The size of the large text or packet that the statement began with. 0:
  there is none. */
  int64_t text_bytes{0};
  /** net_bytes when the last part of a message waited. */
  int64_t part_bytes{0};
  /** How long it waited before that was read. */
  uint64_t text_waited_us{0};
  /** It waited as long as it may. */
  bool text_in_vain{false};
  /** The packets since the last statement are parts of a parameter
  (COM_STMT_SEND_LONG_DATA). What they waited counts for all of them. */
  bool sends_value{false};
  uint64_t parts_waited_us{0};
  /** Owner::drops_of_values of the first part. */
  uint64_t drops_of_values{0};
  /** A part of a value was refused after its wait, which was so long. */
  bool value_in_vain{false};
  uint64_t value_waited_us{0};
  /** A block was refused, and the error of that is raised. */
  bool error_is_raised{false};
  /** Promised for what follows the parsing, until the statement has grown to
  parsed_bytes. */
  int64_t later_bytes{0};
  int64_t parsed_bytes{0};
  /** Promised for a value of a row that is copied. */
  int64_t value_bytes{0};
  /** Its transaction takes so much when it commits, as from this figure of
  net_bytes on. The part that was not taken is promised. */
  int64_t commit_bytes{0};
  /** Owner::transaction says whose that is. A plugin may run statements of its
  own session within one of another. */
  const void *commit_of{nullptr};
  int64_t commit_from_bytes{0};
  int64_t commit_promised_bytes{0};
  /** It takes so much for its statements that have ended. */
  int64_t commit_stays_bytes{0};
  /** Not promised while the client sleeps. */
  int64_t commit_lapsed_bytes{0};
  uint32_t generation{0};
  uint32_t asking{0};
  bool in_statement{false};
  /** begin_late() began it: its text may be parsed still. */
  bool began_late{false};
  /** Statements of the session may wait. */
  bool of_session{false};
  /** The base is not known before the next event. */
  bool no_base{false};
  /** The owner knows that it is large. */
  bool told_large{false};
  /** Within pools::allocate(), since the last event. */
  bool in_pool{false};
  /** It was to wait where it could not. */
  bool owes{false};
  /** It asked for a packet, a text or a value, and no statement ran. */
  bool asked_without{false};
  /** Within a function of the sensor. */
  bool busy{false};
  /** An event came while it was busy. The next one shows what the thread took
  meanwhile: as much as a large block, in small ones. */
  bool missed{false};
};
extern constinit thread_local Thread thread;

/** The thread has touched the promised bytes by now, or the next reading counts
them. */
void settle(Thread *self);
void promise(Thread *self, int64_t bytes);

/** The block may be freed already. @return at most Block::untouched_bytes */
int64_t untouched_bytes(const Block &block);
/** The kernel counts the pages of blocks that the thread touched meanwhile. */
void see_blocks(Thread *self);
/** The sensor forgets the block. */
void drop_block(Thread *self, size_t number);
void drop_coming(Thread *self);

/** A statement that is parsed promises what it takes afterwards. */
void promise_later(Thread *self);
void forget_later(Thread *self);

/** As waited_for_text_us() of sensor.h. */
inline uint64_t waited_for_text(const Thread &of) {
  return of.text_waited_us + (of.sends_value ? of.parts_waited_us : 0);
}

/** The thread grew by so much: it copies the value. */
void take_value(Thread *self, int64_t grown);
void forget_value(Thread *self);

/** The promises to transactions whose clients sleep lack so much. */
inline constinit std::atomic<int64_t> lapsed_bytes{0};

/** The promise shrinks by the bytes that the thread took since. */
void see_commit(Thread *self);
/** The client sleeps. What its transaction was promised of the reserve lapses:
else the level would be red for as long, and other statements would end. All
together have no more than the room that one of them was given at red, from the
reserve to a reserve beyond the target. So when the client is back, there is as
much room as there was. */
void lapse_commit(Thread *self);
/** The client is back. */
void renew_commit(Thread *self);
/** Its transaction takes so much, or as much as was promised if that is more.
 */
void promise_commit(Thread *self, int64_t bytes);
/** The commit has taken nothing yet: a statement ends before it. Its session
may keep what the statement took. */
void commit_later(Thread *self);
/** A statement of its transaction is undone. */
void undo_commit(Thread *self);
/** Its transaction has ended. */
void forget_commit(Thread *self);

/** The account stops expecting the bytes that the statement has taken. A
statement that took more than was expected may take as much again. */
void expect(Thread *self);

}  // namespace memdiag::ceiling

#endif  // MEMDIAG_CEILING_TAKEN_H
