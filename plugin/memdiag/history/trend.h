/*
  The trend of a figure: a straight line through its samples by least squares
  (Montgomery, Peck, Vining: Introduction to Linear Regression Analysis,
  chapter 2):

    slope = Sxy / Sxx,  r2 = Sxy^2 / (Sxx * Syy)

  where S are sums of squares and products of deviations from the means.

  Threads: any; nothing is shared. Inside an Interruptible that ends the read
  (interruption.h), trend() gives the line through the samples until then.
  Units: bytes, seconds.
*/

#ifndef MEMDIAG_TREND_H
#define MEMDIAG_TREND_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/history/black_box.h"

namespace memdiag {

struct Trend {
  double bytes_per_second;
  /** The part of the variation that the line explains: 1 for a figure that
  follows the line exactly or never changed, near 0 for one without a trend. */
  double r2;
  /** The line's value at the last sample. */
  double last_bytes;
  /** From the first sample to the last. */
  double seconds;
};

/** The time that a trend covers. */
constexpr uint64_t trend_us = 15 * 60 * uint64_t{1000000};

/** The line through a window of points, which leave in the order in which they
came. Sums are relative to the first point and in long double, because the
results are differences of large sums. */
class Trend_window {
  using Sum = long double;

 public:
  void add(uint64_t time_us, uint64_t bytes) {
    if (!m_origin) m_origin = {time_us, bytes};
    m_last_us = time_us;
    change(time_us, bytes, 1);
  }
  void remove(uint64_t time_us, uint64_t bytes) { change(time_us, bytes, -1); }

  /** @param first_us  the time of the oldest point
  @return empty: less than three points, or all of one moment */
  std::optional<Trend> line(uint64_t first_us) const {
    if (m_count < 3) return std::nullopt;
    const Sum s_xx = m_xx - m_x * m_x / m_count;
    const Sum s_xy = m_xy - m_x * m_y / m_count;
    const Sum s_yy = m_yy - m_y * m_y / m_count;
    const double seconds = x_of(m_last_us) - x_of(first_us);
    if (s_xx <= 0 || seconds <= 0) return std::nullopt;
    const Sum slope = s_xy / s_xx;
    const Sum last = static_cast<Sum>(m_origin->bytes) + m_y / m_count +
                     slope * (x_of(m_last_us) - m_x / m_count);
    // For a figure that does not change, rounding may leave a little.
    const Sum r2 =
        s_yy <= 0 ? 1 : std::min<Sum>(s_xy * s_xy / (s_xx * s_yy), 1);
    return Trend{static_cast<double>(slope), static_cast<double>(r2),
                 static_cast<double>(last), seconds};
  }

 private:
  struct Point {
    uint64_t time_us;
    uint64_t bytes;
  };

  double x_of(uint64_t time_us) const {
    return (static_cast<double>(time_us) -
            static_cast<double>(m_origin->time_us)) /
           1e6;
  }

  void change(uint64_t time_us, uint64_t bytes, int sign) {
    const double x = x_of(time_us);
    const double y =
        static_cast<double>(bytes) - static_cast<double>(m_origin->bytes);
    m_count += sign;
    m_x += sign * x;
    m_y += sign * y;
    m_xx += sign * x * x;
    m_xy += sign * x * y;
    m_yy += sign * y * y;
  }

  std::optional<Point> m_origin;
  uint64_t m_last_us = 0;
  Sum m_count = 0;
  Sum m_x = 0;
  Sum m_y = 0;
  Sum m_xx = 0;
  Sum m_xy = 0;
  Sum m_yy = 0;
};

/** @param samples  oldest first
@param figure  a member of Sample, or a function of a Sample that returns
uint64_t; samples where it is unknown do not count
@return empty: less than three samples, or all of one moment */
template <typename Figure>
std::optional<Trend> trend(std::span<const black_box::Sample> samples,
                           Figure figure) {
  Trend_window window;
  std::optional<uint64_t> first_us;
  for (const black_box::Sample &sample : samples) {
    if (is_interrupted()) break;
    const uint64_t value = std::invoke(figure, sample);
    if (value == black_box::unknown) continue;
    if (!first_us) first_us = sample.time_us;
    window.add(sample.time_us, value);
  }
  return first_us ? window.line(*first_us) : std::nullopt;
}

/** The time until the line reaches a limit; 0: it is above already.
@return empty: never, because the figure does not grow */
inline std::optional<double> seconds_until(const Trend &trend,
                                           uint64_t limit_bytes) {
  const double left = static_cast<double>(limit_bytes) - trend.last_bytes;
  if (left <= 0) return 0;
  if (trend.bytes_per_second <= 0) return std::nullopt;
  return left / trend.bytes_per_second;
}

}  // namespace memdiag

#endif  // MEMDIAG_TREND_H
