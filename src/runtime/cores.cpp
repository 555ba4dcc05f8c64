#include "runtime/cores.h"

#include <algorithm>

namespace sinter::runtime {

Cores::Cores() {
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  const int here = std::max(sched_getcpu(), 0);
  for (int i = 1; i <= CPU_SETSIZE; ++i)
    if (const int core = (here + i) % CPU_SETSIZE; CPU_ISSET(static_cast<std::size_t>(core), &all)) order.push_back(core);
}

cpu_set_t Cores::one(std::size_t i) const {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(order[i]), &set);
  return set;
}

bool start_thread(const Cores& cores, std::size_t i, pthread_attr_t& attributes, void* (*f)(void*), void* argument, pthread_t& made) {
  if (i < cores.order.size()) {
    const cpu_set_t one = cores.one(i);
    pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    if (pthread_create(&made, &attributes, f, argument) == 0) {
      pthread_setaffinity_np(made, sizeof cores.all, &cores.all);  // from outside: it may have to wait for that core
      return true;
    }
  }
  pthread_attr_setaffinity_np(&attributes, 0, &cores.all);  // none at all: there is none, or the process may not choose
  return pthread_create(&made, &attributes, f, argument) == 0;
}

}  // namespace sinter::runtime
