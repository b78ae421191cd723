#include "mysys/memdiag/accounting/statement_gate.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/routes/scope_hooks.h"

constinit std::atomic<bool> memdiag_has_gate{false};

namespace memdiag::statement_gate {
namespace {

constinit std::atomic<const Gate *> in_use{nullptr};
/** The gate that the thread's statement was let through. */
constinit thread_local const Gate *passed = nullptr;
constinit thread_local bool was_refused = false;

}  // namespace

void set(const Gate *gate) noexcept {
  in_use.store(gate, std::memory_order_release);
  memdiag_has_gate.store(gate != nullptr, std::memory_order_relaxed);
}

void note_let_through(const Gate *gate) noexcept { passed = gate; }

bool refuses(void *session, const unsigned char *digest) {
  if (!sessions::may_be_large(digest)) return false;
  const Gate *const gate = in_use.load(std::memory_order_acquire);
  // A statement within another's: the outer one has passed.
  if (gate == nullptr || passed != nullptr) return false;
  // Nothing would ever be known of it.
  if (!block_events::is_on(block_events::sessions)) return false;
  sessions::Digest copy;
  memcpy(copy.data(), digest, copy.size());
  was_refused = gate->refuses(session, copy);
  return was_refused;
}

bool statement_ended() noexcept {
  if (passed != nullptr) [[unlikely]]
    std::exchange(passed, nullptr)->ended();
  return !std::exchange(was_refused, false);
}

}  // namespace memdiag::statement_gate
