#include <cstddef>
#include <mutex>
#include <new>
#include <set>

#include "my_alloc.h"
#include "sql/memdiag/program_blocks.h"

namespace memdiag {
namespace {

struct Triggers {
  std::mutex mutex;
  std::set<const MEM_ROOT *> roots;
};
/** Never destroyed: the table cache outlives what the linker has made. An empty
set takes no memory, so this cannot throw. */
Triggers &triggers() {
  alignas(Triggers) static std::byte memory[sizeof(Triggers)];
  static Triggers *const all = ::new (static_cast<void *>(memory)) Triggers;
  return *all;
}

}  // namespace

void note_trigger(const MEM_ROOT *program) {
  // A thread may wait for the block, and not with the mutex: tables are closed
  // under LOCK_open.
  std::set<const MEM_ROOT *> one;
  try {
    one.insert(program);
  } catch (const std::bad_alloc &) {
    // It counts as a program that a session has cached.
  }
  Triggers &all = triggers();
  const std::lock_guard<std::mutex> guard(all.mutex);
  all.roots.merge(one);
}

void forget_trigger(const MEM_ROOT *program) {
  Triggers &all = triggers();
  const std::lock_guard<std::mutex> guard(all.mutex);
  all.roots.erase(program);
}

size_t trigger_bytes() {
  Triggers &all = triggers();
  const std::lock_guard<std::mutex> guard(all.mutex);
  size_t bytes = 0;
  for (const MEM_ROOT *root : all.roots) bytes += root->allocated_size();
  return bytes;
}

}  // namespace memdiag
