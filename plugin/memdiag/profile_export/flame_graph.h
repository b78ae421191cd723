/*
  A profile as a flame graph: one SVG file that contains its style and its
  script, and loads nothing.

  The outermost function is at the top. The width of a frame is its live bytes.
  Its colour is the pool that has at least nine tenths of them; frames that
  serve several pools are grey. The picture and its tooltips are complete even
  if the script does not run, as in a page that embeds the file as an image.
  With the script, a click zooms, Escape goes back, and the field at the top
  searches by a regular expression and adds up the matches. "#s=<expression>"
  behind the file's name searches at once.

  In a difference, the width of a frame is the change of its stacks: grown and
  shrunk bytes added up. Stacks that did not change are missing. Red grew, blue
  shrank. Grey is a change of less than two standard errors, or one in which
  growth and shrinking even out.

  Size: at most max_svg_bytes. Frames narrower than 0.05% of the picture are
  merged into a frame that says so. If that leaves too many, wider ones are
  merged too; the picture names the limit.

  Untrusted: names of functions, pools and statements. They are escaped and are
  never part of the script.

  Threads: any. Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_FLAME_GRAPH_H
#define MEMDIAG_FLAME_GRAPH_H

#include <cstddef>
#include <string>
#include <vector>

#include "plugin/memdiag/profile/profile.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile/symbols.h"
#include "plugin/memdiag/profile_export/difference.h"

namespace memdiag::profile {

constexpr size_t max_svg_bytes = 1 << 20;

struct Flame_graph_options {
  std::string title{"Live memory"};
  First_frame first{First_frame::function};
};

/** @param symbols  of this profile */
std::string flame_graph(const Profile &profile, const Symbols &symbols,
                        const Flame_graph_options &options = {});

/** @param changes  in any order (difference.h)
@param after  the later profile, whose moment and rate are shown */
std::string difference_flame_graph(std::vector<Stack_change> changes,
                                   const Profile &after,
                                   const std::string &title = "Difference");

}  // namespace memdiag::profile

#endif  // MEMDIAG_FLAME_GRAPH_H
