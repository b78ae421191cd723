/*
  What changed from one profile to another.

  Two profiles of one run are compared by their sites, whose numbers stay the
  same until the profiler is switched off. Profiles of different runs are
  compared by the names of their functions.

  The standard error of a change is that of two independent estimates. Within
  one run it is too large, never too small: samples that lived at both moments
  cancel out, and sums cannot show how many those were.

  Threads: any. Errors: std::bad_alloc. Units: profile.h.
*/

#ifndef MEMDIAG_PROFILE_DIFFERENCE_H
#define MEMDIAG_PROFILE_DIFFERENCE_H

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

struct Change {
  Amount before;
  Amount after;

  double bytes() const { return after.bytes - before.bytes; }
  double objects() const { return after.objects - before.objects; }
  double bytes_error() const {
    return std::sqrt(before.bytes_variance + after.bytes_variance);
  }
  double objects_error() const {
    return std::sqrt(before.objects_variance + after.objects_variance);
  }
  /** false: the change is less than two standard errors, which sampling alone
  causes once in twenty times. */
  bool is_significant() const {
    return bytes() != 0 && std::abs(bytes()) >= 2 * bytes_error();
  }
};

struct Site_change {
  /** Site::number. */
  uint32_t site;
  Change change;
};

/** Each site that either profile has, the largest growth first. Both profiles
are of one run of the profiler: Profile::since_us is the same. */
std::vector<Site_change> difference_by_site(const Profile &before,
                                            const Profile &after);

struct Stack_change {
  std::string pool;
  /** As folded_stack(). */
  std::string stack;
  Change change;
};

/** Each pair of pool and stack that either profile has, the largest growth
first.
@param before_symbols, after_symbols  of these profiles */
std::vector<Stack_change> difference_by_stack(
    const Profile &before, const Symbols &before_symbols, const Profile &after,
    const Symbols &after_symbols, First_frame first = First_frame::function);

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_DIFFERENCE_H
