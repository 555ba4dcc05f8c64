// Tables of expressions with the text that their result prints: dtype, shape and values in one line.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>
#include <vector>

#include "sinter/sinter.h"

using namespace sinter;

struct Case {
  const char* text;
  const char* expected;
  std::function<Array()> make;
};
// The expression comes last, for it has commas.
#define CASE(expected, ...)                                    \
  Case {                                                       \
    #__VA_ARGS__, expected, [&] { return Array(__VA_ARGS__); } \
  }

inline void run(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    try {
      EXPECT_EQ(to_string(c.make()), c.expected) << c.text;
    } catch (const std::exception& e) {
      ADD_FAILURE() << c.text << " threw " << e.what();
    }
  }
}

struct Samples {
  Array m{{{1, 2, 3}, {4, 5, 6}}};
  Array f{{1.5f, -2.5f, 0.5f, 3.f}};
  Array v{{1, 2, 3}};
  Array w{{{1.f, 2.f}, {3.f, 4.f}}};
  Array t3 = reshape(arange(24), {2, 3, 4});
  Array b{{true, false, true}};
  Array u8 = Array({200, 100}, uint8);
  Array i8 = Array({100, 100}, int8);
  Array h = full({100}, 1000, float16);
  Array c{{std::complex<float>(1, 2), std::complex<float>(3, -4)}};
  Array nan{{1.f, NAN, INFINITY, -INFINITY}};
};
