/*
  Names for people: the class and the method stay, walls of template arguments
  and parameters go, and no text does harm.
*/

#include "plugin/memdiag/profile/function_name.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <random>
#include <string>
#include <utility>

#include "mysys/memdiag/pages/regions.h"
#include "plugin/memdiag/unittest/mutate.h"

namespace memdiag::profile {
namespace {

TEST(Function_name, OfSymbols) {
  const std::pair<const char *, const char *> cases[] = {
      {"main", "main"},
      {"_Z9do_selectP4JOIN", "do_select"},
      {"_ZN3THD13cleanup_queryEv", "THD::cleanup_query"},
      {"_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector::push_back"},
      {"_ZN12_GLOBAL__N_15writeEv.part.0", "write"},
      {"_ZN3fooC1Ev", "foo::foo"},
      {"_ZN3fooD0Ev", "foo::~foo"},
      {"_ZNK3foocvbEv", "foo::operator bool"},
      {"_Znwm", "operator new"},
      {"_ZN2utlsIiEEvT_", "ut::operator<<"},
      {"malloc@@GLIBC_2.2.5", "malloc"},
      {"malloc_init_hard.cold", "malloc_init_hard"},
      {"arena_get.constprop.0", "arena_get"},
      {"_Znot_a_name", "_Znot_a_name"},
      {".hidden", ".hidden"},
      {"", ""},
  };
  for (const auto &[symbol, name] : cases)
    EXPECT_EQ(name, function_name(symbol)) << symbol;
}

TEST(Function_name, Shortened) {
  const std::pair<const char *, const char *> cases[] = {
      {"f", "f"},
      {"f(int, char const*)", "f"},
      {"A::f(int) const", "A::f"},
      {"A::f(int) const &", "A::f"},
      {"A::f(std::function<void (int)>)", "A::f"},
      {"void f<int>(int)", "f"},
      {"unsigned long ns::f<A<B> >(A<B>)", "ns::f"},
      {"std::map<int, A<B>, std::less<int> > f<int>()", "f"},
      {"A<B>::C<D>::f()", "A::C::f"},
      {"std::__cxx11::basic_string<char, std::char_traits<char>, "
       "std::allocator<char> >::_M_create(unsigned long&, unsigned long)",
       "std::__cxx11::basic_string::_M_create"},
      {"(anonymous namespace)::f(int)", "f"},
      {"void (anonymous namespace)::A<int>::f<int>(int)", "A::f"},
      {"ns::(anonymous namespace)::A::f()", "ns::A::f"},
      {"f[abi:cxx11](int)", "f"},
      {"f(int) [clone .part.0] [clone .cold]", "f"},
      {"non-virtual thunk to A::f()", "A::f"},
      {"virtual thunk to A::f()", "A::f"},
      {"covariant return thunk to A::f()", "A::f"},
      {"operator new(unsigned long)", "operator new"},
      {"operator new[](unsigned long)", "operator new[]"},
      {"operator delete(void*)", "operator delete"},
      {"A::operator new(unsigned long)", "A::operator new"},
      {"A::operator()(int) const", "A::operator()"},
      {"A::operator[](int)", "A::operator[]"},
      {"A<int>::operator->() const", "A::operator->"},
      {"bool operator< <int>(A<int>, A<int>)", "operator<"},
      {"bool operator<=> <int>(A<int>)", "operator<=>"},
      {"std::ostream& operator<< <int>(std::ostream&, A<int>)", "operator<<"},
      {"A::operator>>(int)", "A::operator>>"},
      {"A::operator unsigned long() const", "A::operator unsigned long"},
      {"A::operator std::vector<int>() const", "A::operator std::vector"},
      {"A::operator char const*() const", "A::operator char const*"},
      {"operator\"\" _s(char const*)", "operator\"\" _s"},
      {"A::operator&&(A const&)", "A::operator&&"},
      {"f(int)::{lambda(int)#1}::operator()(int) const", "f::{lambda}"},
      {"f(int)::{lambda()#2}::operator()() const::{lambda(A)#1}::operator()("
       "A) const",
       "f::{lambda}::{lambda}"},
      {"f(int)::{lambda(int)#1}::_FUN(int)", "f::{lambda}"},
      {"f(int)::A::g()", "f::A::g"},
      {"f(int)::A::g() const::B::h()", "f::A::g::B::h"},
      {"f({lambda(int)#1}&&)", "f"},
      {"std::_Function_handler<void (A<B, C>), A::f(int)::{lambda()#1}>::"
       "_M_invoke(std::_Any_data const&)",
       "A::f::{lambda}"},
      {"std::_Function_handler<void (), void (*)()>::_M_invoke("
       "std::_Any_data const&)",
       "std::_Function_handler::_M_invoke"},
      {"f<&(A::operator<(A const&))>()", "f"},
      {"void f<(E)1, ((1)>(2)), true>(int)", "f"},
      {"void f<(E)1, ((1)<(2)), true>(int)", "f"},
      {"decltype (g({parm#1})) f<int>(int)", "f"},
      {"decltype(auto) f<int>(int)", "f"},
      {"char* f<char>(int)", "f"},
      {"A::{unnamed type#1}::f()", "A::{unnamed type#1}::f"},
      {"f<'>'>()", "f"},
      {"operatorless(int)", "operatorless"},
      {"my_operator(int)", "my_operator"},
      {"f() &&", "f"},
      {"f() requires C<int>", "f"},
      {"A::~A()", "A::~A"},
      // A function that returns a pointer to a function is not guessed at.
      {"void (*f<int>(int))(char)", "void (*f<int>(int))(char)"},
      // Other things than functions, and broken ones.
      {"f(", "f("},
      {"f<", "f<"},
      {"f)", "f)"},
      {"f>", "f>"},
      {"()", "()"},
      {"", ""},
  };
  for (const auto &[demangled, name] : cases)
    EXPECT_EQ(name, shorten(demangled)) << demangled;
}

TEST(Function_name, ALongNameIsNotDemangled) {
  const std::string name = "_Z" + std::to_string(max_demangled_name) +
                           std::string(max_demangled_name, 'f') + "v";
  EXPECT_EQ(name, function_name(name));
}

TEST(Function_name, WithLittleStackLeftALongNameIsNotDemangled) {
  // libstdc++ takes the most stack for such a name: 340 bytes for each letter.
  const std::string name = "_Z1f" + std::string(1000, 'P') + 'i';
  const auto in_thread = [&name](size_t stack_bytes) {
    pthread_attr_t attributes;
    EXPECT_EQ(0, pthread_attr_init(&attributes));
    EXPECT_EQ(0, pthread_attr_setstacksize(&attributes, stack_bytes));
    struct Names {
      const std::string *given;
      std::string found;
      std::string found_of_short;
    } names{&name, "", ""};
    pthread_t thread;
    EXPECT_EQ(0, pthread_create(
                     &thread, &attributes,
                     [](void *argument) -> void * {
                       auto *const of = static_cast<Names *>(argument);
                       regions::add_stack_of_thread();
                       of->found = function_name(*of->given);
                       of->found_of_short = function_name("_Z1fPPPi");
                       return nullptr;
                     },
                     &names));
    EXPECT_EQ(0, pthread_join(thread, nullptr));
    EXPECT_EQ(0, pthread_attr_destroy(&attributes));
    EXPECT_EQ("f", names.found_of_short);
    return names.found;
  };
  // The smaller one first: the C library gives a thread the stack of one that
  // has ended, if it is large enough.
  EXPECT_EQ(name, in_thread(256 << 10));
  EXPECT_EQ("f", in_thread(8 << 20));
  EXPECT_EQ("f", function_name(name)) << "this thread's stack is not known";
}

TEST(Function_name, AnyTextIsHarmless) {
  std::mt19937 random(20261122);
  const std::string symbols[] = {
      "_ZNSt17_Function_handlerIFvvEZ1fiEUlvE_E9_M_invokeERKSt9_Any_data",
      "_ZN12_GLOBAL__N_15writeEv.part.0", "_ZN2utlsIiEEvT_"};
  const std::string texts[] = {
      "void (anonymous namespace)::A<int>::f<int>(int)",
      "f(int)::{lambda()#2}::operator()() const::{lambda(A)#1}::operator()(A)",
      "std::ostream& operator<< <int>(std::ostream&, A<int>)"};
  for (int i = 0; i < 100000; ++i) {
    const std::string text = memdiag_test::mutate(texts[i % 3], &random);
    ASSERT_LE(shorten(text).size(), text.size());
    (void)function_name(memdiag_test::mutate(symbols[i % 3], &random));
  }
}

}  // namespace
}  // namespace memdiag::profile
