#include "plugin/memdiag/profile/function_name.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "mysys/memdiag/pages/regions.h"

namespace memdiag::profile {
namespace {

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

/** Stands for a space that is a part of the name. */
constexpr char kept_space = '\x01';

class Shortener {
 public:
  explicit Shortener(std::string_view text) : m_text(text) {}

  /** @return "": a form that is not known */
  std::string run() {
    while (m_at < m_text.size())
      if (!step()) return "";
    // The return type stands before the last space.
    if (const size_t space = m_name.rfind(' '); space != std::string::npos)
      m_name.erase(0, space + 1);
    const size_t begin = m_name.find_first_not_of("*&");
    m_name.erase(0, std::min(begin, m_name.size()));
    for (char &c : m_name)
      if (c == kept_space) c = ' ';
    return m_name;
  }

 private:
  bool rest_begins_with(std::string_view text) const {
    return m_text.substr(m_at).starts_with(text);
  }

  bool step() {
    const char c = m_text[m_at];
    const bool begins_word = m_at == 0 || !in_word(m_text[m_at - 1]);
    if (begins_word && rest_begins_with("operator") &&
        m_at + 8 < m_text.size() && !in_word(m_text[m_at + 8]))
      return operator_name();
    if (rest_begins_with("(anonymous namespace)::")) {
      m_at += strlen("(anonymous namespace)::");
      return true;
    }
    switch (c) {
      case '<':
        return skip_group();
      case '(':
        if (rest_begins_with("(*") || rest_begins_with("(&")) return false;
        // "decltype (...) f", and the parameters.
        if (m_name.ends_with("decltype") || m_name.ends_with("decltype "))
          return skip_group();
        return skip_group() && after_parameters();
      case '{':
        return braces();
      case '[': {
        const size_t end = m_text.find(']', m_at);
        if (end == std::string_view::npos) return false;
        m_at = end + 1;
        return true;
      }
      case ')':
      case '>':
      case '}':
      case ']':
        return false;
      default:
        m_name += c;
        ++m_at;
        return true;
    }
  }

  /** Copies "operator" and what it is; m_at stands at it. */
  bool operator_name() {
    m_name += "operator";
    m_at += strlen("operator");
    for (const std::string_view symbol :
         {"()", "[]", "<=>", "<<=", ">>=", "->*", "->", "<<", ">>",
          "<=", ">=", "<", ">", "\"\" "})
      if (rest_begins_with(symbol)) {
        m_at += symbol.size();
        for (const char c : symbol) m_name += c == ' ' ? kept_space : c;
        // A space keeps "operator<" and a template's "<" apart.
        if (rest_begins_with(" <")) ++m_at;
        return true;
      }
    if (m_at < m_text.size() && m_text[m_at] != ' ') {
      while (m_at < m_text.size() && std::ispunct(m_text[m_at]) &&
             m_text[m_at] != '(' && m_text[m_at] != '<')
        m_name += m_text[m_at++];
      if (rest_begins_with(" <")) ++m_at;
      return true;
    }
    // "operator new[]", or a conversion to a type.
    while (m_at < m_text.size() && m_text[m_at] != '(') {
      const char c = m_text[m_at];
      if (c == '<') {
        if (!skip_group()) return false;
        continue;
      }
      m_name += c == ' ' ? kept_space : c;
      ++m_at;
    }
    return true;
  }

  /** Leaves out a group in brackets; m_at stands at the first one. "<" within
  a group is a bracket, unless it is an operator's. */
  bool skip_group() {
    std::string open;
    while (m_at < m_text.size()) {
      const char c = m_text[m_at];
      if (rest_begins_with("operator") && m_at > 0 &&
          !in_word(m_text[m_at - 1])) {
        m_at += strlen("operator");
        for (const std::string_view symbol :
             {"()", "<=>", "<<=", ">>=", "->*", "->", "<<", ">>", "<", ">"})
          if (rest_begins_with(symbol)) {
            m_at += symbol.size();
            break;
          }
        continue;
      }
      if (c == '\'' && m_at + 2 < m_text.size() && m_text[m_at + 2] == '\'') {
        m_at += 3;
        continue;
      }
      ++m_at;
      switch (c) {
        case '<':
        case '(':
        case '{':
        case '[':
          open += c;
          continue;
        case '>':
          // Within parentheses, a comparison; behind '-', an arrow.
          if (open.back() != '<' || m_text[m_at - 2] == '-') continue;
          break;
        case ')':
        case '}':
        case ']': {
          const char begin = c == ')' ? '(' : c == '}' ? '{' : '[';
          // A "<" that nothing closes was a comparison.
          while (open.size() > 1 && open.back() == '<' && begin != '<')
            open.pop_back();
          if (open.back() != begin) return false;
          break;
        }
        default:
          continue;
      }
      open.pop_back();
      if (open.empty()) return true;
    }
    return false;
  }

  /** Behind the parameters: the end with qualifiers, or something that the
  function contains. */
  bool after_parameters() {
    size_t at = m_at;
    for (;;) {
      const std::string_view rest = m_text.substr(at);
      if (rest.starts_with("::")) break;
      bool found = false;
      for (const std::string_view word :
           {" const", " volatile", " &&", " &", " noexcept"})
        if (rest.starts_with(word)) {
          at += word.size();
          found = true;
          break;
        }
      if (found) continue;
      // Clones, constraints.
      if (rest.empty() || rest.starts_with(" [") ||
          rest.starts_with(" requires ") || rest.starts_with("[")) {
        m_at = m_text.size();
        return !m_name.empty();
      }
      return false;
    }
    m_at = at;
    return true;
  }

  /** A lambda, or a type without a name. */
  bool braces() {
    if (!rest_begins_with("{lambda")) {
      const size_t end = m_text.find('}', m_at);
      if (end == std::string_view::npos) return false;
      for (; m_at <= end; ++m_at)
        m_name += m_text[m_at] == ' ' ? kept_space : m_text[m_at];
      return true;
    }
    if (!skip_group()) return false;
    m_name += "{lambda}";
    for (const std::string_view call : {"::operator()", "::_FUN"})
      if (rest_begins_with(call)) {
        m_at += call.size();
        break;
      }
    return true;
  }

  std::string_view m_text;
  size_t m_at{0};
  std::string m_name;
};

/** libstdc++ takes 72 bytes of the stack for each byte of a name, and 342 for
one that is nested most deeply. thread_stack may be 128 KB. */
bool has_stack_for(size_t name_bytes) {
  const Address_range stack = regions::stack_of_this_thread();
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return !stack.has(frame, 1) ||
         frame - stack.begin >= 384 * name_bytes + (16 << 10);
}

/** std::function calls what it holds through a function whose name has the
lambda as its second template argument. @return the lambda, or "" */
std::string_view lambda_in_function(std::string_view text) {
  constexpr std::string_view handler = "std::_Function_handler<";
  if (!text.starts_with(handler)) return "";
  text.remove_prefix(handler.size());
  size_t begin = 0;
  int depth = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<' || c == '(' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (c == ',' && depth == 1 && begin == 0) begin = i + 1;
    if (depth > 0) continue;
    if (begin == 0) return "";
    text = text.substr(begin, i - begin);
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
    return text.find("::{lambda") != std::string_view::npos ? text : "";
  }
  return "";
}

}  // namespace

std::string shorten(std::string_view demangled) {
  std::string_view text = demangled;
  for (const std::string_view prefix :
       {"non-virtual thunk to ", "virtual thunk to ",
        "covariant return thunk to "})
    if (text.starts_with(prefix)) {
      text.remove_prefix(prefix.size());
      break;
    }
  if (const std::string_view lambda = lambda_in_function(text); !lambda.empty())
    text = lambda;
  std::string name = Shortener(text).run();
  return name.empty() ? std::string(demangled) : name;
}

std::string function_name(const std::string &linkage_name) {
  std::string name = linkage_name.substr(0, linkage_name.find('@'));
  if (name.starts_with("_Z") && name.size() <= max_demangled_name &&
      has_stack_for(name.size())) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> demangled(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
        &std::free);
    if (status == -1) throw std::bad_alloc();
    if (demangled != nullptr) return shorten(demangled.get());
  }
  if (const size_t dot = name.find('.', 1); dot != std::string::npos)
    name.erase(dot);
  return name;
}

}  // namespace memdiag::profile
