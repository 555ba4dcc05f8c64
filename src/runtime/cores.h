// Cores: where threads begin. Layer: runtime.
#pragma once
#include <pthread.h>
#include <sched.h>

#include <vector>

namespace sinter::runtime {

/// The cores that the calling thread may run on, and so those that it starts. A system may leave a new thread on the core of its maker
/// until its next tick, for 4 ms and more, though others are idle (a virtual machine whose idle cores have been given back looks busy). So
/// threads that are to work at once begin on one core each, and may go everywhere from then on.
struct Cores {
  Cores();
  cpu_set_t one(std::size_t i) const;  // order[i]

  cpu_set_t all;
  std::vector<int> order;  // the calling thread's own comes last; empty: unknown
};

/// pthread_create() of a thread that begins on the i-th of the cores, where these are known; joinable, for it may end at once. Whether
/// there is one.
bool start_thread(const Cores& cores, std::size_t i, pthread_attr_t& attributes, void* (*f)(void*), void* argument, pthread_t& made);

}  // namespace sinter::runtime
