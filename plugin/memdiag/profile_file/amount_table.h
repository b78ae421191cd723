/*
  Sums of samples by site and digest. The constructor allocates all memory, so
  the flight recorder can add up the live samples while memory is short.

  Ownership: it owns its memory; rows() are its own and change with the next
  call. Threads: each object belongs to one thread. Errors: std::bad_alloc from
  the constructor only. Samples of site 0, and of pairs that find no room, are
  one row of site 0 without a digest.
  Units: bytes of size classes; microseconds since the epoch.
*/

#ifndef MEMDIAG_AMOUNT_TABLE_H
#define MEMDIAG_AMOUNT_TABLE_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile_file/profile_file.h"

namespace memdiag::profile {

class Amount_table {
 public:
  /** @param pairs  room for so many pairs of site and digest: 184 bytes each
  @throws std::bad_alloc */
  explicit Amount_table(size_t pairs);

  /** Forget all. */
  void clear() noexcept;

  /** @param digest  zeros: none
  @param live     the estimate that the sample stands for
  @param time_us  when it was taken */
  void add(uint32_t site, const Digest &digest, const Amount &live,
           uint64_t time_us) noexcept;

  /** In no order. median_us has the mean, because single times are not kept. */
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

  /** The first is the sum of site 0. */
  std::vector<Sum> m_sums;
  /** Numbers of sums, found by hash. It has twice as many places as there are
  sums; 0: a free place. */
  std::vector<uint32_t> m_index;
  std::vector<Site_amount> m_rows;
  Amount m_total;
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_AMOUNT_TABLE_H
