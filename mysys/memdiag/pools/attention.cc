#include "mysys/memdiag/pools/attention.h"

namespace memdiag::pools {

constinit std::atomic<uint32_t> detail::attention{0};

constinit thread_local Request request_of_thread{Pool::general, 0};

namespace {
constinit std::atomic<const Watcher *> watcher_in_use{nullptr};
}  // namespace

void set_watcher(const Watcher *watcher) noexcept {
  watcher_in_use.store(watcher, std::memory_order_release);
}

const Watcher *watcher() noexcept {
  return watcher_in_use.load(std::memory_order_acquire);
}

void set_attention(Attention bit, bool on) noexcept {
  if (on)
    detail::attention.fetch_or(static_cast<uint32_t>(bit));
  else
    detail::attention.fetch_and(~static_cast<uint32_t>(bit));
}

}  // namespace memdiag::pools
