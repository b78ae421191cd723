#include "mysys/memdiag/profiling/unwind.h"

#include <algorithm>

#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/profiling/code_ranges.h"

namespace memdiag::profiling {

// The sanitizers watch reads of stacks, and these read whole frames of others.
[[gnu::no_sanitize("address", "thread")]]
size_t walk_stack(std::span<uintptr_t> frames, uint32_t *youngest) noexcept {
  // The part of the stack that is left to walk.
  Address_range left = regions::stack_of_this_thread();
  auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  size_t count = 0;
  uint32_t latest = 0;
  // A frame begins with the caller's frame pointer and the return address. Each
  // caller's lies above its callee's, so the walk ends.
  while (count < frames.size() && frame % sizeof(uintptr_t) == 0 &&
         left.has(frame, 2 * sizeof(uintptr_t))) {
    const auto *const words = reinterpret_cast<const uintptr_t *>(frame);
    // A word that is no return address ends the walk: the frame is none.
    const uint32_t since = code_since(words[1]);
    if (since == 0) break;
    latest = std::max(latest, since);
    frames[count++] = words[1];
    left.begin = frame + 2 * sizeof(uintptr_t);
    frame = words[0];
  }
  if (youngest != nullptr) *youngest = latest;
  return count;
}

}  // namespace memdiag::profiling
