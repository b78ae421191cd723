/*
  Finds the stack that held most at the peak of a running statement, from the
  samples of its own thread.

  It follows a few stacks. A new one takes the place of the one with least
  bytes. The statement's peak is the moment at which the followed stacks
  together hold most.

  Ownership: an object belongs to one thread and is in that thread's memory.
  Units: estimated bytes.
*/

#ifndef MEMDIAG_STATEMENT_STACKS_H
#define MEMDIAG_STATEMENT_STACKS_H

#include <array>
#include <cstddef>
#include <cstdint>

namespace memdiag::profiling {

class Statement_stacks {
 public:
  /** A sample of a site came or went. @param site  not 0 */
  void add(uint32_t site, double bytes);
  void remove(uint32_t site, double bytes);

  /** The site that held most at the peak; 0: nothing was sampled. */
  uint32_t top_at_peak() const { return m_top_at_peak; }

  /** The next statement begins, with nothing. */
  void clear() { *this = {}; }

 private:
  struct Stack {
    uint32_t site;
    double bytes;
  };
  static constexpr size_t followed = 16;

  std::array<Stack, followed> m_stacks{};
  double m_bytes{0};
  double m_peak_bytes{0};
  uint32_t m_top_at_peak{0};
};

}  // namespace memdiag::profiling

#endif  // MEMDIAG_STATEMENT_STACKS_H
