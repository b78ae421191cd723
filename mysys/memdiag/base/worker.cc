#include "mysys/memdiag/base/worker.h"

#include <signal.h>

#include <cerrno>
#include <chrono>

namespace memdiag {

int Worker::start(const char *name, Body body) {
  const std::lock_guard<std::mutex> control(m_control);
  const std::lock_guard<std::mutex> guard(m_mutex);
  if (m_running) return EALREADY;
  m_stop = false;
  m_body = body;
  // The server has a thread of its own for signals: none may come here, but for
  // those that a fault of this thread raises. Blocked, they would end the
  // server without its handler, which writes the stack.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  const int error = pthread_create(&m_thread, nullptr, run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return error;
  pthread_setname_np(m_thread, name);
  m_running = true;
  return 0;
}

void Worker::stop() {
  const std::lock_guard<std::mutex> control(m_control);
  {
    const std::lock_guard<std::mutex> guard(m_mutex);
    if (!m_running) return;
    m_stop = true;
    m_running = false;
  }
  m_wake.notify_all();
  pthread_join(m_thread, nullptr);
}

bool Worker::wait_ms(uint64_t ms) {
  std::unique_lock<std::mutex> lock(m_mutex);
  const auto ends = [this] { return m_stop || m_woken; };
  if (ms == 0)
    m_wake.wait(lock, ends);
  else
    m_wake.wait_for(lock, std::chrono::milliseconds(ms), ends);
  m_woken = false;
  return !m_stop;
}

void Worker::wake() {
  {
    const std::lock_guard<std::mutex> guard(m_mutex);
    m_woken = true;
  }
  m_wake.notify_all();
}

void *Worker::run(void *self) {
  Worker *const worker = static_cast<Worker *>(self);
  worker->m_body(worker);
  return nullptr;
}

}  // namespace memdiag
