#include <omp.h>

#include "runtime/team.h"

namespace sinter::runtime {

void run_team(std::int64_t threads, FunctionRef<void(std::int64_t, std::int64_t)> f) {
#pragma omp parallel num_threads(static_cast<int>(threads))
  f(omp_get_thread_num(), omp_get_num_threads());
}
bool in_team() { return omp_in_parallel() != 0; }

}  // namespace sinter::runtime
