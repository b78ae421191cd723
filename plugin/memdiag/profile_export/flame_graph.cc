#include "plugin/memdiag/profile_export/flame_graph.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "mysys/memdiag/base/interruption.h"
#include "mysys/memdiag/pools/pool.h"
#include "plugin/memdiag/base/text.h"
#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile_export/difference.h"
#include "plugin/memdiag/profile_export/flame_graph_page.h"
#include "plugin/memdiag/profile_export/frame_tree.h"
#include "plugin/memdiag/profile_export/xml_text.h"

namespace memdiag::profile {
namespace {

/** Pixels of the picture without a script. With it, the width is the window's.
A letter of the fixed-width font of 11 pixels is 6.65 wide. */
constexpr double picture_width = 1200;
constexpr double letter_width = 6.65;
constexpr int row_height = 17;

constexpr double least_share = 0.0005;
constexpr size_t most_frames = 4000;
/** A frame has the colour of a pool with this part of its bytes. */
constexpr double share_of_one_pool = 0.9;
constexpr size_t longest_name = 200;

std::string bytes_text(double bytes) {
  constexpr const char *units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double amount = std::abs(bytes);
  for (; amount >= 1024 && unit + 1 < std::size(units); ++unit) amount /= 1024;
  return text("%s%.*f %s", bytes < 0 ? "\u2212" : "",
              unit > 0 && amount < 100 ? 1 : 0, amount, units[unit]);
}

std::string change_text(double bytes) {
  return (bytes > 0 ? "+" : "") + bytes_text(bytes);
}

std::string error_text(double variance) {
  return " \u00b1 " + bytes_text(std::sqrt(variance));
}

std::string moment_text(uint64_t us) {
  const auto seconds = static_cast<time_t>(us / 1000000);
  tm fields;
  if (us == 0 || gmtime_r(&seconds, &fields) == nullptr) return "";
  std::array<char, 64> text;
  const size_t length =
      strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &fields);
  return {text.data(), length};
}

/** The first letters of a name: whole characters of UTF-8. */
std::string cut(std::string_view name, size_t length) {
  if (name.size() <= length) return std::string(name);
  while (length > 0 && (name[length] & 0xc0) == 0x80) --length;
  return std::string(name.substr(0, length)) + "\u2026";
}

/** A key of the legend. */
struct Key {
  std::string css_class;
  std::string text;
};

/** Everything in which a picture of one moment and a difference differ. */
struct Painter {
  virtual ~Painter() = default;
  /** The class of a frame that is not merged. */
  virtual std::string css_class(const Placed_frame &frame) const = 0;
  /** The lines below the name. */
  virtual std::string about(const Placed_frame &frame) const = 0;
  /** The figure that a search adds up. */
  virtual double bytes(const Frame_weight &weight) const = 0;
  /** Rules for the classes. */
  virtual std::string style() const = 0;
  virtual std::vector<Key> legend() const = 0;
};

class Pool_painter : public Painter {
 public:
  explicit Pool_painter(std::vector<std::pair<std::string, double>> pools,
                        double total)
      : m_pools(std::move(pools)), m_total(total) {
    std::stable_sort(
        m_pools.begin(), m_pools.end(),
        [](const auto &a, const auto &b) { return a.second > b.second; });
  }

  std::string css_class(const Placed_frame &frame) const override {
    return frame.pool_share >= share_of_one_pool ? class_of(frame.pool)
                                                 : "mixed";
  }
  std::string about(const Placed_frame &frame) const override {
    const Frame_weight &weight = frame.weight;
    std::string words = bytes_text(weight.after) + error_text(weight.variance) +
                        ", " +
                        text("%.*f%%", m_total < weight.after * 10 ? 1 : 2,
                             m_total > 0 ? weight.after / m_total * 100 : 0);
    if (frame.merged != 0) return words;
    words += "\npool " + std::string(frame.pool);
    if (frame.pool_share < 0.9995)
      words += text(": %.0f%%, and others", frame.pool_share * 100);
    return words;
  }
  double bytes(const Frame_weight &weight) const override {
    return weight.after;
  }
  std::string style() const override {
    std::string rules;
    for (const auto &[pool, bytes] : m_pools) {
      const size_t index = index_of(pool);
      // Neighbours in the list of pools get colours that are far apart, and
      // neighbours among the colours get a different lightness.
      if (index < pool_count) {
        constexpr size_t step = 4;
        static_assert(std::gcd(step, pool_count) == 1);
        const size_t place = index * step % pool_count;
        rules += text(
            ".p%zu { fill: hsl(%zu var(--s) calc(var(--l) - %zu * 9%%)); }\n",
            index, place * 360 / pool_count, place % 2);
      }
    }
    return rules;
  }
  std::vector<Key> legend() const override {
    std::vector<Key> keys;
    for (const auto &[pool, bytes] : m_pools)
      keys.push_back({class_of(pool), pool + " " + bytes_text(bytes)});
    if (m_pools.size() > 1) keys.push_back({"mixed", "several pools"});
    return keys;
  }

 private:
  static size_t index_of(std::string_view pool) {
    size_t index = 0;
    while (index < pool_count && pool != pool_specs[index].name) ++index;
    return index;
  }
  static std::string class_of(std::string_view pool) {
    const size_t index = index_of(pool);
    return index < pool_count ? text("p%zu", index) : "other";
  }

  std::vector<std::pair<std::string, double>> m_pools;
  const double m_total;
};

class Change_painter : public Painter {
 public:
  std::string css_class(const Placed_frame &frame) const override {
    const Frame_weight &weight = frame.weight;
    const double change = bytes(weight);
    if (weight.width <= 0 || is_within_error(weight) ||
        std::abs(change) < weight.width / 20)
      return "mixed";
    const int level = std::clamp(
        static_cast<int>(std::ceil(std::abs(change) / weight.width * levels)),
        1, levels);
    return text("%c%d", change > 0 ? 'g' : 's', level);
  }
  std::string about(const Placed_frame &frame) const override {
    const Frame_weight &weight = frame.weight;
    return change_text(bytes(weight)) + error_text(weight.variance) +
           (is_within_error(weight) ? ", which may be by chance" : "") +
           "\nbefore " + bytes_text(weight.before) + ", after " +
           bytes_text(weight.after);
  }
  double bytes(const Frame_weight &weight) const override {
    return weight.after - weight.before;
  }
  std::string style() const override {
    std::string rules;
    for (const auto &[letter, hue] : {std::pair{'g', 4}, std::pair{'s', 212}})
      for (int level = 1; level <= levels; ++level)
        rules += text(
            ".%c%d { fill: color-mix(in srgb, hsl(%d var(--s) var(--l)) %d%%, "
            "var(--mixed)); }\n",
            letter, level, hue, level * 100 / levels);
    return rules;
  }
  std::vector<Key> legend() const override {
    return {{text("g%d", levels), "grew"},
            {text("s%d", levels), "shrank"},
            {"mixed", "evens out, or within two standard errors"}};
  }

 private:
  static constexpr int levels = 5;
  bool is_within_error(const Frame_weight &weight) const {
    return std::abs(bytes(weight)) < 2 * std::sqrt(weight.variance);
  }
};

/** The lines above the frames. */
struct Heading {
  std::string title;
  std::vector<std::string> lines;
  bool is_change;
};

class Drawing {
 public:
  Drawing(const Frame_tree &tree, const Painter &painter, Heading heading)
      : m_tree(tree), m_painter(painter), m_heading(std::move(heading)) {}

  std::string run() const {
    size_t frames = most_frames;
    std::string svg = draw(frames);
    while (svg.size() > max_svg_bytes && frames > 0 && !is_interrupted()) {
      frames = static_cast<size_t>(0.95 * static_cast<double>(frames) *
                                   static_cast<double>(max_svg_bytes) /
                                   static_cast<double>(svg.size()));
      svg = draw(frames);
    }
    return svg;
  }

 private:
  std::string draw(size_t frame_limit) const {
    double share;
    const std::vector<Placed_frame> frames =
        m_tree.layout(least_share, frame_limit, &share);
    size_t depth = 0;
    for (const Placed_frame &frame : frames)
      depth = std::max(depth, frame.depth);

    std::string head;
    double y = 24;
    head += text_line("title", 8, y, m_heading.title);
    for (const std::string &line : m_heading.lines)
      head += text_line("soft", 8, y += 18, line);
    if (share > least_share * 1.001)
      head += text_line(
          "soft", 8, y += 18,
          text("Frames narrower than %.2f%% are merged.", share * 100));
    double x = 8;
    y += 12;
    for (const Key &key : m_painter.legend()) {
      const double width = 22 + 6.6 * static_cast<double>(key.text.size());
      if (x + width > picture_width) {
        x = 8;
        y += 18;
      }
      head += text(
          "<rect class=\"%s\" x=\"%.0f\" y=\"%.0f\" width=\"12\" "
          "height=\"12\" rx=\"2\"/>\n",
          key.css_class.c_str(), x, y);
      head += text_line("key", x + 17, y + 10, key.text);
      x += width + 10;
    }
    y += 30;
    head += text_line("soft status", 8, y,
                      "A click zooms in, Escape zooms out, / searches.");
    head += text(
        "<text class=\"soft found\" x=\"100%%\" y=\"%.0f\" "
        "dx=\"-10\" text-anchor=\"end\"></text>\n",
        y);
    const int top = static_cast<int>(y) + 10;
    const int height = top + static_cast<int>(depth + 1) * row_height + 8;

    std::string svg = text(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
        "height=\"%d\"%s>\n",
        picture_width, height, m_heading.is_change ? " data-change=\"1\"" : "");
    svg += "<title>" + xml_text(m_heading.title) + "</title>\n<style>";
    svg += flame_graph_style;
    svg += m_painter.style() + "</style>\n" + head;
    for (const Placed_frame &frame : frames) append(frame, top, share, &svg);
    svg += "<script><![CDATA[\n";
    svg += flame_graph_script;
    svg += "]]></script>\n</svg>\n";
    return svg;
  }

  static std::string text_line(const char *css_class, double x, double y,
                               std::string_view words) {
    return text("<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">", css_class, x, y) +
           xml_text(words) + "</text>\n";
  }

  void append(const Placed_frame &frame, int top, double share,
              std::string *svg) const {
    const double total = m_tree.total().width;
    const double width = total > 0 ? frame.weight.width / total : 1;
    const double x = total > 0 ? frame.x / total : 0;
    const std::string name =
        frame.merged != 0  ? text("other: %zu frames narrower than %.2f%%",
                                  frame.merged, share * 100)
        : frame.depth == 0 ? "all"
                           : cut(frame.name, longest_name);
    *svg += text(
        "<svg class=\"f %s\" x=\"%.4f%%\" y=\"%d\" width=\"%.4f%%\" "
        "height=\"16\" data-b=\"%.0f\">",
        frame.merged != 0 ? "other" : m_painter.css_class(frame).c_str(),
        x * 100, top + static_cast<int>(frame.depth) * row_height, width * 100,
        m_painter.bytes(frame.weight));
    *svg += "<title>" + xml_text(name) + "\n" +
            xml_text(m_painter.about(frame)) +
            "</title><rect width=\"100%\" height=\"100%\"/>";
    const double letters = (width * picture_width - 6) / letter_width;
    if (letters >= 3) {
      const auto room = static_cast<size_t>(letters);
      *svg += "<text x=\"3\" y=\"12\">" +
              xml_text(name.size() <= room ? name : cut(name, room - 1)) +
              "</text>";
    }
    *svg += "</svg>\n";
  }

  const Frame_tree &m_tree;
  const Painter &m_painter;
  const Heading m_heading;
};

std::string about_samples(const Profile &profile) {
  std::string words = "Live memory that was allocated since " +
                      moment_text(profile.since_us) + ". One sample for each " +
                      bytes_text(static_cast<double>(profile.sample_bytes)) +
                      ".";
  if (profile.dropped_samples != 0)
    words += text(" %llu samples found no room: the profile is incomplete.",
                  static_cast<unsigned long long>(profile.dropped_samples));
  return words;
}

}  // namespace

std::string flame_graph(const Profile &profile, const Symbols &symbols,
                        const Flame_graph_options &options) {
  Frame_tree tree;
  std::vector<std::pair<std::string, double>> pools;
  for (const auto &[pool, stacks] :
       folded_stacks(profile, symbols, options.first)) {
    double bytes = 0;
    for (const auto &[stack, live] : stacks) {
      tree.add(stack, pool, {live.bytes, 0, live.bytes, live.bytes_variance});
      bytes += live.bytes;
    }
    if (bytes > 0) pools.emplace_back(pool, bytes);
  }
  const Frame_weight &total = tree.total();
  std::string line = moment_text(profile.time_us) + ": " +
                     bytes_text(total.after) + error_text(total.variance);
  if (profile.rss_bytes != 0)
    line += " live, RSS " + bytes_text(static_cast<double>(profile.rss_bytes));
  const Pool_painter painter(std::move(pools), total.after);
  return Drawing(tree, painter,
                 {options.title, {line, about_samples(profile)}, false})
      .run();
}

std::string difference_flame_graph(std::vector<Stack_change> changes,
                                   const Profile &after,
                                   const std::string &title) {
  // The tree wants the stacks of a pool one after the other.
  std::sort(changes.begin(), changes.end(),
            [](const Stack_change &a, const Stack_change &b) {
              return a.stack < b.stack;
            });
  Frame_tree tree;
  double grew = 0;
  double shrank = 0;
  for (const Stack_change &changed : changes) {
    if (is_interrupted()) break;
    const Change &change = changed.change;
    const double width = std::abs(change.bytes());
    (change.bytes() > 0 ? grew : shrank) += width;
    tree.add(changed.stack, changed.pool(),
             {width, change.before.bytes, change.after.bytes,
              change.bytes_variance()});
  }
  const Frame_weight &total = tree.total();
  const std::string line =
      "From the earlier profile to " + moment_text(after.time_us) + ": " +
      change_text(total.after - total.before) + error_text(total.variance) +
      ". Stacks grew by " + bytes_text(grew) + " and shrank by " +
      bytes_text(shrank) + ".";
  const Change_painter painter;
  return Drawing(tree, painter, {title, {line, about_samples(after)}, true})
      .run();
}

}  // namespace memdiag::profile
