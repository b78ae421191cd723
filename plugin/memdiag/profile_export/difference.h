/*
  The difference between an earlier profile and a later one.

  Users keep the earlier one as folded stacks, each of which begins with its
  pool. So it may come from another run or from another server. Stacks are
  compared by the names of their functions.

  The standard error of a change is that of two independent estimates. Within
  one run it may be too large, but never too small: samples that lived at both
  moments cancel out, and sums cannot show their number. Folded stacks have no
  errors. The variance of a stack is at most its bytes times the rate; the rate
  of the later profile is used for both.

  Threads: any. Errors: std::bad_alloc. Units: profile.h.
*/

#ifndef MEMDIAG_PROFILE_DIFFERENCE_H
#define MEMDIAG_PROFILE_DIFFERENCE_H

#include <string>
#include <vector>

#include "plugin/memdiag/profile/folded.h"
#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

struct Change {
  Amount before;
  Amount after;

  double bytes() const { return after.bytes - before.bytes; }
  double bytes_variance() const {
    return before.bytes_variance + after.bytes_variance;
  }
};

struct Stack_change {
  /** As folded() with First_frame::pool. */
  std::string stack;
  /** Bytes and their variances. Folded stacks have no objects. */
  Change change;

  /** The name of the pool, with which the stack begins. */
  std::string pool() const { return stack.substr(0, stack.find(';')); }
};

/** Each stack whose bytes differ, the largest growth first, then in the order
of their text.
@param before         parse_folded() of folded() with First_frame::pool
@param after_symbols  of `after` */
std::vector<Stack_change> difference(const Folded_bytes &before,
                                     const Profile &after,
                                     const Symbols &after_symbols);

/** One line for each stack that changed: its functions from the outermost to
the innermost, a space, bytes before, a space, bytes after. flamegraph.pl and
inferno show growth in red and shrinking in blue. */
std::string folded_difference(const std::vector<Stack_change> &changes);

}  // namespace memdiag::profile

#endif  // MEMDIAG_PROFILE_DIFFERENCE_H
