/*
  For std::random_device of the static C++ library, which on the build machine
  found this function in glibc: only glibc 2.36 and later have it. Hidden, so
  each program has its own.
*/
#include <stdint.h>
#include <sys/random.h>

__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t value;
  while (getrandom(&value, sizeof(value), 0) != (ssize_t)sizeof(value)) {
  }
  return value;
}
