/*
  Stacks merged into a tree of frames, and the tree laid out as rectangles: the
  model of a flame graph. It knows nothing of pictures.

  Ownership: a tree owns its names; Placed_frame points to them. Threads: each
  object belongs to one thread. Errors: std::bad_alloc.
  Memory: about 120 bytes for each node, the names of their functions and of the
  pools, and at most max_nodes nodes. When they are used up, a stack ends at its
  last frame that has a node.
*/

#ifndef MEMDIAG_FRAME_TREE_H
#define MEMDIAG_FRAME_TREE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace memdiag::profile {

struct Frame_weight {
  /** Bytes for which the rectangle's width stands; not negative. */
  double width{0};
  /** Bytes before and after; a picture of one moment uses `after`. */
  double before{0};
  double after{0};
  /** The variance of the estimate that the picture shows. */
  double variance{0};

  Frame_weight &operator+=(const Frame_weight &other) {
    width += other.width;
    before += other.before;
    after += other.after;
    variance += other.variance;
    return *this;
  }
};

/** A rectangle. */
struct Placed_frame {
  /** Empty for merged frames. */
  std::string_view name;
  /** 0: the root, which contains all frames. */
  size_t depth;
  /** From the left edge, in units of width. */
  double x;
  Frame_weight weight;
  /** The pool that has most of the width, and its share of the width. */
  std::string_view pool;
  double pool_share;
  /** So many frames beside each other that are too narrow to be shown. */
  size_t merged;
};

class Frame_tree {
 public:
  static constexpr size_t max_nodes = 1 << 20;

  Frame_tree();

  /** @param stack  the outermost function first, a semicolon between two
  Add all stacks of one pool before those of the next. */
  void add(std::string_view stack, std::string_view pool,
           const Frame_weight &weight);

  const Frame_weight &total() const { return m_nodes[0].weight; }

  /** The rectangles: each frame before those that it contains, wide ones first.
  @param least_share  frames narrower than this part of the total are merged
  @param most_frames  more narrow frames are merged until so many remain
  @param share        gets the share that was applied in the end */
  std::vector<Placed_frame> layout(double least_share, size_t most_frames,
                                   double *share) const;

 private:
  struct Node {
    uint32_t name;
    uint32_t parent;
    Frame_weight weight;
    /** The pool of the last stack with the width of its stacks so far, and the
    pool with the largest width. */
    uint32_t pool;
    uint32_t widest_pool;
    double pool_width;
    double widest_pool_width;
  };

  uint32_t number_of(std::string_view name);
  static void count(Node *node, uint32_t pool, const Frame_weight &weight);

  std::vector<Node> m_nodes;
  /** By parent and name. */
  std::unordered_map<uint64_t, uint32_t> m_children;
  /** The keys of an unordered_map do not move. */
  std::unordered_map<std::string, uint32_t> m_numbers;
  std::vector<const std::string *> m_names;
};

}  // namespace memdiag::profile

#endif  // MEMDIAG_FRAME_TREE_H
