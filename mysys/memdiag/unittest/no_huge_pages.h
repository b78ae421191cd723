/*
  Whether the kernel may put huge pages at an address: the flag "nh" of a
  mapping in /proc/self/smaps (Documentation/filesystems/proc.rst).

  Ownership: none. Threads: any. Locks: none.
*/

#ifndef MEMDIAG_TEST_NO_HUGE_PAGES_H
#define MEMDIAG_TEST_NO_HUGE_PAGES_H

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace memdiag_test {

inline bool has_no_huge_pages(const void *address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin;
    unsigned long end;
    if (sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2)
      here = begin <= wanted && wanted < end;
    else if (here && line.starts_with("VmFlags:"))
      return line.find(" nh") != std::string::npos;
  }
  return false;
}

}  // namespace memdiag_test

#endif  // MEMDIAG_TEST_NO_HUGE_PAGES_H
