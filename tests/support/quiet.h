// While one is alive, what is written to standard output goes nowhere.
#pragma once
#include <iostream>

namespace sinter::tests {

struct Quiet {
  Quiet() = default;
  ~Quiet() {
    std::cout.rdbuf(before);
    std::cout.clear();
  }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;
  std::streambuf* const before = std::cout.rdbuf(nullptr);
};

}  // namespace sinter::tests
