#include "mysys/memdiag/accounting/block_events.h"

namespace memdiag::block_events {
namespace {

void announce(Pool pool, pools::Account account, int64_t bytes) noexcept {
  for (const auto &entry : detail::listeners)
    if (const auto listener = entry.load(std::memory_order_relaxed);
        listener != nullptr)
      listener(pool, account, bytes);
}

}  // namespace

constinit std::atomic<pools::Block_listener>
    detail::listeners[subscriber_count];

void set(Subscriber subscriber, pools::Block_listener listener) noexcept {
  detail::listeners[subscriber].store(listener);
  // Another thread may set the other subscriber's at the same time.
  bool any;
  do {
    any = any_is_on();
    pools::set_block_listener(any ? announce : nullptr);
  } while (any != any_is_on());
}

}  // namespace memdiag::block_events
