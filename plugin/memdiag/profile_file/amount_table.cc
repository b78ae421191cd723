#include "plugin/memdiag/profile_file/amount_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace memdiag::profile {
namespace {

/** Digests are evenly spread already. */
size_t hash_of(uint32_t site, const Digest &digest) {
  uint64_t part;
  memcpy(&part, digest.data(), sizeof part);
  uint64_t hash = (part ^ site) * 0x9e3779b97f4a7c15;
  return static_cast<size_t>(hash ^ hash >> 32);
}

uint64_t rounded(double amount) {
  return amount < 1e18 ? static_cast<uint64_t>(std::max(amount, 0.0) + 0.5)
                       : uint64_t{1000000000000000000};
}

}  // namespace

Amount_table::Amount_table(size_t pairs) {
  m_sums.reserve(pairs + 1);
  m_rows.reserve(pairs + 1);
  // Written, so that the kernel gives the pages before memory is short.
  m_sums.resize(pairs + 1);
  m_rows.resize(pairs + 1);
  m_index.resize(2 * pairs + 1);
  clear();
}

void Amount_table::clear() noexcept {
  m_sums.clear();
  m_sums.push_back({});
  std::fill(m_index.begin(), m_index.end(), 0);
  m_total = {};
}

Amount_table::Sum *Amount_table::find(uint32_t site,
                                      const Digest &digest) noexcept {
  if (site == 0) return &m_sums[0];
  // Half of the places are empty at least, so that the search ends.
  for (size_t at = hash_of(site, digest) % m_index.size();;
       at = (at + 1) % m_index.size()) {
    uint32_t &number = m_index[at];
    if (number == 0) {
      if (m_sums.size() == m_sums.capacity()) return &m_sums[0];
      number = static_cast<uint32_t>(m_sums.size());
      m_sums.push_back({site, 0, digest, {}, 0, 0});
      return &m_sums.back();
    }
    Sum &sum = m_sums[number];
    if (sum.site == site && sum.digest == digest) return &sum;
  }
}

void Amount_table::add(uint32_t site, const Digest &digest, const Amount &live,
                       uint64_t time_us) noexcept {
  Sum &sum = *find(site, digest);
  sum.oldest_us = sum.samples == 0 ? time_us : std::min(sum.oldest_us, time_us);
  ++sum.samples;
  sum.live += live;
  sum.time_us += static_cast<double>(time_us);
  m_total += live;
}

std::span<const Site_amount> Amount_table::rows() noexcept {
  m_rows.clear();
  for (const Sum &sum : m_sums)
    if (sum.samples != 0)
      m_rows.push_back({sum.site, sum.samples, sum.digest,
                        rounded(sum.live.bytes), rounded(sum.live.objects),
                        rounded(std::sqrt(sum.live.bytes_variance)),
                        rounded(std::sqrt(sum.live.objects_variance)),
                        sum.oldest_us, rounded(sum.time_us / sum.samples)});
  return m_rows;
}

}  // namespace memdiag::profile
