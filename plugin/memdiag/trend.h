/*
  Where a figure is going: a straight line through its samples, by least
  squares (any textbook; Montgomery, Peck, Vining: Introduction to Linear
  Regression Analysis, chapter 2):

    slope = Sxy / Sxx,  r2 = Sxy^2 / (Sxx * Syy)

  with the sums of squares and products of deviations from the means. Pure
  functions of what they are given. Units: bytes, seconds.
*/

#ifndef MEMDIAG_TREND_H
#define MEMDIAG_TREND_H

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "black_box.h"

namespace memdiag {

struct Trend {
  double bytes_per_second;
  /** How much of the variation the line explains: 1 is all of it, as of a
  figure that never changed; near 0, it goes nowhere. */
  double r2;
  /** The line's value at the last sample. */
  double last_bytes;
  /** From the first sample to the last. */
  double seconds;
};

/** @param figure  of a sample: a member, or a function of it that returns
uint64_t; samples where it is unknown do not count
@return empty: less than three samples, or all of one moment */
template <typename Figure>
std::optional<Trend> trend(std::span<const black_box::Sample> samples,
                           Figure figure) {
  // Of the first sample, so that no digits are lost.
  const black_box::Sample *first = nullptr;
  double count = 0;
  double x_sum = 0;
  double y_sum = 0;
  double x_last = 0;
  const auto for_each = [&](auto visit) {
    for (const black_box::Sample &sample : samples) {
      const uint64_t value = std::invoke(figure, sample);
      if (value == black_box::unknown) continue;
      if (first == nullptr) first = &sample;
      visit((static_cast<double>(sample.time_us) -
             static_cast<double>(first->time_us)) /
                1e6,
            static_cast<double>(value));
    }
  };
  for_each([&](double x, double y) {
    ++count;
    x_sum += x;
    y_sum += y;
    x_last = std::max(x_last, x);
  });
  if (count < 3) return std::nullopt;
  const double x_mean = x_sum / count;
  const double y_mean = y_sum / count;
  double s_xx = 0;
  double s_xy = 0;
  double s_yy = 0;
  for_each([&](double x, double y) {
    s_xx += (x - x_mean) * (x - x_mean);
    s_xy += (x - x_mean) * (y - y_mean);
    s_yy += (y - y_mean) * (y - y_mean);
  });
  if (s_xx == 0) return std::nullopt;
  const double slope = s_xy / s_xx;
  return Trend{slope, s_yy == 0 ? 1 : s_xy * s_xy / (s_xx * s_yy),
               y_mean + slope * (x_last - x_mean), x_last};
}

/** How long until a limit is reached if it goes on like that; 0: it is now.
@return empty: never, because it does not grow */
inline std::optional<double> seconds_until(const Trend &trend,
                                           uint64_t limit_bytes) {
  const double left = static_cast<double>(limit_bytes) - trend.last_bytes;
  if (left <= 0) return 0;
  if (trend.bytes_per_second <= 0) return std::nullopt;
  return left / trend.bytes_per_second;
}

}  // namespace memdiag

#endif  // MEMDIAG_TREND_H
