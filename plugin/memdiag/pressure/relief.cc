#include "plugin/memdiag/pressure/relief.h"

#include <algorithm>

namespace memdiag::relief {
namespace {

constexpr uint32_t bit_of(Pool pool) {
  return uint32_t{1} << static_cast<unsigned>(pool);
}
static_assert(pool_count + 3 <= 32);

void end_round(uint64_t now_us, State *state) {
  state->in_round = false;
  state->rest_since_us = now_us;
  state->judged = false;
}

/** @return true: the next round may begin */
bool has_rested(uint64_t kept_bytes, uint64_t now_us, State *state) {
  if (!state->rest_since_us) return true;
  const uint64_t rested_us = now_us - *state->rest_since_us;
  if (!state->judged) {
    // It takes a moment until released memory is allocated again.
    if (rested_us < min_pause_us) return false;
    state->judged = true;
    state->pause_us = kept_bytes >= little_bytes
                          ? min_pause_us
                          : std::min(2 * state->pause_us, max_pause_us);
  }
  // After such a time, it is another pressure.
  if (rested_us > 2 * max_pause_us) state->pause_us = min_pause_us;
  return rested_us >= state->pause_us;
}

}  // namespace

uint64_t kept_bytes(const std::array<Purged, pool_count> &purged,
                    const std::array<uint64_t, pool_count> &allocated_bytes) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    // The layer does not count blocks of malloc(), so it cannot see that such
    // memory is allocated again.
    if (uses_malloc(static_cast<Pool>(i))) continue;
    const uint64_t taken_bytes = allocated_bytes[i] - purged[i].allocated_bytes;
    bytes += purged[i].given_back_bytes -
             std::min(purged[i].given_back_bytes, taken_bytes);
  }
  return bytes;
}

Event next_event(const Settings &settings, const pressure::Figures &figures,
                 uint64_t kept_bytes, uint64_t now_us, State *state,
                 bool statements_wait) {
  const bool pressed =
      statements_wait || pressure::is_above(figures, settings.limit_percent) ||
      (settings.stall_percent != 0 &&
       figures.stall_percent.value_or(0) >= settings.stall_percent);
  if (pressed) {
    state->pressed = true;
    state->calm_since_us.reset();
    if (!state->in_round && has_rested(kept_bytes, now_us, state)) {
      state->in_round = true;
      state->taken = 0;
    }
    return state->in_round ? Event::due : Event::none;
  }
  if (!state->pressed) return Event::none;
  if (!state->calm_since_us) state->calm_since_us = now_us;
  if (now_us - *state->calm_since_us < calm_us) return Event::none;
  state->pressed = false;
  state->calm_since_us.reset();
  if (state->in_round) end_round(now_us, state);
  return Event::ended;
}

Step next_step(const Stock &stock, uint64_t now_us, State *state) {
  Step step{Step::none, Pool::general, 0};
  for (size_t i = 0; i < pool_count; ++i)
    if (const Pool pool = static_cast<Pool>(i);
        (state->taken & bit_of(pool)) == 0 &&
        stock.dirty_bytes[i] >= std::max(worth_purging_bytes, step.bytes + 1))
      step = {Step::purge, pool, stock.dirty_bytes[i]};
  if (step.kind == Step::purge) {
    state->taken |= bit_of(step.pool);
    return step;
  }
  constexpr uint32_t full_text = uint32_t{1} << pool_count;
  constexpr uint32_t tables = full_text << 1;
  constexpr uint32_t buffer_pool = tables << 1;
  if ((state->taken & full_text) == 0 &&
      stock.full_text_bytes >= worth_shrinking_bytes) {
    step = {Step::write_full_text_caches, Pool::fts_cache,
            stock.full_text_bytes};
    state->taken |= full_text;
  } else if ((state->taken & tables) == 0 &&
             stock.table_cache_bytes >= worth_shrinking_bytes) {
    step = {Step::close_unused_tables, Pool::table_cache,
            stock.table_cache_bytes};
    state->taken |= tables;
  } else if ((state->taken & buffer_pool) == 0 && stock.buffer_pool_bytes > 0) {
    state->taken |= buffer_pool;
    return {Step::shrink_buffer_pool, Pool::innodb, stock.buffer_pool_bytes};
  } else {
    end_round(now_us, state);
    return step;
  }
  state->taken &= ~bit_of(step.pool);
  return step;
}

uint64_t buffer_pool_step(uint64_t size_bytes, uint64_t unit_bytes,
                          uint64_t min_bytes) {
  if (unit_bytes == 0 || size_bytes <= min_bytes) return 0;
  const uint64_t wanted = std::max(size_bytes / 8, unit_bytes);
  return std::min(wanted, size_bytes - min_bytes) / unit_bytes * unit_bytes;
}

void rest_long(State *state) {
  state->judged = true;
  state->pause_us = max_pause_us;
}

void end_pause(State *state) {
  state->rest_since_us.reset();
  state->pause_us = min_pause_us;
}

}  // namespace memdiag::relief
