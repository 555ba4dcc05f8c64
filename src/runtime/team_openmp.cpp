#include <omp.h>
#include <sched.h>

#include "runtime/cores.h"
#include "runtime/team.h"

namespace sinter::runtime {

void run_team(std::int64_t threads, FunctionRef<void(std::int64_t, std::int64_t)> f) {
#pragma omp parallel num_threads(static_cast<int>(threads))
  f(omp_get_thread_num(), omp_get_num_threads());
}
void make_team() {
  constexpr std::size_t kMostPlaced = 16;
  const Cores cores;
  const std::size_t count = cores.order.size();
  const bool all = static_cast<std::size_t>(omp_get_max_threads()) == count && omp_get_proc_bind() == omp_proc_bind_false;
  if (count < 2 || count > kMostPlaced || !all || in_team()) return;
  // Who waits for a new team spins, on the very core where the others may wait for their turn. Where threads are more than cores they
  // sleep soon; the one too many ends with the next region.
#pragma omp parallel num_threads(static_cast<int>(count) + 1)
  if (const auto i = static_cast<std::size_t>(omp_get_thread_num()); i > 0 && i < count) {
    const cpu_set_t one = cores.one(i - 1);
    sched_setaffinity(0, sizeof one, &one);
  }
#pragma omp parallel num_threads(static_cast<int>(count))
  if (omp_get_thread_num() > 0) sched_setaffinity(0, sizeof cores.all, &cores.all);
}
bool in_team() { return omp_in_parallel() != 0; }

}  // namespace sinter::runtime
