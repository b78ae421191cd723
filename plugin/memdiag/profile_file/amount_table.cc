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

void Amount_table::Sum::add(const Sum &other) noexcept {
  oldest_us =
      samples == 0 ? other.oldest_us : std::min(oldest_us, other.oldest_us);
  samples += other.samples;
  live += other.live;
  time_us += other.time_us;
}

/** A total order, so that the same samples always give the same rows. */
bool Amount_table::Sum::is_larger(const Sum &than) const noexcept {
  if (live.bytes != than.live.bytes) return live.bytes > than.live.bytes;
  return site != than.site ? site < than.site : digest < than.digest;
}

Amount_table::Amount_table(size_t pairs) {
  m_rows.reserve(pairs + 1);
  // Written, so that the kernel gives the pages before memory is short.
  m_sums.resize(pairs + 1);
  m_rows.resize(pairs + 1);
  m_index.resize(2 * pairs + 1);
  clear();
}

void Amount_table::clear() noexcept {
  m_sums[0] = {};
  m_used = 1;
  std::fill(m_index.begin(), m_index.end(), 0);
  m_total = {};
}

uint32_t *Amount_table::place_of(uint32_t site, const Digest &digest) noexcept {
  // Half of the places are empty at least, so that the search ends.
  for (size_t at = hash_of(site, digest) % m_index.size();;
       at = (at + 1) % m_index.size()) {
    const uint32_t number = m_index[at];
    if (number == 0 ||
        (m_sums[number].site == site && m_sums[number].digest == digest))
      return &m_index[at];
  }
}

/** Half of the pairs stay. The others keep their sites as far as three quarters
of the room suffice, so that this is not done for each new pair. */
void Amount_table::make_room() noexcept {
  const size_t pairs = m_sums.size() - 1;
  const size_t end = m_used;
  const size_t most = end - std::max<size_t>(pairs / 4, 1);
  std::sort(m_sums.begin() + 1, m_sums.begin() + static_cast<ptrdiff_t>(end),
            [](const Sum &a, const Sum &b) { return a.is_larger(b); });
  m_used = end - std::max<size_t>(pairs / 2, 1);
  std::fill(m_index.begin(), m_index.end(), 0);
  for (uint32_t i = 1; i < m_used; ++i)
    *place_of(m_sums[i].site, m_sums[i].digest) = i;
  for (size_t i = m_used; i < end; ++i) {
    Sum smaller = m_sums[i];
    smaller.digest = {};
    uint32_t *const place = place_of(smaller.site, smaller.digest);
    if (*place == 0 && m_used < most) {
      *place = static_cast<uint32_t>(m_used);
      m_sums[m_used++] = smaller;
    } else {
      m_sums[*place].add(smaller);  // 0: of site 0
    }
  }
}

void Amount_table::add(uint32_t site, const Digest &digest, const Amount &live,
                       uint64_t time_us) noexcept {
  m_total += live;
  const Sum sample{site, 1,       digest,
                   live, time_us, static_cast<double>(time_us)};
  if (site == 0) {
    m_sums[0].add(sample);
    return;
  }
  uint32_t *place = place_of(site, digest);
  if (*place == 0) {
    if (m_used == m_sums.size()) {
      make_room();
      place = place_of(site, digest);
    }
    *place = static_cast<uint32_t>(m_used);
    m_sums[m_used++] = {site, 0, digest, {}, 0, 0};
  }
  m_sums[*place].add(sample);
}

std::span<const Site_amount> Amount_table::rows() noexcept {
  m_rows.clear();
  for (const Sum &sum : std::span{m_sums}.first(m_used))
    if (sum.samples != 0)
      m_rows.push_back({sum.site, sum.samples, sum.digest,
                        rounded(sum.live.bytes), rounded(sum.live.objects),
                        rounded(std::sqrt(sum.live.bytes_variance)),
                        rounded(std::sqrt(sum.live.objects_variance)),
                        sum.oldest_us, rounded(sum.time_us / sum.samples)});
  return m_rows;
}

}  // namespace memdiag::profile
