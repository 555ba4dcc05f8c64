// Random graphs: regular == compiled == unfused == interpreted, bit for bit. SINTER_FUZZ_SECONDS sets the time, SINTER_FUZZ_SEED the first
// seed. A failure is shrunk and printed as text that tests/engine/graphs.cpp takes.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "fuzz/random_graph.h"

namespace {

using namespace sinter;

double number(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text && *text ? std::atof(text) : otherwise;
}

TEST(Fuzz, PathsAgree) {
  double seconds = number("SINTER_FUZZ_SECONDS", 30);
  std::uint32_t seed = static_cast<std::uint32_t>(number("SINTER_FUZZ_SEED", 1));
  auto start = std::chrono::steady_clock::now();
  int graphs = 0;
  for (; std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds; ++seed, ++graphs) {
    graph::Graph g = fuzz::random_graph(seed, 6 + static_cast<int>(seed % 20));
    graph::verify(g);
    std::string d = fuzz::disagreement(g, seed);
    if (d.empty()) continue;
    graph::Graph small = fuzz::shrink(g, seed);
    FAIL() << "seed " << seed << ": " << fuzz::disagreement(small, seed) << "\n" << graph::print(small);
  }
  std::printf("%d graphs, next seed %u\n", graphs, seed);
}

}  // namespace
