#ifndef MEMDIAG_TEXT_H
#define MEMDIAG_TEXT_H

#include <cstdarg>
#include <cstdio>
#include <string>

namespace memdiag {

/** Formats as printf() does, and cuts the result to 1,023 bytes. */
__attribute__((format(printf, 1, 2))) inline std::string text(
    const char *format, ...) {
  char buffer[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

}  // namespace memdiag

#endif  // MEMDIAG_TEXT_H
