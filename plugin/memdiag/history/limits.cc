#include "plugin/memdiag/history/limits.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/ceiling/sensor.h"
#include "plugin/memdiag/host/limit_reader.h"
#include "plugin/memdiag/host/safe_limit.h"

namespace memdiag::limits {
namespace {

/** While another thread reads for longer than this, nothing is known. */
constexpr uint64_t stale_us = 5'000'000;

constinit std::atomic<Growth> growth_of_server{nullptr};

/** Never destroyed: sessions may read while the process exits. */
struct State {
  /** Held while files are read. */
  std::mutex reading;
  host::Limit_reader reader;
  host::Safe_limit safe_limit;
  /** Protects what follows. */
  std::mutex mutex;
  Figures last;
  Reading taken_us;
};

State &state() {
  static State *const instance = new State;
  return *instance;
}

Figures read(State *self, uint64_t now_us) {
  host::Limit_figures host = self->reader.read(now_us);
  const Growth growth = growth_of_server.load(std::memory_order_relaxed);
  self->safe_limit.add(
      now_us, sum(host.kept_bytes, growth == nullptr ? Reading{0} : growth()));
  Reading room;
  Reading room_limit;
  if (host.tightest) {
    room = host.tightest->limit_bytes - host.tightest->usage_bytes;
    room_limit = host.tightest->limit_bytes;
  }
  return {host::limit_bytes(host),
          host.room_bytes,
          host.machine_bytes,
          host.available_bytes,
          host.group_limit_bytes,
          room,
          room_limit,
          self->safe_limit.bytes(),
          std::move(host.usage_file)};
}

/** The last reading, unless it is older. */
std::optional<Figures> last(State *self, uint64_t max_age_us) {
  const std::lock_guard<std::mutex> guard(self->mutex);
  if (!self->taken_us ||
      clock_us(CLOCK_MONOTONIC) - *self->taken_us > max_age_us)
    return std::nullopt;
  return self->last;
}

}  // namespace

Figures now(uint64_t max_age_us) {
  // The sampler waits for the mutex, and has unknown figures while others read.
  const ceiling::No_wait no_wait;
  State &self = state();
  if (auto figures = last(&self, max_age_us)) return *figures;
  const std::unique_lock<std::mutex> reading(self.reading, std::try_to_lock);
  if (!reading) return last(&self, stale_us).value_or(Figures{});
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  const Figures figures = read(&self, now_us);
  const std::lock_guard<std::mutex> guard(self.mutex);
  self.last = figures;
  self.taken_us = now_us;
  return figures;
}

void set_growth(Growth growth) {
  growth_of_server.store(growth, std::memory_order_relaxed);
}

}  // namespace memdiag::limits
