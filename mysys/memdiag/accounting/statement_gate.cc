#include "mysys/memdiag/accounting/statement_gate.h"

#include <atomic>
#include <utility>

#include "mysys/memdiag/upstream/scope_hooks.h"

constinit std::atomic<bool> memdiag_has_gate{false};

namespace memdiag::statement_gate {
namespace {

constinit std::atomic<const Gate *> in_use{nullptr};
/** Stands for any gate that refused the statement. */
constexpr Gate refusal{};

}  // namespace

void set(const Gate *gate) noexcept {
  in_use.store(gate, std::memory_order_release);
  memdiag_has_gate.store(gate != nullptr, std::memory_order_relaxed);
}

bool is_let_through() noexcept {
  const detail::Passed &passed = detail::passed;
  return passed.gate != nullptr && passed.gate != &refusal &&
         !passed.asks_again;
}

bool refuses(void *session, const unsigned char *digest) {
  const detail::Passed &passed = detail::passed;
  // A statement within another's: the gate has answered for the outer one.
  if (passed.gate != nullptr && !passed.asks_again)
    return passed.gate == &refusal;
  const Gate *const gate = in_use.load(std::memory_order_acquire);
  if (gate == nullptr || !gate->refuses(session, digest)) return false;
  // No end of an event's statement is seen.
  if (running_statements == 0) return true;
  const Gate *const before =
      std::exchange(detail::passed, {&refusal, false}).gate;
  // It had a place before it asked, and has it no more.
  if (before != nullptr && before->ended != nullptr) before->ended();
  return true;
}

bool statement_ended() noexcept {
  detail::Passed &passed = detail::passed;
  if (passed.gate == nullptr) [[likely]]
    return true;
  const Gate *const gate = std::exchange(passed.gate, nullptr);
  if (gate->ended != nullptr) gate->ended();
  return gate != &refusal;
}

}  // namespace memdiag::statement_gate
