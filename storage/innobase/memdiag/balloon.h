/*
  The balloon: frames of InnoDB's buffer pool whose memory the system has back.
  innodb_buffer_pool_size stays, and so do all lists of InnoDB; a parked frame
  is one that InnoDB handed out for another purpose than a page.

  The plugin includes this header, so it includes none of InnoDB.
  Ownership: parked frames belong to this file until give_back().
  Threads: any; one mutex lets one at a time park or give back. The caller gives
  all frames back before InnoDB stops, and while the pool is resized.
  Locks: InnoDB's mutexes of the lists of one instance, for a frame at a time;
  none of them while the system takes memory back. The caller holds no latch of
  InnoDB.
  Errors: a frame that the system does not take back is given back to InnoDB.
  Units: bytes.
*/

#ifndef MEMDIAG_BALLOON_H
#define MEMDIAG_BALLOON_H

#include <cstdint>

namespace memdiag::balloon {

/** Of the buffer pool, this share stays free or with pages. InnoDB warns at 33
percent, refuses locks at 25 and ends the process at 5. */
constexpr unsigned floor_percent = 40;

enum class State : uint8_t {
  works,
  /** InnoDB is not up. */
  not_up,
  /** The buffer pool is being resized: give all frames back. */
  resizing,
  /** A part of the pool lies in huge pages that the system has reserved
  (large_pages), and it cannot take a part of one back. */
  large_pages,
  /** A page of the system is larger than a frame. */
  small_frames
};
State state();

/** Frames that could be parked, if none was in use or dirty. 0 unless it
works. */
uint64_t parkable_bytes();
/** The frames of the floor, and all descriptors. InnoDB may write all of them
at any time, and asks no malloc() for that. 0 unless it works. */
uint64_t floor_bytes();
/** Memory of the buffer pool that stays when all of that is parked: of frames
with pages or in other use, and of all descriptors. Free frames are not in it,
because they may never have been written. 0 unless it works. */
uint64_t staying_bytes();
/** So much of what is parked must come back: locks and the adaptive hash index
took frames, and less than the floor is left for pages. 0: they are few. */
uint64_t missing_bytes();

/** Free frames first, of the instances that have most. Then those of clean
pages at the end of the LRU lists, of each instance in turn.
@param with_pages  false: free frames only
@return so much was parked; less than `bytes` if all other frames are in use or
dirty, or the floor is reached */
uint64_t park(uint64_t bytes, bool with_pages);

/** Instances with the fewest free frames get them first. The frames get memory
when InnoDB uses them, not before.
@return so much is free for InnoDB again */
uint64_t give_back(uint64_t bytes);
/** Gives missing_bytes() back, each instance its own frames.
@return as give_back() */
uint64_t give_back_missing();

uint64_t parked_bytes();

}  // namespace memdiag::balloon

#endif  // MEMDIAG_BALLOON_H
