/*
  The units of figures, as the reference page and MEMDIAG_HOST print them.

  A pure function, whose texts live for ever. Threads: any. No errors.
*/

#ifndef MEMDIAG_UNIT_H
#define MEMDIAG_UNIT_H

#include <cstdint>

namespace memdiag {

enum class Unit : uint8_t {
  none,
  bytes,
  bytes_per_second,
  count,
  ratio,
  percent,
  seconds,
  milliseconds,
  microseconds,
  nanoseconds
};

constexpr const char *unit_name(Unit unit) {
  switch (unit) {
    case Unit::none:
      return "";
    case Unit::bytes:
      return "bytes";
    case Unit::bytes_per_second:
      return "bytes/s";
    case Unit::count:
      return "count";
    case Unit::ratio:
      return "ratio";
    case Unit::percent:
      return "%";
    case Unit::seconds:
      return "s";
    case Unit::milliseconds:
      return "ms";
    case Unit::microseconds:
      return "µs";
    case Unit::nanoseconds:
      return "ns";
  }
  return "";
}

}  // namespace memdiag

#endif  // MEMDIAG_UNIT_H
