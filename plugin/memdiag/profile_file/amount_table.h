/*
  Sums of samples by site and digest. The constructor allocates all memory, so
  the flight recorder can add up the live samples while memory is short.

  Ownership: it owns its memory; rows() are its own and change with the next
  call. Threads: each object belongs to one thread. Errors: std::bad_alloc from
  the constructor only.
  Bounds: a new pair that finds no room takes that of the smallest pairs. These
  lose their digests first: they become one row of their site. The sites that
  then hold least become a part of the row of site 0, as do samples of site 0.
  So one large block keeps its stack, however late its sample comes.
  Units: bytes of size classes; microseconds since the epoch.
*/

#ifndef MEMDIAG_AMOUNT_TABLE_H
#define MEMDIAG_AMOUNT_TABLE_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile_file/recorded_run.h"

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

    void add(const Sum &other) noexcept;
    bool is_larger(const Sum &than) const noexcept;
  };

  /** The place in m_index of a pair, or the free place where it belongs. */
  uint32_t *place_of(uint32_t site, const Digest &digest) noexcept;
  void make_room() noexcept;

  /** The first is the sum of site 0; m_used of them are in use. */
  std::vector<Sum> m_sums;
  size_t m_used{0};
  /** Numbers of sums, found by hash. It has twice as many places as there are
  sums; 0: a free place. */
  std::vector<uint32_t> m_index;
  std::vector<Site_amount> m_rows;
  Amount m_total;
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_AMOUNT_TABLE_H
