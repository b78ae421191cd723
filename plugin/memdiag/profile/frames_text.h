/*
  A stack as one line of text.

  Each stack begins with frames of the allocator: jemalloc, the pools, operator
  new. They say nothing about who took the memory, so no form of a profile shows
  them. Then come helpers that pass requests on: my_malloc(), memory roots,
  InnoDB's heaps, containers. The readable form leaves these out, too, and so
  begins with the code that wanted the memory.

  Threads: any. Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_FRAMES_TEXT_H
#define MEMDIAG_FRAMES_TEXT_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

enum class Frame_kind : uint8_t {
  /** A frame of the allocator; left out where a stack begins with it. */
  allocator,
  /** Passes a request for memory on, or starts a thread. */
  helper,
  code
};

/** @param name  as in Symbol::name; an unknown function is code */
Frame_kind kind_of_frame(std::string_view name);

/** The stack without the allocator's frames at its beginning. If it has no
others, it keeps them, but not those of the profiler: it ended early, and the
profiler did not take the memory. Unknown functions among them count as the
allocator's, because a stripped program does not name functions that it does not
export. */
std::span<const uint64_t> without_allocator(std::span<const uint64_t> addresses,
                                            const Symbols &symbols);

/** The first `count` functions that are code, the innermost first. A function
that calls itself appears once:
"Item_func::fix_fields < Query_block::prepare < ...".
A long name that is not demangled is cut.
If no frame is code: the helpers, or the allocator's but the profiler's. "" for
an empty stack. */
std::string readable_frames(std::span<const uint64_t> addresses,
                            const Symbols &symbols, size_t count = 5);

/** All functions but the allocator's, the outermost first, separated by ';'. A
';' or a control character within a name is replaced. "?" for an empty stack.
Lengths are not limited. */
std::string folded_stack(std::span<const uint64_t> addresses,
                         const Symbols &symbols);

/** The name as folded_stack() has it. */
std::string folded_name(std::string_view name);

}  // namespace memdiag::profile

#endif  // MEMDIAG_FRAMES_TEXT_H
