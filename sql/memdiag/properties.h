/*
  The types of a property list's two members: dd::Properties_impl,
  patches/diets/0043-dd-properties.patch.

  The dictionary cache keeps two such lists for each column, index and partition
  of a table. Upstream copies the valid keys into each list, a tree of up to
  nine nodes, although all lists of one kind have the same ones. And it keeps
  each pair in a tree node of 96 bytes; most lists have none or one.

  Plain C++ without any header of the server. Ownership: Valid_keys points to
  its caller's set, which must live longer. Upstream's sets are constants of
  their files. Threads: as for std containers.
*/

#ifndef MEMDIAG_PROPERTIES_H
#define MEMDIAG_PROPERTIES_H

#include <algorithm>
#include <list>
#include <set>
#include <utility>
#include <vector>

namespace memdiag {

/** The part of std::map that dd::Properties uses, in one array. The pairs lie
in the order of their keys. A pair that comes or goes moves others, and then
iterators and references are no longer valid. GCC 12 has no std::flat_map. */
template <typename Text>
class Pairs {
  using Array = std::vector<std::pair<Text, Text>>;

 public:
  using value_type = typename Array::value_type;
  using iterator = typename Array::iterator;
  using const_iterator = typename Array::const_iterator;

  iterator begin() { return m_pairs.begin(); }
  const_iterator begin() const { return m_pairs.begin(); }
  iterator end() { return m_pairs.end(); }
  const_iterator end() const { return m_pairs.end(); }
  size_t size() const { return m_pairs.size(); }
  size_t capacity() const { return m_pairs.capacity(); }
  bool empty() const { return m_pairs.empty(); }
  void clear() { m_pairs.clear(); }
  iterator erase(const_iterator at) { return m_pairs.erase(at); }

  iterator find(const Text &key) { return found(*this, key); }
  const_iterator find(const Text &key) const { return found(*this, key); }

  /** As with std::map, a key that is there keeps its value. */
  iterator insert(const_iterator, const value_type &pair) {
    const auto at = place(*this, pair.first);
    if (is_of(at, pair.first)) return at;
    const auto index = at - begin();
    // A list gets its few pairs one by one and is kept: no spare room. The list
    // of a view's columns may be long.
    if (size() < 16) m_pairs.reserve(size() + 1);
    return m_pairs.insert(begin() + index, pair);
  }
  Text &operator[](const Text &key) { return insert(end(), {key, {}})->second; }

 private:
  /** `self` is const or not, and so is the iterator. */
  template <typename Self>
  static auto place(Self &self, const Text &key) {
    return std::lower_bound(
        self.begin(), self.end(), key,
        [](const value_type &pair, const Text &k) { return pair.first < k; });
  }
  template <typename Self>
  static auto found(Self &self, const Text &key) {
    const auto at = place(self, key);
    return self.is_of(at, key) ? at : self.end();
  }
  bool is_of(const_iterator at, const Text &key) const {
    return at != end() && at->first == key;
  }

  Array m_pairs;
};

/** The part of std::set that dd::Properties_impl uses. */
template <typename Text>
class Valid_keys {
  using Set = std::set<Text>;

 public:
  Valid_keys() = default;
  Valid_keys(const Set &keys) : m_keys(&keys) {}

  bool empty() const { return m_keys->empty(); }
  size_t size() const { return m_keys->size(); }
  auto begin() const { return m_keys->begin(); }
  auto end() const { return m_keys->end(); }
  auto find(const Text &key) const { return m_keys->find(key); }

  /** Only upstream's unit tests change a set, in one thread. */
  void clear() { m_keys = &none; }
  template <typename Iterator>
  void insert(Iterator from, Iterator to) {
    static std::list<Set> changed;
    changed.push_back(*m_keys);
    changed.back().insert(from, to);
    m_keys = &changed.back();
  }

 private:
  inline static const Set none;

  const Set *m_keys{&none};
};

}  // namespace memdiag

#endif  // MEMDIAG_PROPERTIES_H
