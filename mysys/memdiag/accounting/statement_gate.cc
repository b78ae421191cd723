#include "mysys/memdiag/accounting/statement_gate.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "mysys/memdiag/upstream/scope_hooks.h"

constinit std::atomic<bool> memdiag_has_gate{false};

namespace memdiag::statement_gate {
namespace {

constinit std::atomic<const Gate *> in_use{nullptr};
/** Stands for any gate that refused the statement. */
constexpr Gate refusal{};
/** The gate that let the thread's statement through, or `refusal`. */
constinit thread_local const Gate *passed = nullptr;
constinit thread_local bool asks_again_of_thread = false;

}  // namespace

void set(const Gate *gate) noexcept {
  in_use.store(gate, std::memory_order_release);
  memdiag_has_gate.store(gate != nullptr, std::memory_order_relaxed);
}

void note_let_through(const Gate *gate, bool asks_again) noexcept {
  passed = gate;
  asks_again_of_thread = asks_again;
}

bool refuses(void *session, const unsigned char *digest) {
  // A statement within another's: the gate has answered for the outer one.
  if (passed != nullptr && !asks_again_of_thread) return passed == &refusal;
  const Gate *const gate = in_use.load(std::memory_order_acquire);
  if (gate == nullptr) return false;
  sessions::Digest copy;
  memcpy(copy.data(), digest, copy.size());
  if (!gate->refuses(session, copy)) return false;
  note_let_through(&refusal, false);
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
