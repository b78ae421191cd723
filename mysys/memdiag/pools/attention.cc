#include "mysys/memdiag/pools/attention.h"

namespace memdiag::pools {

constinit std::atomic<uint32_t> detail::attention{0};

constinit thread_local Request request_of_thread{Pool::general, 0};

namespace {
constinit std::atomic<Ask> ask_in_use{nullptr};
}  // namespace

void set_ask(Ask ask) noexcept { ask_in_use.store(ask); }

void ask(Pool pool, size_t size) noexcept {
  if (const Ask call = ask_in_use.load(std::memory_order_relaxed);
      call != nullptr)
    call(pool, size);
}

void set_attention(Attention bit, bool on) noexcept {
  if (on)
    detail::attention.fetch_or(static_cast<uint32_t>(bit));
  else
    detail::attention.fetch_and(~static_cast<uint32_t>(bit));
}

}  // namespace memdiag::pools
