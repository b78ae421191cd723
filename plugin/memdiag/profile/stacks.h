/*
  The entries of a profile as stacks of names. Every text and picture of a
  profile is made from these.

  Threads: any. Errors: std::bad_alloc. After the statement was killed
  (interruption.h) stacks are missing.
*/

#ifndef MEMDIAG_STACKS_H
#define MEMDIAG_STACKS_H

#include <map>
#include <string>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/symbols.h"

namespace memdiag::profile {

/** The first frame of a stack. */
enum class First_frame : uint8_t {
  /** Its outermost function. */
  function,
  /** The name of its pool, or "unknown". */
  pool,
  /** The digest of the statement in hexadecimal, or "no statement". */
  digest
};

/** In hexadecimal, as Performance Schema shows it. */
std::string digest_text(const Digest &digest);

/** Live bytes by pool and folded stack (frames_text.h). Sites whose functions
are the same are added up. A pool whose name is not known is "unknown". Entries
without a Site (Entry::site) are left out. */
using Folded_stacks = std::map<std::string, std::map<std::string, Amount>>;

/** @param symbols  of this profile */
Folded_stacks folded_stacks(const Profile &profile, const Symbols &symbols,
                            First_frame first = First_frame::function);

}  // namespace memdiag::profile

#endif  // MEMDIAG_STACKS_H
