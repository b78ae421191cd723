#include "plugin/memdiag/profile_file/record_policy.h"

#include <algorithm>

namespace memdiag::profile {
namespace {

uint64_t percent_of(uint64_t bytes, unsigned percent) {
  return bytes / 100 * percent + bytes % 100 * percent / 100;
}

/** @return true: so long has passed; a clock that went back has not moved */
bool has_passed(uint64_t since_us, uint64_t now_us, uint64_t length_us) {
  return now_us >= since_us && now_us - since_us >= length_us;
}

}  // namespace

uint64_t Record_policy::step_from(uint64_t rss_bytes, unsigned percent) const {
  return std::max(percent_of(rss_bytes, percent), m_settings.least_step_bytes);
}

Record_decision Record_policy::tick(uint64_t now_us, uint64_t rss_bytes) {
  m_before_tick = m_state;
  State &state = m_state;
  if (!state.has_begun) {
    state.has_begun = true;
    state.recorded_us = now_us;
    state.low = rss_bytes;
    return {Record_reason::period, 0, true};
  }

  if (state.in_ramp &&
      (rss_bytes + percent_of(state.high, m_settings.fall_percent) <=
           state.high ||
       has_passed(state.high_us, now_us, m_settings.quiet_us))) {
    state.in_ramp = false;
    state.low = rss_bytes;
  }

  bool is_high = false;
  if (!state.in_ramp) {
    state.low = std::min(state.low, rss_bytes);
    if (rss_bytes - state.low >=
        std::max<uint64_t>(step_from(state.low, m_settings.start_percent), 1)) {
      state.in_ramp = true;
      ++state.ramp;
      is_high = true;
    }
  } else {
    is_high = rss_bytes > state.high &&
              rss_bytes - state.high >=
                  step_from(state.high, m_settings.step_percent) &&
              has_passed(state.high_us, now_us, m_settings.cool_down_us);
  }
  if (is_high) {
    state.high = rss_bytes;
    state.high_us = state.recorded_us = now_us;
    return {Record_reason::new_high, state.ramp, false};
  }
  if (!has_passed(state.recorded_us, now_us, m_settings.period_us)) return {};
  state.recorded_us = now_us;
  return {Record_reason::period, 0,
          !state.in_ramp && rss_bytes - state.low <=
                                percent_of(state.low, m_settings.low_percent)};
}

void Record_policy::failed() { m_state = m_before_tick; }

}  // namespace memdiag::profile
