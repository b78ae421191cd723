#include "plugin/memdiag/profile/symbols.h"

#include <algorithm>
#include <cinttypes>
#include <numeric>
#include <utility>

#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/base/text.h"
#include "plugin/memdiag/profile/elf_file.h"
#include "plugin/memdiag/profile/function_name.h"

namespace memdiag::profile {
namespace {

std::string unknown_name(const Module *module, uint64_t offset) {
  if (module == nullptr) return text("0x%" PRIx64, offset);
  const size_t slash = module->path.rfind('/');
  return module->path.substr(slash == std::string::npos ? 0 : slash + 1) + "+" +
         text("0x%" PRIx64, offset);
}

std::vector<uint64_t> addresses_of(const Profile &profile) {
  std::vector<uint64_t> addresses;
  for (const Site &site : profile.sites)
    addresses.insert(addresses.end(), site.addresses.begin(),
                     site.addresses.end());
  return addresses;
}

/** The file that says most about a module, if any is the module's. */
std::optional<Elf_file> open_file_of(const Module &module,
                                     const Symbol_sources &sources) {
  // Two digits of the build id name the folder of its debug file.
  const std::string &id = module.build_id;
  if (id.size() <= 2) return std::nullopt;
  std::optional<Elf_file> best;
  for (const std::string &path : {sources.program, module.path,
                                  sources.debug_files + "/" + id.substr(0, 2) +
                                      "/" + id.substr(2) + ".debug"}) {
    std::optional<Elf_file> file = Elf_file::open(path);
    if (!file || file->build_id() != id) continue;
    if (file->has_all_functions()) return file;
    if (!best) best.emplace(std::move(*file));
  }
  return best;
}

}  // namespace

Symbols::Symbols(std::span<const Module> modules,
                 std::vector<uint64_t> addresses, const Symbol_sources &sources)
    : m_addresses(std::move(addresses)) {
  std::sort(m_addresses.begin(), m_addresses.end());
  m_addresses.erase(std::unique(m_addresses.begin(), m_addresses.end()),
                    m_addresses.end());
  m_symbols.resize(m_addresses.size());

  std::vector<size_t> order(modules.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&modules](size_t a, size_t b) {
    return modules[a].begin < modules[b].begin;
  });
  size_t i = 0;
  // @param end  the first address of the module behind
  const auto leave_unknown = [&](uint64_t end) {
    for (; i < m_addresses.size() && m_addresses[i] <= end; ++i) {
      m_symbols[i].offset = m_addresses[i] - 1;
      m_symbols[i].name = unknown_name(nullptr, m_symbols[i].offset);
    }
  };
  for (const size_t index : order) {
    const Module &module = modules[index];
    // A return address may be the first one behind the module.
    leave_unknown(module.begin);
    const size_t first = i;
    std::vector<uint64_t> calls;
    for (; i < m_addresses.size() && m_addresses[i] <= module.end; ++i)
      calls.push_back(m_addresses[i] - 1 - module.load_bias);
    if (calls.empty()) continue;
    std::vector<std::string> functions(calls.size());
    // Otherwise an address less the bias would wrap.
    if (module.load_bias <= module.begin)
      if (const auto file = open_file_of(module, sources))
        functions = file->functions_at(calls);
    for (size_t j = 0; j < calls.size(); ++j) {
      Symbol &symbol = m_symbols[first + j];
      symbol.module = index;
      symbol.offset = calls[j];
      symbol.linkage_name = std::move(functions[j]);
      if (!symbol.is_known())
        symbol.name = unknown_name(&module, calls[j]);
      else if (is_interrupted())
        symbol.name = symbol.linkage_name;  // a killed statement shows none
      else if (j > 0 &&
               symbol.linkage_name == m_symbols[first + j - 1].linkage_name)
        symbol.name = m_symbols[first + j - 1].name;
      else
        symbol.name = function_name(symbol.linkage_name);
    }
  }
  leave_unknown(UINT64_MAX);
}

Symbols::Symbols(const Profile &profile, const Symbol_sources &sources)
    : Symbols(profile.modules, addresses_of(profile), sources) {}

const Symbol &Symbols::operator[](uint64_t address) const {
  static const Symbol unknown{"?", "", std::nullopt, 0};
  const auto found =
      std::lower_bound(m_addresses.begin(), m_addresses.end(), address);
  if (found == m_addresses.end() || *found != address) return unknown;
  return m_symbols[static_cast<size_t>(found - m_addresses.begin())];
}

}  // namespace memdiag::profile
