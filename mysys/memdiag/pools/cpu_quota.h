/*
  The CPU quota of the process's control group. A container with a quota of two
  CPUs on a machine of 64 may run on all 64, and its threads wander over them.
  Only a few run at a moment.

  Both versions of control groups count: cpu.cfs_quota_us and
  cpu.cfs_period_us, or cpu.max. The lowest quota of the process's own group and
  of those above it holds. Groups beyond the root of a container's namespace
  cannot be seen.

  Errors: what cannot be read or understood is no quota.
  Threads: any. Memory: nothing is allocated; buffers of some 13 KB are on the
  caller's stack.
*/

#ifndef MEMDIAG_CPU_QUOTA_H
#define MEMDIAG_CPU_QUOTA_H

#include <climits>

namespace memdiag::pools {

constexpr unsigned no_quota = UINT_MAX;

/** Twice the quota, in CPUs and rounded up: a thread that is interrupted keeps
its CPU's shard while another one runs. At least 1.
@param root  the folder with proc/; paths of mounts are below it, too. Tests
             have one of their own
@return no_quota: there is none, or it is not known */
unsigned cpus_of_quota(const char *root = "") noexcept;

}  // namespace memdiag::pools

#endif  // MEMDIAG_CPU_QUOTA_H
