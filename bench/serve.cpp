// sinter_bench --serve: a process in which workloads are measured on request, so that other programs can take turns with it.
//   row NAME           makes the workload, calls it once; answers "NAME=first_call_ms" for each thing that can be timed
//   turn NAME MS       calls that thing for so long, once at least; answers the milliseconds of each call
// An unknown row is answered by an empty line.
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>

#include "bench.h"

namespace bench {

int serve() {
  std::map<std::string, std::function<void()>> things;
  int calls = 1;  // of each measurement
  for (std::string command, name; std::cin >> command >> name;) {
    if (command == "row") {
      things.clear();
      if (const Row* row = find_row(name)) {
        Work work = row->make(make_inputs(*row));
        auto memory = std::make_shared<Memory>(row->bytes());
        things["sinter"] = work.compiled;
        things["copy"] = [memory, read = row->reads_only()] { read ? memory->read() : memory->copy(); };
        calls = row->calls;
        std::printf("sinter=%.4f copy=0", time_ms(work.compiled));
      }
    } else {
      double budget_ms = 0;
      std::cin >> budget_ms;
      const std::function<void()>& f = things.at(name);
      const int n = name == "copy" ? 1 : calls;
      double start = now_ms();
      for (int i = 0; i < 1 || now_ms() - start < budget_ms; ++i) {
        double ms = time_ms([&] {
          for (int k = 0; k < n; ++k) f();
        });
        std::printf("%.6f ", ms / n);
      }
    }
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace bench
