// A fault of the library leaves a graph that can be parsed and run again.
#include "engine/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/value.h"
#include "sinter/sinter.h"

namespace {

using namespace sinter;

TEST(Replay, AnInternalErrorNamesAFileThatParses) {
  Array key = random::key(1), broken = engine::make(ops::Op::RandomBits, {key}, {3}, uint32, Shape{4});
  std::string text;
  try {
    broken.eval();
  } catch (const InternalError& e) {
    text = e.what();
  }
  std::size_t at = text.find("replay file ");
  ASSERT_NE(at, std::string::npos) << text;
  std::string name = text.substr(at + 12, text.find(';', at) - at - 12);
  std::ifstream file(name);
  std::stringstream content;
  content << file.rdbuf();
  graph::Graph g = graph::parse(content.str());
  EXPECT_EQ(g[g.outputs()[0]].op, ops::Op::RandomBits);
  std::filesystem::remove(name);
}

}  // namespace
