#include "plugin/memdiag/profile_export/pprof.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/profile/frames_text.h"
#include "plugin/memdiag/profile/stacks.h"
#include "plugin/memdiag/profile/totals.h"

namespace memdiag::profile {
namespace {

/** Field numbers of profile.proto. */
namespace field {
enum {
  sample_type = 1,
  sample = 2,
  mapping = 3,
  location = 4,
  function = 5,
  string_table = 6,
  time_nanos = 9,
  duration_nanos = 10,
  period_type = 11,
  period = 12,
  comment = 13,
  default_sample_type = 14
};
namespace value_type {
enum { type = 1, unit = 2 };
}
namespace sample_ {
enum { location_id = 1, value = 2, label = 3 };
}
namespace label_ {
enum { key = 1, str = 2, num = 3, num_unit = 4 };
}
namespace mapping_ {
enum {
  id = 1,
  memory_start = 2,
  memory_limit = 3,
  file_offset = 4,
  filename = 5,
  build_id = 6,
  has_functions = 7
};
}
namespace location_ {
enum { id = 1, mapping_id = 2, address = 3, line = 4 };
}
namespace line_ {
enum { function_id = 1 };
}
namespace function_ {
enum { id = 1, name = 2, system_name = 3 };
}
}  // namespace field

/** A message of protocol buffers. */
class Message {
 public:
  /** Zero is the default, which is not written. */
  void add(int field, uint64_t number) {
    if (number == 0) return;
    key(field, 0);
    varint(number);
  }
  void add(int field, std::string_view bytes) {
    key(field, 2);
    varint(bytes.size());
    m_bytes += bytes;
  }
  void add(int field, const Message &message) { add(field, message.m_bytes); }
  /** A repeated number. */
  void add_packed(int field, const std::vector<uint64_t> &numbers) {
    Message packed;
    for (const uint64_t number : numbers) packed.varint(number);
    add(field, packed);
  }
  std::string take() { return std::move(m_bytes); }

 private:
  void key(int field, unsigned type) {
    varint(static_cast<uint64_t>(field) << 3 | type);
  }
  void varint(uint64_t number) {
    for (; number >= 128; number >>= 7)
      m_bytes += static_cast<char>(number | 128);
    m_bytes += static_cast<char>(number);
  }

  std::string m_bytes;
};

/** int64 of an estimate. */
uint64_t rounded(double amount) {
  // The largest double below 2^63.
  return static_cast<uint64_t>(
      std::clamp(std::round(amount), 0.0, 9223372036854774784.0));
}

class Writer {
 public:
  Writer(const Profile &profile, const Symbols &symbols)
      : m_profile(profile), m_symbols(symbols) {
    (void)string("");  // by the format, string 0
  }

  std::string run() {
    m_out.add(field::sample_type, value_type("inuse_objects", "count"));
    m_out.add(field::sample_type, value_type("inuse_space", "bytes"));
    m_has_functions.resize(m_profile.modules.size());
    for (const Entry &entry : m_profile.entries) {
      if (is_interrupted()) break;
      if (const auto site = index_of_site(m_profile, entry.site))
        add_sample(entry, m_profile.sites[*site]);
    }
    // After the samples, which show what modules have names.
    for (size_t i = 0; i < m_profile.modules.size(); ++i) add_mapping(i);
    m_out.add(field::time_nanos, m_profile.time_us * 1000);
    m_out.add(field::duration_nanos,
              m_profile.time_us > m_profile.since_us
                  ? (m_profile.time_us - m_profile.since_us) * 1000
                  : 0);
    m_out.add(field::period_type, value_type("space", "bytes"));
    m_out.add(field::period, m_profile.sample_bytes);
    if (m_profile.dropped_samples != 0)
      m_out.add(field::comment,
                string(std::to_string(m_profile.dropped_samples) +
                       " samples found no room: the profile is incomplete"));
    if (m_profile.code_left_out != 0)
      m_out.add(field::comment,
                string(std::to_string(m_profile.code_left_out) +
                       " ranges of code found no room: stacks end at them"));
    m_out.add(field::default_sample_type, string("inuse_space"));
    return m_out.take();
  }

 private:
  /** The number of a string; writes a new one. */
  uint64_t string(std::string_view text) {
    const auto [found, is_new] =
        m_strings.try_emplace(std::string(text), m_strings.size());
    if (is_new) m_out.add(field::string_table, text);
    return found->second;
  }

  Message value_type(std::string_view type, std::string_view unit) {
    Message message;
    message.add(field::value_type::type, string(type));
    message.add(field::value_type::unit, string(unit));
    return message;
  }

  void add_sample(const Entry &entry, const Site &site) {
    std::vector<uint64_t> locations;
    for (const uint64_t address : without_allocator(site.addresses, m_symbols))
      locations.push_back(location(address));
    // A sample without a location would be missing in the sums of functions.
    if (locations.empty()) locations.push_back(location(0));
    Message sample;
    sample.add_packed(field::sample_::location_id, locations);
    sample.add_packed(field::sample_::value,
                      {rounded(entry.live.objects), rounded(entry.live.bytes)});
    const auto add_text = [&](std::string_view key, std::string_view text) {
      Message label;
      label.add(field::label_::key, string(key));
      label.add(field::label_::str, string(text));
      sample.add(field::sample_::label, label);
    };
    const auto add_age = [&](std::string_view key, uint64_t since_us) {
      Message label;
      label.add(field::label_::key, string(key));
      label.add(field::label_::num,
                m_profile.time_us > since_us
                    ? (m_profile.time_us - since_us) / 1000000
                    : 0);
      label.add(field::label_::num_unit, string("seconds"));
      sample.add(field::sample_::label, label);
    };
    add_text("pool", pool_or_unknown(site));
    add_text("route", site.route);
    if (entry.digest) add_text("digest", digest_text(*entry.digest));
    add_age("age", entry.median_us);
    add_age("oldest", entry.oldest_us);
    m_out.add(field::sample, sample);
  }

  /** The number of a location; writes a new one. */
  uint64_t location(uint64_t address) {
    const auto [found, is_new] =
        m_locations.try_emplace(address, m_locations.size() + 1);
    if (!is_new) return found->second;
    const Symbol &symbol = m_symbols[address];
    Message location;
    location.add(field::location_::id, found->second);
    if (symbol.module && *symbol.module < m_profile.modules.size()) {
      location.add(field::location_::mapping_id, *symbol.module + 1);
      if (symbol.is_known()) m_has_functions[*symbol.module] = true;
    }
    location.add(field::location_::address, symbol.offset);
    Message line;
    line.add(field::line_::function_id, function(symbol));
    location.add(field::location_::line, line);
    m_out.add(field::location, location);
    return found->second;
  }

  /** The number of a function; writes a new one. */
  uint64_t function(const Symbol &symbol) {
    const std::string &identity =
        symbol.is_known() ? symbol.linkage_name : symbol.name;
    const auto [found, is_new] =
        m_functions.try_emplace(identity, m_functions.size() + 1);
    if (is_new) {
      Message function;
      function.add(field::function_::id, found->second);
      function.add(field::function_::name, string(symbol.name));
      function.add(field::function_::system_name, string(identity));
      m_out.add(field::function, function);
    }
    return found->second;
  }

  void add_mapping(size_t index) {
    const Module &module = m_profile.modules[index];
    Message mapping;
    mapping.add(field::mapping_::id, index + 1);
    const uint64_t bias = std::min(module.load_bias, module.begin);
    mapping.add(field::mapping_::memory_start, module.begin - bias);
    mapping.add(field::mapping_::memory_limit, module.end - bias);
    mapping.add(field::mapping_::file_offset, module.file_offset);
    mapping.add(field::mapping_::filename, string(module.path));
    mapping.add(field::mapping_::build_id, string(module.build_id));
    mapping.add(field::mapping_::has_functions, m_has_functions[index]);
    m_out.add(field::mapping, mapping);
  }

  const Profile &m_profile;
  const Symbols &m_symbols;
  Message m_out;
  std::unordered_map<std::string, uint64_t> m_strings;
  std::unordered_map<uint64_t, uint64_t> m_locations;
  std::unordered_map<std::string, uint64_t> m_functions;
  std::vector<bool> m_has_functions;
};

}  // namespace

std::string pprof(const Profile &profile, const Symbols &symbols) {
  return Writer(profile, symbols).run();
}

}  // namespace memdiag::profile
