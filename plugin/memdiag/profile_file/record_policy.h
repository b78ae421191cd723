/*
  Decides when the flight recorder records a profile: once in a period, and at
  new highs of RSS.

  A ramp begins when RSS has risen by `start_percent` above the lowest since the
  last ramp. Within a ramp, a new high is recorded if it exceeds the last one by
  `step_percent`, and not before `cool_down_us` have passed. A ramp ends when
  RSS has fallen by `fall_percent` from its high, or when it had no new high for
  `quiet_us`. So a burst at night is a ramp of its own, although the server also
  grew at its start in the morning. A leak of many days is a row of ramps.

  The class reads no clock and no figure itself. tick() may be called at any
  intervals. Threads: each object belongs to one thread. Errors: none.
  Units: bytes; microseconds of a clock that never goes back.
*/

#ifndef MEMDIAG_RECORD_POLICY_H
#define MEMDIAG_RECORD_POLICY_H

#include <cstdint>

namespace memdiag::profile {

/** Files contain these numbers. */
enum class Record_reason : uint32_t { none = 0, period = 1, new_high = 2 };

struct Record_decision {
  Record_reason reason{Record_reason::none};
  /** The ramp that a new high belongs to, from 1; 0: no new high. */
  uint32_t ramp{0};
  /** RSS is at, or near, its lowest since the last ramp. The next ramp is
  compared with the newest record that has this mark. */
  bool is_low{false};
};

class Record_policy {
 public:
  struct Settings {
    uint64_t period_us{60'000'000};
    unsigned start_percent{10};
    unsigned step_percent{5};
    /** The rise for a start or a step is never less. */
    uint64_t least_step_bytes{16 << 20};
    uint64_t cool_down_us{2'000'000};
    unsigned fall_percent{20};
    uint64_t quiet_us{3'600'000'000};
    /** A level counts as low up to this much above the lowest. */
    unsigned low_percent{2};
  };

  Record_policy() : Record_policy(Settings{}) {}
  explicit Record_policy(const Settings &settings) : m_settings(settings) {}

  /** Decides whether to record now. The caller must then do so, or call
  failed(). The first call always records.
  @param rss_bytes  not 0 for unknown: that would end a ramp, and the next call
  would begin one */
  Record_decision tick(uint64_t now_us, uint64_t rss_bytes);

  /** The record that the last tick() asked for was not made. The next tick()
  asks again. */
  void failed();

 private:
  /** The rise that counts as a step from this RSS, in bytes. */
  uint64_t step_from(uint64_t rss_bytes, unsigned percent) const;

  struct State {
    bool has_begun{false};
    uint64_t recorded_us{0};
    /** The lowest RSS since the last ramp, and of the records marked low. */
    uint64_t low{0};
    /** 0: there was none. */
    uint32_t ramp{0};
    bool in_ramp{false};
    uint64_t high{0};
    uint64_t high_us{0};
  };

  const Settings m_settings;
  State m_state;
  State m_before_tick;
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_RECORD_POLICY_H
