/* A thread whose client is idle: how its wait is cut, and what it gives back.
 */

#include "mysys/memdiag/upstream/idle_hooks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <vector>

#include "mysys/memdiag/ceiling/owner.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/unittest/test.h"
#include "mysys/memdiag/upstream/hooks.h"

namespace memdiag_test {

using memdiag::Client_wait;
namespace regions = memdiag::regions;

constexpr int timed_out = 0;
constexpr int ready = 1;

bool has_cache() { return mallctl::read<Ctl::thread_tcache_enabled>().value(); }

TEST(ClientWait, IsCutInTwo) {
  timespec timeout{100, 7};
  Client_wait wait(true, &timeout);
  EXPECT_EQ(5, wait.timeout()->tv_sec);
  EXPECT_EQ(0, wait.timeout()->tv_nsec);
  EXPECT_TRUE(wait.goes_on(timed_out));
  EXPECT_EQ(95, wait.timeout()->tv_sec);
  EXPECT_EQ(7, wait.timeout()->tv_nsec);
  EXPECT_FALSE(wait.goes_on(timed_out));
}

TEST(ClientWait, MayLastForEver) {
  Client_wait wait(true, nullptr);
  EXPECT_EQ(5, wait.timeout()->tv_sec);
  EXPECT_TRUE(wait.goes_on(timed_out));
  EXPECT_EQ(nullptr, wait.timeout());
}

TEST(ClientWait, EndsWhenTheClientSends) {
  timespec timeout{10, 0};
  Client_wait wait(true, &timeout);
  EXPECT_FALSE(wait.goes_on(ready));
  EXPECT_FALSE(wait.goes_on(-1)) << "interrupted";
  EXPECT_EQ(10, timeout.tv_sec);
}

TEST(ClientWait, IsNotCutWhereItIsShortOrWrites) {
  timespec timeout{9, 999999999};
  Client_wait shorter(true, &timeout);
  EXPECT_EQ(&timeout, shorter.timeout());
  EXPECT_FALSE(shorter.goes_on(timed_out));
  Client_wait writes(false, nullptr);
  EXPECT_EQ(nullptr, writes.timeout());
  EXPECT_FALSE(writes.goes_on(timed_out));
}

int told_idle = 0;
int bell[2];

TEST(ClientWait, ACallCutsItOnceMore) {
  static constexpr memdiag::ceiling::Owner owner{.client_is_idle = [] {
    ++told_idle;
    return bell[0];
  }};
  const auto *const before = memdiag::ceiling::owner_in_use.exchange(&owner);
  int client[2];
  ASSERT_EQ(0, pipe(client));
  ASSERT_EQ(0, pipe(bell));
  {
    timespec timeout{100, 0};
    Client_wait wait(true, &timeout);
    EXPECT_TRUE(wait.goes_on(timed_out));
    EXPECT_EQ(1, told_idle);
    pollfd of_client{client[0], POLLIN, 0};
    ASSERT_EQ(1, write(bell[1], "x", 1));
    EXPECT_EQ(timed_out, wait.wait(&of_client, nullptr));
    EXPECT_TRUE(wait.goes_on(timed_out));
    EXPECT_EQ(2, told_idle);
    EXPECT_LE(wait.timeout()->tv_sec, 95);
    // It is told once, although it could be called for ever.
    ASSERT_EQ(1, write(client[1], "x", 1));
    EXPECT_EQ(ready, wait.wait(&of_client, nullptr));
    EXPECT_EQ(POLLIN, of_client.revents);
    EXPECT_FALSE(wait.goes_on(ready));
    EXPECT_EQ(2, told_idle);
  }
  memdiag::ceiling::owner_in_use.store(before);
  for (const int each : {client[0], client[1], bell[0], bell[1]})
    EXPECT_EQ(0, close(each));
}

/** Uses so much of the stack below the caller. */
[[gnu::noinline]] void use_stack(size_t bytes) {
  volatile char *used = static_cast<char *>(__builtin_alloca(bytes));
  for (size_t i = 0; i < bytes; i += 512) used[i] = 1;
}

TEST(IdleClient, GivesBackTheStackThatNobodyUses) {
  if (sanitized) GTEST_SKIP() << "the sanitizer has stacks of its own";
  std::thread([] {
    memdiag_thread_begins();
    const auto resident = [] {
      return *regions::resident_bytes(regions::stack_of_this_thread(),
                                      memdiag::Region_kind::thread_stack);
    };
    int kept[256];
    for (int i = 0; i < 256; ++i) kept[i] = i;
    use_stack(200000);
    EXPECT_LT(200000u, resident());
    memdiag_client_is_idle();
    // Asking uses some again.
    EXPECT_GT(100000u, resident());
    for (int i = 0; i < 256; ++i) EXPECT_EQ(i, kept[i]);
    use_stack(200000);
    memdiag_client_is_back();
  }).join();
}

/** Of the calling thread's stack, as the C library tells it. */
size_t resident_stack() {
  pthread_attr_t attributes;
  void *begin;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  pthread_attr_getstack(&attributes, &begin, &size);
  pthread_attr_destroy(&attributes);
  const size_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> pages((size + page - 1) / page);
  if (mincore(begin, size, pages.data()) != 0) return 0;
  return page * std::count_if(pages.begin(), pages.end(),
                              [](unsigned char one) { return one & 1; });
}

TEST(IdleClient, AStackThatIsNotKnownStays) {
  std::thread([] {
    use_stack(200000);
    ASSERT_LT(200000u, resident_stack());
    memdiag_client_is_idle();
    EXPECT_LT(200000u, resident_stack());
    memdiag_client_is_back();
  }).join();
}

TEST(IdleClient, HasNoCacheUntilItIsBack) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "malloc() is a sanitizer's";
  std::thread([] {
    pools::bind_thread(Pool::connection);
    free(malloc(100));
    ASSERT_TRUE(has_cache());
    const unsigned arena = mallctl::read<Ctl::thread_arena>().value();
    errno = ENOTTY;
    {
      Client_wait wait(true, nullptr);
      EXPECT_TRUE(wait.goes_on(timed_out));
      EXPECT_FALSE(has_cache());
      // The server may allocate meanwhile, to end the session for example.
      for (const size_t size : {size_t{10}, size_t{5000}, size_t{100000}})
        free(malloc(size));
    }
    EXPECT_EQ(ENOTTY, errno);
    EXPECT_TRUE(has_cache());
    EXPECT_EQ(arena, mallctl::read<Ctl::thread_arena>().value());
  }).join();
}

TEST(IdleClient, WithoutACacheGetsNone) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "malloc() is a sanitizer's";
  std::thread([] {
    ASSERT_EQ(0, mallctl::write<Ctl::thread_tcache_enabled>(false));
    memdiag_client_is_idle();
    memdiag_client_is_back();
    EXPECT_FALSE(has_cache());
  }).join();
}

/** Nothing more can be mapped while this lives, and malloc() has no page left
in the arena of caches. */
class Shortage {
 public:
  Shortage() {
    const auto arena = mallctl::read<Ctl::thread_arena>();
    (void)mallctl::write<Ctl::thread_arena>(0);
    limit(0);
    for (const size_t kilobytes :
         {1024, 256, 64, 32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4})
      while (void *const block = malloc(kilobytes << 10)) {
        *static_cast<void **>(block) = m_last;
        m_last = block;
      }
    (void)mallctl::write<Ctl::thread_arena>(arena.value_or(0));
  }
  ~Shortage() {
    limit(RLIM_INFINITY);
    while (m_last != nullptr) {
      void *const block = m_last;
      m_last = *static_cast<void **>(block);
      free(block);
    }
  }
  Shortage(const Shortage &) = delete;
  Shortage &operator=(const Shortage &) = delete;

 private:
  static void limit(rlim_t bytes) {
    const rlimit limit{bytes, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
  }

  void *m_last = nullptr;
};

TEST(IdleClient, ItsCacheIsMadeAgainOnceThereIsMemory) {
  if (!mallctl::serves_malloc()) GTEST_SKIP() << "malloc() is a sanitizer's";
  EXPECT_EQ(0, in_child([] {
              pools::bind_thread(Pool::connection);
              if (!has_cache()) return 1;
              memdiag_client_is_idle();
              {
                const Shortage shortage;
                memdiag_client_is_back();
                if (has_cache()) return 2;
              }
              // It is idle again, and comes back.
              memdiag_client_is_idle();
              memdiag_client_is_back();
              if (!has_cache()) return 3;
              // The same where the next thing is another connection.
              memdiag_client_is_idle();
              {
                const Shortage shortage;
                memdiag_client_is_back();
                if (has_cache()) return 4;
              }
              pools::bind_thread(Pool::connection);
              return has_cache() ? 0 : 5;
            }));
}

TEST(IdleClient, MayEndWhileItIsIdle) {
  // A sanitizer serves malloc() without such a cache.
  const bool served = mallctl::serves_malloc();
  const auto idle = [served] {
    pools::bind_thread(Pool::connection);
    free(malloc(100));
    EXPECT_TRUE(!served || has_cache());
    memdiag_client_is_idle();
    EXPECT_FALSE(served && has_cache());
  };
  std::thread(idle).join();
  // The next thread has what that one gave up.
  std::thread([served, idle] {
    idle();
    memdiag_client_is_back();
    EXPECT_TRUE(!served || has_cache());
  }).join();
}

}  // namespace memdiag_test
