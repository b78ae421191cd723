/*
  A number of bytes that is written with a unit, as options have it.

  Pure. Errors: a wrong text is empty. Units: bytes.
*/

#ifndef MEMDIAG_SIZE_TEXT_H
#define MEMDIAG_SIZE_TEXT_H

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace memdiag {

/** Digits, which one letter of `units` may follow, in either case. The first
unit is 1,024 bytes, and each of the others 1,024 times the one before.
@param units  such as "KMGT" */
inline std::optional<uint64_t> bytes_of(std::string_view text,
                                        std::string_view units) {
  uint64_t number = 0;
  const char *const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{}) return std::nullopt;
  if (rest == end) return number;
  const size_t unit = units.find(static_cast<char>(*rest & ~0x20));
  if (rest + 1 != end || unit == units.npos) return std::nullopt;
  const size_t shift = 10 * (unit + 1);
  if (number > (UINT64_MAX >> shift)) return std::nullopt;
  return number << shift;
}

}  // namespace memdiag

#endif  // MEMDIAG_SIZE_TEXT_H
