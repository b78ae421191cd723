#include "plugin/memdiag/ledger/pool_shares.h"

#include <algorithm>

#include "plugin/memdiag/ledger/amounts.h"

namespace memdiag::ledger {
namespace {

using extents::Present;

Pool_split split_of(const Present &present) {
  return {present.small_live_bytes + present.large_bytes,
          present.small_free_bytes, present.dirty_bytes, present.muzzy_bytes,
          0};
}

/** Unused bytes that are present now. A thread had written the pages that it
freed since the walk, so they are present. Of the pages that went since, the
same part was present as the walk found of all. */
uint64_t unused(uint64_t now, uint64_t then, uint64_t present) {
  return now > then ? now - minus_or_zero(then, present)
                    : proportion(now, std::min(present, then), then);
}

/** A pool's bytes now. As many of its active pages as at the walk are taken to
be still unwritten. */
Pool_split expected(const Pool_figures &now, const Pool_figures &then,
                    const Present &present) {
  const Pool_split was = split_of(present);
  const uint64_t written = was.live + was.fragmentation;
  const uint64_t active = minus_or_zero(
      now.active_bytes, minus_or_zero(then.active_bytes, written));
  // The two are read one after the other: a growing pool can show more live
  // than active bytes.
  const uint64_t live =
      std::min(active, proportion(active, now.live_bytes, now.active_bytes));
  return {live, active - live,
          unused(now.dirty_bytes, then.dirty_bytes, was.dirty),
          unused(now.muzzy_bytes, then.muzzy_bytes, was.muzzy), 0};
}

/** Gives the bytes that the kernel has beyond the expected ones to the pools
that have grown since the walk, as far as they have pages for them. A walk in
the midst of growth finds pages unwritten that a thread writes a moment later.
Where the kernel has fewer bytes than expected, the walk does not tell whose
they were.
@return the bytes that found a place */
uint64_t add_to_growing(uint64_t more, const All_pools &now,
                        const Walked &walked,
                        std::array<Pool_split, pool_count> *pools) {
  std::array<uint64_t, pool_count> room{};
  uint64_t all_room = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    const Pool_split &pool = (*pools)[i];
    room[i] = std::min(
        minus_or_zero(now[i].active_bytes, walked.pools[i].active_bytes),
        minus_or_zero(now[i].active_bytes, pool.live + pool.fragmentation));
    all_room += room[i];
  }
  more = std::min(more, all_room);
  uint64_t added = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    const uint64_t part = proportion(more, room[i], all_room);
    const uint64_t live = std::min(
        part, proportion(part, now[i].live_bytes, now[i].active_bytes));
    (*pools)[i].live += live;
    (*pools)[i].fragmentation += part - live;
    added += part;
  }
  return added;
}

void share_out_metadata(const All_pools &counted, Shared_out *result) {
  uint64_t all = 0;
  for (const Pool_figures &pool : counted) all += pool.metadata_bytes;
  uint64_t metadata = std::min(result->other, all);
  result->other -= metadata;
  // Each takes its part of what is left, so that rounding leaves nothing.
  for (size_t i = 0; i < pool_count; ++i) {
    const uint64_t part = proportion(metadata, counted[i].metadata_bytes, all);
    result->pools[i].metadata = part;
    metadata -= part;
    all -= counted[i].metadata_bytes;
  }
}

/** Fills in each pool's bytes. @return their sum */
uint64_t expect_all(const All_pools &now, const Walked &walked,
                    std::array<Pool_split, pool_count> *pools) {
  uint64_t all = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    const Pool_split pool =
        expected(now[i], walked.pools[i], walked.walk.pools[i]);
    (*pools)[i] = pool;
    all += pool.live + pool.fragmentation + pool.dirty + pool.muzzy;
  }
  return all;
}

}  // namespace

Shared_out shared_out_exactly(const Walked &walked) {
  Shared_out result{};
  for (size_t i = 0; i < pool_count; ++i)
    result.pools[i] = split_of(walked.walk.pools[i]);
  result.other = walked.walk.unowned_bytes;
  share_out_metadata(walked.pools, &result);
  return result;
}

Shared_out shared_out(uint64_t bytes, const All_pools &now,
                      const Walked &walked) {
  Shared_out result{};
  uint64_t all = expect_all(now, walked, &result.pools);
  result.other = std::min(walked.walk.unowned_bytes, bytes);
  const uint64_t in_extents = bytes - result.other;
  all += add_to_growing(minus_or_zero(in_extents, all), now, walked,
                        &result.pools);
  for (Pool_split &pool : result.pools)
    for (uint64_t *part :
         {&pool.live, &pool.fragmentation, &pool.dirty, &pool.muzzy})
      *part = proportion(in_extents, *part, all);
  share_out_metadata(now, &result);
  return result;
}

uint64_t expected_anonymous(const All_pools &now, const Walked &walked) {
  std::array<Pool_split, pool_count> pools;
  return expect_all(now, walked, &pools) + walked.walk.unowned_bytes +
         walked.only_read_bytes;
}

}  // namespace memdiag::ledger
