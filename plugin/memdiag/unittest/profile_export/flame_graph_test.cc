/*
  Flame graphs: the tree of frames, its layout, and a file that stays
  well-formed whatever the names are. How it looks is for people to judge.
*/

#include "plugin/memdiag/profile_export/flame_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "mysys/memdiag/unittest/file_tree.h"
#include "plugin/memdiag/profile_export/frame_tree.h"
#include "plugin/memdiag/profile_export/xml_text.h"
#include "plugin/memdiag/unittest/mutate.h"
#include "plugin/memdiag/unittest/profile_for_test.h"

namespace memdiag::profile {
namespace {

using memdiag_test::File_tree;
using memdiag_test::Profile_maker;

TEST(Xml_text, MarksAreEscaped) {
  EXPECT_EQ("a &lt;b&gt; &amp;&amp; &quot;c&quot; &#39;d&#39;",
            xml_text("a <b> && \"c\" 'd'"));
  EXPECT_EQ("\u00e9\u20ac\U0001f980 ]]&gt;",
            xml_text("\u00e9\u20ac\U0001f980 ]]>"));
}

TEST(Xml_text, WhatXmlDoesNotAllow) {
  const std::string bad = "\ufffd";
  using namespace std::string_literals;
  for (const std::string &text :
       {"\0"s, "\x01"s, "\x1f"s, "\x7f"s, "\x80"s, "\xff"s, "\xc3"s})
    EXPECT_EQ(bad, xml_text(text));
  // Longer than needed, a surrogate, no character, beyond Unicode, cut short.
  EXPECT_EQ(bad + bad, xml_text("\xc0\x80"));
  EXPECT_EQ(bad + bad + bad, xml_text("\xe0\x80\xaf"));
  EXPECT_EQ(bad + bad + bad, xml_text("\xed\xa0\x80"));
  EXPECT_EQ(bad + bad + bad, xml_text("\xef\xbf\xbf"));
  EXPECT_EQ(bad + bad + bad + bad, xml_text("\xf4\x90\x80\x80"));
  EXPECT_EQ(bad + bad + "a", xml_text("\xe2\x82"
                                      "a"));
  EXPECT_EQ("\n\t" + bad, xml_text("\n\t\r"));
}

/** Frames by name. */
std::map<std::string, Placed_frame> by_name(
    const std::vector<Placed_frame> &frames) {
  std::map<std::string, Placed_frame> found;
  for (const Placed_frame &frame : frames)
    found.emplace(frame.merged != 0 ? "other" : std::string(frame.name), frame);
  return found;
}

void add(Frame_tree *tree, const std::vector<std::string_view> &stack,
         double width, std::string_view pool = "p") {
  std::string text;
  for (const std::string_view frame : stack)
    text.append(text.empty() ? "" : ";").append(frame);
  tree->add(text, pool, {width, 0, width, width});
}

TEST(Frame_tree, FramesOfTheSameNameBesideEachOtherAreOne) {
  Frame_tree tree;
  add(&tree, {"main", "a", "b"}, 10);
  add(&tree, {"main", "a"}, 5);
  add(&tree, {"main", "c"}, 20);
  add(&tree, {"other_main"}, 1);
  double share;
  const auto frames = tree.layout(0, 100, &share);
  ASSERT_EQ(6u, frames.size());
  EXPECT_EQ(36, tree.total().width);
  auto named = by_name(frames);
  const auto expect_place = [&named](const char *name, size_t depth, double x,
                                     double width) {
    ASSERT_TRUE(named.contains(name)) << name;
    EXPECT_EQ(depth, named.at(name).depth) << name;
    EXPECT_EQ(x, named.at(name).x) << name;
    EXPECT_EQ(width, named.at(name).weight.width) << name;
    EXPECT_EQ(width, named.at(name).weight.variance) << name;
  };
  expect_place("", 0, 0, 36);
  expect_place("main", 1, 0, 35);
  expect_place("c", 2, 0, 20);
  expect_place("a", 2, 20, 15);
  expect_place("b", 3, 20, 10);
  expect_place("other_main", 1, 35, 1);
  // A frame comes before those that it contains.
  EXPECT_EQ("", frames[0].name);
  EXPECT_EQ("main", frames[1].name);
  EXPECT_EQ("c", frames[2].name);
  EXPECT_EQ("b", frames[4].name);
}

TEST(Frame_tree, APoolOwnsAFrame) {
  Frame_tree tree;
  add(&tree, {"f"}, 6, "a");
  add(&tree, {"f", "g"}, 10, "b");
  add(&tree, {"f", "h"}, 4, "b");
  double share;
  auto named = by_name(tree.layout(0, 100, &share));
  EXPECT_EQ("b", named.at("f").pool);
  EXPECT_EQ(0.7, named.at("f").pool_share);
  EXPECT_EQ("b", named.at("g").pool);
  EXPECT_EQ(1, named.at("g").pool_share);
}

TEST(Frame_tree, NarrowFramesAreMerged) {
  Frame_tree tree;
  add(&tree, {"wide"}, 900);
  for (int i = 0; i < 20; ++i)
    add(&tree, {"narrow" + std::to_string(i), "inner"}, 5);
  double share;
  const auto frames = tree.layout(0.01, 100, &share);
  ASSERT_EQ(3u, frames.size());
  auto named = by_name(frames);
  EXPECT_EQ(20u, named.at("other").merged);
  EXPECT_EQ(100, named.at("other").weight.width);
  EXPECT_EQ(900, named.at("other").x);
  EXPECT_EQ(1u, named.at("other").depth);
  EXPECT_EQ(0.01, share);
  // Frames that are too narrow even together leave an empty place.
  EXPECT_EQ(2u, tree.layout(0.5, 100, &share).size());
}

TEST(Frame_tree, TooManyFramesAreMerged) {
  Frame_tree tree;
  for (int i = 1; i <= 100; ++i) add(&tree, {"f" + std::to_string(i)}, i);
  double share;
  const auto frames = tree.layout(0, 11, &share);
  // The root, the ten widest, and the others.
  EXPECT_EQ(12u, frames.size());
  EXPECT_EQ(90u, by_name(frames).at("other").merged);
  EXPECT_NEAR(90.0 / 5050, share, 1e-9);
  Frame_tree same;
  for (int i = 1; i <= 100; ++i) add(&same, {"f" + std::to_string(i)}, 1);
  EXPECT_EQ(2u, same.layout(0, 11, &share).size());
}

TEST(Frame_tree, AnEmptyOne) {
  double share;
  EXPECT_EQ(1u, Frame_tree().layout(0.1, 10, &share).size());
  EXPECT_EQ(0, share);
}

size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at)
    ++found;
  return found;
}

/** @return true: Python's parser of XML takes it */
bool is_well_formed(const std::string &svg) {
  File_tree tree;
  tree.write("/a.svg", svg);
  const std::string command =
      "python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' " +
      tree.at("/a.svg");
  return system(command.c_str()) == 0;
}

TEST(Flame_graph, FramesColoursAndSums) {
  Profile_maker maker;
  const uint32_t site =
      maker.add_site({"malloc", "_ZN1A1fEv", "main"}, "table_cache");
  maker.add_live(site, 3 << 20, 1, std::nullopt, 1e10);
  maker.add({"g", "main"}, 1 << 20, "session");
  maker.profile.dropped_samples = 7;
  const std::string svg =
      flame_graph(maker.profile, maker.symbols(), {.title = "A <title>"});
  for (const char *part :
       {"<title>A &lt;title&gt;</title>", ">A::f</text>",
        "<title>A::f\n3.0 MiB \u00b1 97.7 KiB, 75.0%\npool table_cache</title>",
        "<title>g\n1.0 MiB \u00b1 0 bytes, 25.0%\npool session</title>",
        "<title>main\n4.0 MiB \u00b1 97.7 KiB, 100.0%\npool table_cache: 75%, "
        "and others</title>",
        "class=\"f mixed\" x=\"0.0000%\"", "x=\"75.0000%\"",
        "width=\"25.0000%\" height=\"16\" data-b=\"1048576\"",
        ">table_cache 3.0 MiB</text>", ">session 1.0 MiB</text>",
        "2026-01-01 00:00:00 UTC: 4.0 MiB \u00b1 97.7 KiB live, RSS 1.0 GiB",
        "since 2025-12-31 23:00:00 UTC. One sample for each 512 KiB. 7 samples",
        "prefers-color-scheme: dark"})
    EXPECT_NE(std::string::npos, svg.find(part)) << part;
  EXPECT_EQ(4u, count(svg, "<svg class=\"f "));
  EXPECT_TRUE(is_well_formed(svg));
}

/** A frame of 1,200 px has room for 179 letters, one of 300 px for 44. */
TEST(Flame_graph, LabelsFillTheirFrames) {
  for (const auto &[letters, shown] : {std::pair<size_t, size_t>{3, 3},
                                       {43, 43},
                                       {44, 44},
                                       {45, 43},
                                       {150, 43}}) {
    const std::string name(letters, 'n');
    Profile_maker maker;
    maker.add({name, "main"}, 1 << 20);
    maker.add({"wide_" + name, "main"}, 3 << 20);
    const std::string svg = flame_graph(maker.profile, maker.symbols());
    EXPECT_EQ(1u, count(svg, "y=\"12\">" + std::string(shown, 'n') +
                                 (shown < letters ? "\u2026" : "") + "</text>"))
        << letters;
    EXPECT_EQ(1u, count(svg, "<title>" + name + "\n")) << "it has all of it";
  }
  Profile_maker maker;
  maker.add({"narrow", "main"}, 15);  // 18 px: one letter
  maker.add({"wide", "main"}, 985);
  const std::string svg = flame_graph(maker.profile, maker.symbols());
  EXPECT_EQ(1u, count(svg, "<title>narrow\n"));
  EXPECT_EQ(1u, count(svg, ">wide</text>"));
  EXPECT_EQ(2u, count(svg, "y=\"12\">" + std::string("wide</text>")) +
                    count(svg, "y=\"12\">" + std::string("main</text>")));
  EXPECT_EQ(0u, count(svg, "y=\"12\">n"));
}

TEST(Flame_graph, NothingIsLoaded) {
  Profile_maker maker;
  maker.add({"main"}, 1);
  const std::string svg = flame_graph(maker.profile, maker.symbols());
  // Only the names of SVG and of XHTML.
  EXPECT_EQ(2u, count(svg, "http"));
  EXPECT_EQ(1u, count(svg, "xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(1u, count(svg, "'http://www.w3.org/1999/xhtml'"));
  for (const char *part : {"src=", "href", "url(", "@import", "fetch("})
    EXPECT_EQ(0u, count(svg, part)) << part;
}

TEST(Flame_graph, ByStatementAndByPool) {
  Profile_maker maker;
  const uint32_t site = maker.add({"main"}, 1 << 20, "session");
  maker.add_live(site, 1 << 20, 1, Digest{0xab});
  const Symbols symbols = maker.symbols();
  const std::string by_statement =
      flame_graph(maker.profile, symbols, {.first = First_frame::digest});
  EXPECT_EQ(1u, count(by_statement, "<title>no statement\n1.0 MiB"));
  EXPECT_EQ(1u, count(by_statement, "<title>ab" + std::string(62, '0')));
  EXPECT_EQ(1u, count(flame_graph(maker.profile, symbols,
                                  {.first = First_frame::pool}),
                      "<title>session\n2.0 MiB"));
}

TEST(Flame_graph, AnEmptyProfile) {
  Profile_maker maker;
  const std::string svg = flame_graph(maker.profile, maker.symbols());
  EXPECT_EQ(1u, count(svg, "<svg class=\"f "));
  EXPECT_EQ(0u, count(svg, "nan"));
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_TRUE(is_well_formed(difference_flame_graph({}, Profile{})));
}

/** A profile with many stacks, most of them narrow. */
void fill(Profile_maker *maker, size_t stacks, const std::string &prefix) {
  std::mt19937 random(20261122);
  for (size_t i = 0; i < stacks; ++i) {
    std::vector<std::string> stack{"malloc"};
    for (size_t depth = 10 + random() % 30; depth > 0; --depth)
      stack.push_back(prefix + std::to_string(random() % 500));
    for (size_t depth = 0; depth < 5; ++depth)
      stack.push_back("outer_" + std::to_string(random() % 3));
    maker->add(stack, std::exp(static_cast<double>(random() % 1000) / 70));
  }
}

TEST(Flame_graph, TheFileIsBounded) {
  Profile_maker maker;
  fill(&maker, 3000, std::string(300, 'f'));
  const std::string svg = flame_graph(maker.profile, maker.symbols());
  EXPECT_GE(max_svg_bytes, svg.size());
  EXPECT_LT(100u, count(svg, "<svg class=\"f "));
  EXPECT_LT(0u, count(svg, "<title>other: "));
  EXPECT_EQ(1u, count(svg, "% are merged."));
  EXPECT_TRUE(is_well_formed(svg));
}

TEST(Flame_graph, NamesDoNoHarm) {
  std::mt19937 random(20261123);
  std::string bad_names[] = {"</title><script>alert(1)</script>",
                             "]]>",
                             "\" onload=\"alert(1)",
                             "&#0;",
                             "\xff\xfe",
                             "<!--",
                             "%s%n",
                             std::string(5000, '\xe2'),
                             "\u202e\u20ac\u20ac\u20ac\u20ac"};
  for (int i = 0; i < 8; ++i) {
    Profile_maker maker;
    for (const std::string &name : bad_names) {
      const std::string mutated =
          i == 0 ? name : memdiag_test::mutate(name, &random);
      maker.add({mutated.substr(0, mutated.find('\0')), "main"}, 1000, mutated);
    }
    const std::string svg =
        flame_graph(maker.profile, maker.symbols(),
                    {.title = bad_names[0], .first = First_frame::pool});
    EXPECT_EQ(1u, count(svg, "<script>"));
    EXPECT_EQ(1u, count(svg, "<![CDATA["));
    EXPECT_EQ(1u, count(svg, "]]>"));
    EXPECT_TRUE(is_well_formed(svg)) << i;
  }
}

TEST(Flame_graph, TheDifference) {
  const Folded_bytes before{{"general;main;grown", 1 << 20},
                            {"general;main;shrunk", 3 << 20},
                            {"general;main;same", 5 << 20},
                            {"</title>;main;gone", 1 << 20}};
  Profile_maker after;
  after.profile.sample_bytes = 1;
  after.add({"new", "main"}, 2 << 20);
  after.add({"same", "main"}, 5 << 20);
  after.add({"shrunk", "main"}, 2 << 20);
  const uint32_t grown = after.add_site({"grown", "main"});
  after.add_live(grown, 4 << 20, 1, std::nullopt, 1e12);
  const uint32_t noise = after.add_site({"noise", "main"});
  after.add_live(noise, 1 << 20, 1, std::nullopt, 1e14);
  std::vector<Stack_change> changes =
      difference(before, after.profile, after.symbols());
  const std::string svg = difference_flame_graph(changes, after.profile);
  std::reverse(changes.begin(), changes.end());
  EXPECT_EQ(svg, difference_flame_graph(changes, after.profile));
  for (const char *part :
       {"<title>grown\n+3.0 MiB \u00b1 977 KiB\nbefore 1.0 MiB, after 4.0 "
        "MiB</title>",
        "<title>new\n+2.0 MiB \u00b1 0 bytes\nbefore 0 bytes, after 2.0 MiB",
        "<title>gone\n\u22121.0 MiB \u00b1 0 bytes\nbefore 1.0 MiB, after 0",
        "<title>shrunk\n\u22121.0 MiB",
        "<title>noise\n+1.0 MiB \u00b1 9.5 MiB, which may be by chance",
        "<title>&lt;/title&gt;\n\u22121.0 MiB",
        "+4.0 MiB \u00b1 9.6 MiB. Stacks grew by 6.0 MiB and shrank by 2.0 "
        "MiB.",
        "data-change=\"1\""})
    EXPECT_NE(std::string::npos, svg.find(part)) << part;
  EXPECT_EQ(std::string::npos, svg.find("<title>same"));
  const auto class_of = [&svg](const std::string &name) {
    const size_t end = svg.find("<title>" + name + "\n");
    const size_t begin = svg.rfind("class=\"f ", end) + 9;
    return svg.substr(begin, svg.find('"', begin) - begin);
  };
  EXPECT_EQ("g5", class_of("grown"));
  EXPECT_EQ("g5", class_of("new"));
  EXPECT_EQ("s5", class_of("gone"));
  EXPECT_EQ("mixed", class_of("noise"));
  EXPECT_TRUE(is_well_formed(svg));
}

}  // namespace
}  // namespace memdiag::profile
