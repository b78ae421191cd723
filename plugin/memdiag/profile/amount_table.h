/*
  Sums of samples by site and digest, in memory that was allocated before: the
  flight recorder adds up the live samples with it while memory is short.

  Ownership: it owns its memory; rows() are its own and change with the next
  call. Threads: each object belongs to one thread. Errors: std::bad_alloc from
  the constructor only; pairs that find no room are added up under site 0.
  Units: bytes of size classes; microseconds since the epoch.
*/

#ifndef MEMDIAG_AMOUNT_TABLE_H
#define MEMDIAG_AMOUNT_TABLE_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/profile_file.h"

namespace memdiag::profile {

class Amount_table {
 public:
  /** @param pairs  of site and digest that there is room for: 250 bytes each
  @throws std::bad_alloc */
  explicit Amount_table(size_t pairs);

  /** Forget all. */
  void clear() noexcept;

  /** @param digest  zeros: none
  @param live     what the sample stands for
  @param time_us  when it was taken */
  void add(uint32_t site, const Digest &digest, const Amount &live,
           uint64_t time_us) noexcept;

  /** In no order; median_us is the mean. */
  std::span<const Site_amount> rows() noexcept;

  const Amount &total() const noexcept { return m_total; }

 private:
  struct Sum {
    uint32_t site;
    uint32_t samples;
    Digest digest;
    Amount live;
    uint64_t oldest_us;
    /** The sum of the times. */
    double time_us;
  };

  Sum *find(uint32_t site, const Digest &digest) noexcept;

  /** Sum 0 is that of site 0. */
  std::vector<Sum> m_sums;
  /** Twice as many places; 0: empty. */
  std::vector<uint32_t> m_index;
  std::vector<Site_amount> m_rows;
  Amount m_total;
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_AMOUNT_TABLE_H
