/*
  Figures and bytes as texts.

  Pure functions; the caller owns what they return. Threads: any.
  Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_TEXT_H
#define MEMDIAG_TEXT_H

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <span>
#include <string>

namespace memdiag {

/** Formats as printf() does, and cuts the result to 1,023 bytes.
@return empty, too, if printf() would fail: the buffer is not written then */
__attribute__((format(printf, 1, 2))) inline std::string text(
    const char *format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return length < 0 ? "" : buffer;
}

/** Two lower-case digits for each byte. */
inline std::string hex(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string result;
  for (const std::byte byte : bytes) {
    result += digits[std::to_integer<unsigned>(byte) >> 4];
    result += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return result;
}

}  // namespace memdiag

#endif  // MEMDIAG_TEXT_H
