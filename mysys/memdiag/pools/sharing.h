/*
  All CPUs share one arena of a pool while the server starts.

  One thread does nearly everything then, and on its way over the CPUs it would
  leave an arena on each of them. Sharing ends when the first client is served,
  and ten seconds after the purger began, because a replica may have no client.
  Arenas that were made stay in use.

  Threads: any. No function takes a lock.
*/

#ifndef MEMDIAG_SHARING_H
#define MEMDIAG_SHARING_H

namespace memdiag::pools {

/** true: all CPUs take the arena of a pool's first slot, and large blocks that
of the second. false: each CPU takes that of its own. At first they share. */
void share_one_arena(bool share) noexcept;
bool shares_one_arena() noexcept;

}  // namespace memdiag::pools

#endif  // MEMDIAG_SHARING_H
