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
constinit std::atomic<const Gate *> ceiling_in_use{nullptr};
/** Stands for any gate that refused the statement. */
constexpr Gate refusal{};
/** The gate that let the thread's statement through, or `refusal`. */
constinit thread_local const Gate *passed = nullptr;
/** The same of the ceiling's gate. */
constinit thread_local const Gate *passed_ceiling = nullptr;
constinit thread_local bool asks_ceiling_again = false;

void tell_statements() noexcept {
  memdiag_has_gate.store(
      in_use.load() != nullptr || ceiling_in_use.load() != nullptr,
      std::memory_order_relaxed);
}

/** Asks the gate of admission. */
bool admission_refuses(void *session, const unsigned char *digest) {
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

/** Asks the gate of the ceiling. */
bool ceiling_refuses(void *session, const unsigned char *digest) {
  if (passed_ceiling != nullptr && !asks_ceiling_again)
    return passed_ceiling == &refusal;
  const Gate *const gate = ceiling_in_use.load(std::memory_order_acquire);
  if (gate == nullptr) return false;
  sessions::Digest copy;
  memcpy(copy.data(), digest, copy.size());
  if (!gate->refuses(session, copy)) return false;
  note_below_ceiling(&refusal, false);
  return true;
}

}  // namespace

void set(const Gate *gate) noexcept {
  in_use.store(gate, std::memory_order_release);
  tell_statements();
}

void set_ceiling(const Gate *gate) noexcept {
  ceiling_in_use.store(gate, std::memory_order_release);
  tell_statements();
}

void note_let_through(const Gate *gate) noexcept { passed = gate; }

void note_below_ceiling(const Gate *gate, bool asks_again) noexcept {
  passed_ceiling = gate;
  asks_ceiling_again = asks_again;
}

bool refuses(void *session, const unsigned char *digest) {
  return ceiling_refuses(session, digest) || admission_refuses(session, digest);
}

bool statement_ended() noexcept {
  bool ran = true;
  if (passed_ceiling != nullptr) [[unlikely]] {
    const Gate *const gate = std::exchange(passed_ceiling, nullptr);
    if (gate == &refusal)
      ran = false;
    else
      gate->ended();
  }
  if (passed == nullptr) [[likely]]
    return ran;
  const Gate *const gate = std::exchange(passed, nullptr);
  if (gate == &refusal) return false;
  gate->ended();
  return ran;
}

}  // namespace memdiag::statement_gate
