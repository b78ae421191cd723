#include "mysys/memdiag/accounting/statement_gate.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/upstream/scope_hooks.h"

constinit std::atomic<bool> memdiag_has_gate{false};

namespace memdiag::statement_gate {
namespace {

constinit std::atomic<const Gate *> in_use{nullptr};
/** Stands for any gate that refused the statement. */
constexpr Gate refusal{};
/** The gate that let the thread's statement through, or `refusal`. */
constinit thread_local const Gate *passed = nullptr;

}  // namespace

void set(const Gate *gate) noexcept {
  in_use.store(gate, std::memory_order_release);
  memdiag_has_gate.store(gate != nullptr, std::memory_order_relaxed);
}

void note_let_through(const Gate *gate) noexcept { passed = gate; }

bool refuses(void *session, const unsigned char *digest) {
  if (!sessions::may_be_large(digest)) return false;
  const Gate *const gate = in_use.load(std::memory_order_acquire);
  if (gate == nullptr) return false;
  // A statement within another's: the gate has answered for the outer one.
  if (passed != nullptr) return passed == &refusal;
  // Nothing would ever be known of it.
  if (!block_events::is_on(block_events::sessions)) return false;
  sessions::Digest copy;
  memcpy(copy.data(), digest, copy.size());
  if (!gate->refuses(session, copy)) return false;
  passed = &refusal;
  return true;
}

bool statement_ended() noexcept {
  if (passed == nullptr) [[likely]]
    return true;
  const Gate *const gate = std::exchange(passed, nullptr);
  if (gate == &refusal) return false;
  gate->ended();
  return true;
}

}  // namespace memdiag::statement_gate
