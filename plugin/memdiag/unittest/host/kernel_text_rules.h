/* What holds for the parsers of the kernel's texts, whatever the text. */

#ifndef MEMDIAG_KERNEL_TEXT_RULES_H
#define MEMDIAG_KERNEL_TEXT_RULES_H

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "plugin/memdiag/host/kernel_text.h"

namespace memdiag_test {

/** Rules for every parser, whatever the text. The text lies in a block of
its size, so that the sanitizer sees a read beyond. */
inline void expect_sane(std::string_view mutated) {
  using namespace memdiag::kernel_text;
  const std::unique_ptr<char[]> block(new char[mutated.size()]);
  std::copy(mutated.begin(), mutated.end(), block.get());
  const std::string_view text(block.get(), mutated.size());
  constexpr uint64_t largest = 1ull << 56;
  const auto expect_within = [&text](std::optional<std::string_view> part) {
    if (!part || part->empty()) return;
    ASSERT_GE(part->data(), text.data());
    ASSERT_LE(part->data() + part->size(), text.data() + text.size());
  };

  std::string_view rest = text;
  std::string_view line;
  size_t cut_off = 0;
  while (cut(&rest, '\n', &line)) {
    expect_within(line);
    cut_off += line.size() + 1;
    if (const auto found = mount(line)) {
      ASSERT_EQ('/', found->point[0]);
      ASSERT_LE(found->point.size(), line.size());
    }
    expect_within(field(line, "avg10"));
    expect_within(trim(line));
    if (const auto value = amount(line)) {
      ASSERT_LE(*value, largest);
    }
    if (const auto value = limit(line)) {
      ASSERT_TRUE(*value <= largest || *value == unlimited);
    }
    if (const auto value = number<double>(line)) {
      ASSERT_TRUE(std::isfinite(*value));
    }
    (void)number<int64_t>(line);
    (void)has_word(line, "memory");
  }
  ASSERT_TRUE(cut_off == text.size() || cut_off == text.size() + 1);
  if (const auto word = chosen(text)) {
    expect_within(word);
    ASSERT_FALSE(word->empty());
    ASSERT_EQ(word->npos, word->find_first_of("[] \n"));
  }
  if (const auto all = nodes(text)) {
    ASSERT_TRUE(std::is_sorted(all->begin(), all->end()));
    ASSERT_LT(all->back(), 1024u);
  }
  for (const char *key : {"MemTotal", "some", "anon", "Node 0 MemFree"})
    expect_within(value_of(text, key));
  for (unsigned n = 0; n < 20; ++n) expect_within(stat_field(text, n));
  if (const auto group = memory_cgroup(text); group && group->version != 0) {
    expect_within(group->path);
    for (const char *root : {"/", "/..", "/docker/1"})
      if (const auto part = below(root, group->path)) {
        expect_within(part);
        ASSERT_TRUE(part->empty() || part->starts_with('/'));
      }
  }
}

}  // namespace memdiag_test

#endif  // MEMDIAG_KERNEL_TEXT_RULES_H
