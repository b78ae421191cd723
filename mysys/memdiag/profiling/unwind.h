/*
  Walks the calling thread's stack by its frame pointers, which this server and
  its jemalloc keep (cmake/jemalloc.cmake, cmake/upstream.cmake).

  The walk reads only memory between the caller's frame and the end of the
  thread's stack, as pages/regions.h recorded it. A library without frame
  pointers is one frame, at most, where it allocates: if it leaves the register
  alone, the walk also skips the function that called the library, and goes on
  with that one's caller. If it leaves any other value there, the walk ends
  early and never reads elsewhere. A thread whose stack is not recorded yields
  no frame. The walk also ends at code that was loaded after the last
  note_code() (code_ranges.h), such as a plugin's. Before the first call it
  finds nothing.

  Threads: any. It takes no lock, allocates nothing, and may be called while the
  allocator is at work.
*/

#ifndef MEMDIAG_UNWIND_H
#define MEMDIAG_UNWIND_H

#include <cstddef>
#include <cstdint>
#include <span>

namespace memdiag::profiling {

/** More frames than a statement's deepest stack in the server's own tests;
jemalloc's own limit is the same (opt.prof_bt_max). */
constexpr size_t max_frames = 128;

/** Finds return addresses, that of the caller's own frame first. If the stack
is deeper than `frames` has room for, the outermost frames are missing.
@param youngest  gets the latest of the looks that found the frames' code
(code_ranges.h), if given; 0: no frame
@return the number of frames */
[[gnu::noinline]] size_t walk_stack(std::span<uintptr_t> frames,
                                    uint32_t *youngest = nullptr) noexcept;

}  // namespace memdiag::profiling

#endif  // MEMDIAG_UNWIND_H
