#include "plugin/memdiag/profile_export/frame_tree.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace memdiag::profile {

Frame_tree::Frame_tree() {
  const uint32_t no_name = number_of("");
  m_nodes.push_back({no_name, 0, {}, no_name, no_name, 0, 0});
}

uint32_t Frame_tree::number_of(std::string_view name) {
  const auto [found, is_new] = m_numbers.try_emplace(
      std::string(name), static_cast<uint32_t>(m_numbers.size()));
  if (is_new) m_names.push_back(&found->first);
  return found->second;
}

void Frame_tree::count(Node *node, uint32_t pool, const Frame_weight &weight) {
  node->weight += weight;
  if (node->pool != pool) {
    node->pool = pool;
    node->pool_width = 0;
  }
  node->pool_width += weight.width;
  if (node->pool_width > node->widest_pool_width) {
    node->widest_pool = pool;
    node->widest_pool_width = node->pool_width;
  }
}

void Frame_tree::add(std::string_view stack, std::string_view pool,
                     const Frame_weight &weight) {
  const uint32_t pool_number = number_of(pool);
  uint32_t at = 0;
  count(&m_nodes[at], pool_number, weight);
  for (size_t begin = 0, end; begin <= stack.size(); begin = end + 1) {
    end = std::min(stack.find(';', begin), stack.size());
    const std::string name(stack.substr(begin, end - begin));
    if (m_nodes.size() == max_nodes && !m_numbers.contains(name)) return;
    const uint32_t number = number_of(name);
    const uint64_t key = uint64_t{at} << 32 | number;
    auto child = m_children.find(key);
    if (child == m_children.end()) {
      if (m_nodes.size() == max_nodes) return;
      child =
          m_children.emplace(key, static_cast<uint32_t>(m_nodes.size())).first;
      m_nodes.push_back({number, at, {}, pool_number, pool_number, 0, 0});
    }
    at = child->second;
    count(&m_nodes[at], pool_number, weight);
  }
}

std::vector<Placed_frame> Frame_tree::layout(double least_share,
                                             size_t most_frames,
                                             double *share) const {
  const double total = m_nodes[0].weight.width;
  double least_width = total * least_share;
  if (m_nodes.size() > most_frames) {
    std::vector<double> widths;
    widths.reserve(m_nodes.size());
    for (const Node &node : m_nodes) widths.push_back(node.weight.width);
    std::nth_element(widths.begin(),
                     widths.begin() + static_cast<ptrdiff_t>(most_frames),
                     widths.end(), std::greater<>());
    // Just above: there may be many of that width.
    least_width =
        std::max(least_width, std::nextafter(widths[most_frames], HUGE_VAL));
  }
  *share = total > 0 ? least_width / total : 0;

  // Children lie side by side in `order`, the widest first.
  std::vector<uint32_t> order(m_nodes.size() - 1);
  for (uint32_t i = 1; i < m_nodes.size(); ++i) order[i - 1] = i;
  std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
    const Node &x = m_nodes[a];
    const Node &y = m_nodes[b];
    if (x.parent != y.parent) return x.parent < y.parent;
    if (x.weight.width != y.weight.width)
      return x.weight.width > y.weight.width;
    return *m_names[x.name] < *m_names[y.name];
  });
  const auto children_of = [&](uint32_t parent) {
    return std::lower_bound(order.begin(), order.end(), parent,
                            [this](uint32_t node, uint32_t wanted) {
                              return m_nodes[node].parent < wanted;
                            });
  };

  struct Place {
    uint32_t node;
    size_t depth;
    double x;
  };
  std::vector<Placed_frame> placed;
  std::vector<Place> waiting{{0, 0, 0}};
  std::vector<Place> shown;
  while (!waiting.empty()) {
    const Place place = waiting.back();
    waiting.pop_back();
    const Node &node = m_nodes[place.node];
    placed.push_back(
        {*m_names[node.name], place.depth, place.x, node.weight,
         *m_names[node.widest_pool],
         node.weight.width > 0 ? node.widest_pool_width / node.weight.width : 0,
         0});
    double x = place.x;
    Placed_frame other{"", place.depth + 1, 0, {}, "", 0, 0};
    shown.clear();
    for (auto i = children_of(place.node);
         i != order.end() && m_nodes[*i].parent == place.node; ++i) {
      const Frame_weight &weight = m_nodes[*i].weight;
      if (weight.width > 0 && weight.width >= least_width) {
        shown.push_back({*i, place.depth + 1, x});
        x += weight.width;
      } else {
        other.weight += weight;
        ++other.merged;
      }
    }
    other.x = x;
    // If all of them are too narrow, the empty place is as well.
    if (other.weight.width > 0 && other.weight.width >= least_width)
      placed.push_back(other);
    waiting.insert(waiting.end(), shown.rbegin(), shown.rend());
  }
  return placed;
}

}  // namespace memdiag::profile
