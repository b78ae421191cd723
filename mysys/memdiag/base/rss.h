/*
  The physical memory of this process, as the kernel counts it.

  Threads: any. Nothing is allocated. Units: bytes.
*/

#ifndef MEMDIAG_RSS_H
#define MEMDIAG_RSS_H

#include <cstdint>

namespace memdiag {

/** VmRSS. Kernels before 6.17 are up to 64 pages behind for each CPU.
@return 0: not known */
uint64_t process_rss() noexcept;

}  // namespace memdiag

#endif  // MEMDIAG_RSS_H
