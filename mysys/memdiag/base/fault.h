/*
  The one switch with which tests make a source of figures fail.

  Code that may fail asks at() where it reads. A server of users arms nothing:
  at() is then one relaxed load. One fault is armed at a time, for all threads,
  until it is disarmed. The loadable function memdiag_fault() of the test suite
  (plugin/memdiag/test/fault.cc) arms it by name. Allocations have a switch of
  their own, because they count: pools/failures_for_test.h.

  Threads: any. Ownership: arm() keeps no text. Errors: none.
*/

#ifndef MEMDIAG_FAULT_H
#define MEMDIAG_FAULT_H

#include <atomic>
#include <cstdint>
#include <string_view>

namespace memdiag::fault {

enum class Point : uint8_t {
  none,
  control,     // a control of jemalloc, by its Ctl
  pages,       // the kernel's answer which pages are in physical memory
  file,        // a file of the kernel, by digest_of() its name
  dictionary,  // InnoDB's dictionary: another thread holds its mutex
  variables,   // the server's system variables
  profile,     // memory for the heap profiler
  end          // the end of a read that may be interrupted: only that ends it
};

/** A number for a name: a point with several sources has one for each. */
constexpr uint32_t digest_of(std::string_view name) {
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
  return hash;
}

namespace detail {
constexpr uint64_t pack(Point point, uint32_t source) {
  return static_cast<uint64_t>(point) << 32 | source;
}
inline constinit std::atomic<uint64_t> armed{0};
}  // namespace detail

/** From now on at(point, source) is true, and no other. */
inline void arm(Point point, uint32_t source = 0) {
  detail::armed.store(detail::pack(point, source), std::memory_order_relaxed);
}

inline void disarm() { arm(Point::none); }

inline bool at(Point point, uint32_t source = 0) {
  return detail::armed.load(std::memory_order_relaxed) ==
         detail::pack(point, source);
}

}  // namespace memdiag::fault

#endif  // MEMDIAG_FAULT_H
