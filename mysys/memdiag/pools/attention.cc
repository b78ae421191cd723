#include "mysys/memdiag/pools/attention.h"

namespace memdiag::pools {

constinit std::atomic<uint32_t> detail::attention{0};

constinit thread_local Request request_of_thread{Pool::general, 0};

void set_attention(Attention bit, bool on) noexcept {
  if (on)
    detail::attention.fetch_or(static_cast<uint32_t>(bit));
  else
    detail::attention.fetch_and(~static_cast<uint32_t>(bit));
}

}  // namespace memdiag::pools
