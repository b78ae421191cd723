#include "plugin/memdiag/server/threads/member_watch.h"

#include <mutex>
#include <new>
#include <optional>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/purging/purge.h"
#include "plugin/memdiag/ceiling/giving.h"
#include "plugin/memdiag/host/member_memory.h"
#include "sql/memdiag/member.h"

namespace memdiag::member_watch {
namespace {

void purge_pools() {
  for (size_t i = 0; i < pool_count; ++i) {
    const Pool pool = static_cast<Pool>(i);
    const auto dirty = purging::dirty_bytes(pool);
    if (dirty && dirty.value() >= ceiling::worth_purging_bytes)
      (void)purging::purge(pool, Purge_reason::pressure);
  }
}

struct Answering {
  std::mutex mutex;
  std::optional<member_memory::Reader> reader;
};

/** Never destroyed: the component may ask until the very end. */
Answering &answering() {
  static Answering *const instance = new Answering;
  return *instance;
}

}  // namespace

void start() {
  const std::lock_guard<std::mutex> guard(answering().mutex);
  answering().reader.emplace(purge_pools);
}

void stop() {
  const std::lock_guard<std::mutex> guard(answering().mutex);
  answering().reader.reset();
}

}  // namespace memdiag::member_watch

void memdiag_member_memory(unsigned limit_percent, uint64_t *total_bytes,
                           uint64_t *available_bytes) {
  using memdiag::member_watch::answering;
  try {
    const std::lock_guard<std::mutex> guard(answering().mutex);
    auto &reader = answering().reader;
    if (!reader) return;
    const auto found =
        reader->read(memdiag::clock_us(CLOCK_MONOTONIC), limit_percent);
    if (!found) return;
    *total_bytes = found->total_bytes;
    *available_bytes = found->available_bytes;
  } catch (const std::bad_alloc &) {
    // The next question tries again.
  }
}
