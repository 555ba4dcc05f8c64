// Graphs: hash-consing, rewriting, text, verify, and passes on random and on long graphs.
#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "graph/interpret.h"
#include "ir/random_graph.h"
#include "passes/pass.h"

namespace sinter::graph {
namespace {

using ops::Op;

const Type kVector{Dtype::float32, {4}};

TEST(Graph, EqualNodesAreOneNode) {
  Graph g;
  const Id x = g.add({Op::Input, {}, {0}, kVector}), y = g.add({Op::Input, {}, {1}, kVector});
  // Each pair differs in one thing.
  const std::pair<Node, Node> different[] = {
      {{Op::Exp, {x}, {}, kVector}, {Op::Log, {x}, {}, kVector}},
      {{Op::Exp, {x}, {}, kVector}, {Op::Exp, {y}, {}, kVector}},
      {{Op::Subtract, {x, y}, {}, kVector}, {Op::Subtract, {y, x}, {}, kVector}},
      {{Op::Constant, {}, {0}, kVector}, {Op::Constant, {}, {std::int64_t{0x80000000}}, kVector}},  // 0 and -0
      {{Op::Constant, {}, {1}, kVector}, {Op::Constant, {}, {1}, {Dtype::int32, {4}}}},
      {{Op::Constant, {}, {1}, kVector}, {Op::Constant, {}, {1}, {Dtype::float32, {2, 2}}}},
      {{Op::Constant, {}, {1}, kVector}, {Op::Constant, {}, {1, 1, 1, 1}, kVector}},
      {{Op::Cast, {x}, {static_cast<std::int64_t>(Dtype::int8)}, kVector},
       {Op::Cast, {x}, {static_cast<std::int64_t>(Dtype::uint8)}, kVector}},
      {{Op::Slice, {x}, {0, 2, 1}, kVector}, {Op::Slice, {x}, {0, 2, 2}, kVector}},
      {{Op::Sum, {x}, {static_cast<std::int64_t>(Dtype::float32), 0}, {Dtype::float32, {}}},
       {Op::Sum, {x}, {static_cast<std::int64_t>(Dtype::float32)}, kVector}},
      {{Op::RandomBits, {x}, {1}, kVector}, {Op::RandomBits, {x}, {2}, kVector}},
      {{Op::Concatenate, {x, y}, {0}, kVector}, {Op::Concatenate, {x, y}, {1}, kVector}},
      {{Op::Transpose, {x}, {0, 1}, kVector}, {Op::Transpose, {x}, {1, 0}, kVector}},
  };
  for (const auto& [a, b] : different) {
    const Id id = g.add(a);
    EXPECT_NE(id, g.add(b)) << ops::info(a.op).name;
    EXPECT_EQ(id, g.add(a)) << ops::info(a.op).name;
  }
}

// d * e - e and d * e - d have one tree shape and are two graphs.
TEST(Graph, ReuseIsPartOfIdentity) {
  auto make = [](bool first) {
    Graph g;
    const Id d = g.add({Op::Input, {}, {0}, kVector}), e = g.add({Op::Input, {}, {1}, kVector});
    g.set_outputs({elementwise(g, Op::Subtract, {elementwise(g, Op::Multiply, {d, e}), first ? d : e})});
    return g;
  };
  EXPECT_FALSE(make(true) == make(false));
  EXPECT_NE(print(make(true)), print(make(false)));
  EXPECT_TRUE(make(true) == make(true));
}

TEST(Graph, RewriteKeepsInputsAndDropsTheDead) {
  Graph g = parse(
      "graph g(%0: float32[4], %1: float32[4]) {\n %2 = exp %0 : float32[4]\n %3 = log %1 : float32[4]\n %4 = negative %2 : float32[4]\n "
      "return %4, %2\n}");
  EXPECT_EQ(count_uses(g), (std::vector<int>{1, 1, 2, 0, 1}));
  const Graph same = rewrite(g, [](Graph&, const Node&) { return kKeep; });
  EXPECT_EQ(print(same),
            "graph g(%0: float32[4], %1: float32[4]) {\n  %2 = exp %0 : float32[4]\n  %3 = negative %2 : float32[4]\n  return %3, %2\n}\n");
  const Graph replaced =
      rewrite(g, [](Graph& target, const Node& n) { return n.op == Op::Exp ? elementwise(target, Op::Sin, {n.in[0]}) : kKeep; });
  EXPECT_EQ(print(replaced),
            "graph g(%0: float32[4], %1: float32[4]) {\n  %2 = sin %0 : float32[4]\n  %3 = negative %2 : float32[4]\n  return %3, %2\n}\n");
}

TEST(GraphText, RoundTripsRandomGraphs) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const Graph g = RandomGraph(seed).make(40);
    verify(g);
    ASSERT_TRUE(parse(print(g)) == g) << print(g);
  }
}

TEST(GraphText, ErrorsNameThePlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "graph text: expected 'graph'; got the end at line 1, column 1"},
      {"graph f(%0: float33[2]) {}", "expected a dtype; got 'float33' at line 1, column 13"},
      {"graph f(%0: float32[2,]) {}", "expected a 64-bit integer; got ']' at line 1, column 23"},
      {"graph f(%0: float32[2]) {\n  %1 = expo %0 : float32[2]\n}", "there is no such operation; got 'expo' at line 2, column 8"},
      {"graph f(%0: float32[2]) {\n  %1 = exp %2 : float32[2]\n}", "a value is used and not defined; got '%2' at line 2, column 12"},
      {"graph f(%0: float32[2]) {\n  %0 = exp %0 : float32[2]\n}", "a value is used and not defined"},
      {"graph f() {\n  %1 = constant {bits=x} : float32[]\n}", "expected a literal of float32; got 'x' at line 2, column 23"},
      {"graph f() {\n  %1 = constant {bits=300} : uint8[]\n}", "expected a literal of uint8; got '300'"},
      {"graph f() {\n  %1 = constant {bits=1.0001} : float16[]\n}", "expected a literal of float16; got '1.0001'"},
      {"graph f(%0: float32[2]) {\n  %1 = reshape %0 {size=2} : float32[2]\n}", "expected 'shape'; got 'size' at line 2, column 20"},
      {"graph f(%0: float32[2]) {\n  %1 = exp %0 {", "the attributes have no closing '}'"},
      {"graph \"f", "the string has no closing quote"},
      {"graph f() { return } x", "expected the end after the graph; got 'x'"},
      {"graph f() { return %99999999999 }", "expected a value such as %0"},
  };
  for (const auto& [text, message] : cases) {
    try {
      parse(text);
      ADD_FAILURE() << "parsed: " << text;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << text << "\n" << e.what();
    }
  }
}

TEST(GraphVerify, RejectsEachBrokenRule) {
  const std::pair<const char*, const char*> cases[] = {
      // the statement %2 over %0: float32[2,3], %1: int32[3], and the rule
      {"exp %0, %0 : float32[2,3]", "the number of operands is wrong"},
      {"exp %0 : float32[3,2]", "the shape is not that of the operation"},
      {"exp %0 : float64[2,3]", "the dtype is not that of the operation"},
      {"exp %1 : float32[3]", "an operand has not the compute dtype"},
      {"add %0, %1 : float32[2,3]", "operands of different shapes"},
      {"bitwise_and %0, %0 : float32[2,3]", "bitwise_and"},
      {"where %0, %0, %0 : float32[2,3]", "an operand has not the compute dtype"},
      {"reshape %0 {shape=5} : float32[5]", "the number of elements changes"},
      {"reshape %0 {shape=6} : float32[3,2]", "the number of attributes is wrong"},
      {"transpose %0 {axes=0,0} : float32[2,2]", "the axes are not a permutation"},
      {"broadcast_to %1 {shape=2,4} : int32[2,4]", "an axis of the operand is neither 1 nor that of the shape"},
      {"slice %1 {start=1 size=3 step=1} : int32[3]", "beyond the operand"},
      {"slice %1 {start=0 size=2 step=-1} : int32[2]", "beyond the operand"},
      {"as_strided %1 {shape=2,2 strides=1,2 offset=0} : int32[2,2]", "beyond the operand"},
      {"concatenate %1, %1 {axis=1} : int32[6]", "no such axis"},
      {"concatenate %0, %1 {axis=0} : float32[6]", "operands with different numbers of axes"},
      {"pad %1, %1 {low=1 high=1} : int32[5]", "the value is neither 0-d nor of the result's shape"},
      {"take %0, %0 {axis=0} : float32[2,3,3]", "indices are not integers"},
      {"sum %0 {dtype=float32 axes=1,0} : float32[]", "axes are not ascending"},
      {"sum %0 {dtype=float32 axes=2} : float32[2,3]", "axes are not ascending, or not the operand's"},
      {"max %0 {dtype=float64 axes=0} : float64[3]", "the dtype is not the operand's"},
      {"argmax %0 {dtype=float32 axes=0} : float32[3]", "the dtype is not an integer"},
      {"matmul %0, %0 : float32[2,3]", "inner dimensions differ"},
      {"matmul %1, %1 : int32[3]", "two at least"},
      {"constant {bits=1,2} : float32[3]", "the elements do not fill the shape"},
      {"arange %0, %0 {axis=0} : float32[3]", "operands are not 0-d"},
      {"random_bits %1 {width=4} : uint32[3]", "a key is not two words"},
      {"scatter_add %1, %1, %0 {axis=0} : int32[3]", "indices and updates of different shapes"},
      {"scatter_add %0, %1, %1 {axis=0} : float32[2,3]", "another number of axes"},
      {"scatter_add %0, %0, %0 {axis=0} : float32[2,3]", "indices are not integers"},
      {"input {slot=5} : float32[3]", "the slots of inputs are not 0, 1, ..."},
      {"blocks %0 {grid=1 sums=0 windows=1,3,1,0,3,0} : bool[0] graph b(%0: float32[3]) { return %0 }", "the number of windows is wrong"},
      {"blocks %0 {grid=1 sums=0 windows=1,3,0,0,3,0,3} : bool[0] graph b(%0: float32[3]) { return %0 }", "there is no block"},
      {"blocks %0 {grid=2 sums=0 windows=1,3,1,0,3,0,3} : bool[0] graph b(%0: float32[3]) { return %0 }", "no axis for windows"},
      {"blocks %0 {grid=1 sums=0 windows=1,3,1,1,3,0,3} : bool[0] graph b(%0: float32[3]) { return %0 }", "not within its array"},
      {"blocks %0 {grid=1 sums=0 windows=0,2,1,0,2,0,2} : bool[0] graph b(%0: float32[2]) { return %0 }", "neither cut into parts nor"},
      {"blocks %0 {grid=1 sums=0 windows=0,4,1,0,3,0,3} : bool[0] graph b(%0: float32[3]) { return %0 }", "do not cover it"},
      {"blocks %1 {grid=0 sums=1 windows=0,3,1,0,3,0,3} : bool[0] graph b(%0: int32[3]) { return %0 }", "a dtype that is not added up"},
      {"blocks %0 {grid=1 sums=0 windows=0,3,1,0,3,0,3} : bool[0] graph b(%0: int32[3]) { return %0 }", "an input of another type"},
  };
  for (const auto& [statement, rule] : cases) {
    const std::string text = std::string("graph g(%0: float32[2,3], %1: int32[3]) {\n  %2 = ") + statement + "\n  return %2\n}";
    try {
      verify(parse(text));
      ADD_FAILURE() << "accepted: " << statement;
    } catch (const InternalError& e) {
      EXPECT_NE(std::string(e.what()).find(rule), std::string::npos) << statement << "\n" << e.what();
      EXPECT_NE(std::string(e.what()).find("%2"), std::string::npos) << e.what();
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(rule), std::string::npos) << statement << "\n" << e.what();
    }
  }
}

TEST(Passes, KeepEveryBitOfRandomGraphs) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const Graph g = RandomGraph(seed).make(30 + static_cast<int>(seed % 40));
    const std::vector<Tensor> inputs = sample_inputs(g, seed);
    const std::vector<Tensor> before = interpret(g, inputs);
    Graph after = g;
    for (const passes::Pass& p : passes::pipeline()) {
      passes::Context context;
      after = passes::run({&p, 1}, after, context);
      verify(after);
      ASSERT_EQ(difference(before, interpret(after, inputs)), "") << "seed " << seed << ", pass " << p.name << "\n"
                                                                  << print(g) << print(after);
    }
  }
}

TEST(Passes, RunnerSkipsAndStops) {
  const Graph g =
      parse("graph g(%0: float32[4]) {\n %1 = constant {bits=1} : float32[]\n %2 = multiply %0, %1 : float32[4]\n return %2\n}");
  auto passes_run = [&](const char* skip, const char* stop) {
    passes::Context context;
    context.knobs.skip = skip;
    context.knobs.stop_after = stop;
    context.knobs.verify = 2;
    passes::run_pipeline(g, context);
    std::string names;
    for (const auto& r : context.runs) names += std::string(r.pass) + " ";
    return names;
  };
  EXPECT_EQ(passes_run("", ""), "fold simplify by_blocks sink_views clean sink_reads drop_dead ");
  EXPECT_EQ(passes_run("simplify,clean", ""), "fold by_blocks sink_views sink_reads drop_dead ");
  EXPECT_EQ(passes_run("", "simplify"), "fold simplify ");
  EXPECT_EQ(passes_run("all", ""), "");
}

TEST(Passes, DumpsWhatChanged) {
  const Graph g = parse("graph \"a b\"(%0: float32[4]) {\n %1 = negative %0 : float32[4]\n %2 = negative %1 : float32[4]\n return %2\n}");
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / ("sinter_dump_" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  passes::Context context;
  context.knobs.dump = "all";
  context.knobs.dump_dir = folder.string();
  passes::run_pipeline(g, context);
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path().filename().string());
  std::sort(files.begin(), files.end());
  // The simplify pass changed it, and sink_views dropped what it left behind.
  EXPECT_EQ(files, (std::vector<std::string>{"a_b.00-captured.txt", "a_b.02-simplify.txt", "a_b.04-sink_views.txt"}));
  std::filesystem::remove_all(folder);
}

// Nothing recurses over a graph: a chain of 100,000 nodes passes through everything on a stack of 256 KiB.
TEST(Passes, LongChainsOnASmallStack) {
  auto body = [](void*) -> void* {
    Graph g;
    Id x = g.add({Op::Input, {}, {0}, {Dtype::float32, {2, 3}}});
    for (int i = 0; i < 100000; ++i) {
      if (i % 10 == 9)
        x = transpose(g, x, {1, 0});
      else
        x = elementwise(g, i % 2 ? Op::Sin : Op::Negative, {x});
    }
    g.set_outputs({x});
    verify(g);
    EXPECT_TRUE(parse(print(g)) == g);
    passes::Context context;
    const Graph after = passes::run_pipeline(g, context);
    verify(after);
    const std::vector<Tensor> inputs = sample_inputs(g, 1);
    EXPECT_EQ(difference(interpret(g, inputs), interpret(after, inputs)), "");
    return nullptr;
  };
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
}

// A guard against work that is not linear; a pass takes 1 to 5 ms here.
TEST(Passes, TenThousandNodesTakeMilliseconds) {
  Graph g;
  Id x = g.add({Op::Input, {}, {0}, {Dtype::float32, {64, 64}}});
  const Id y = g.add({Op::Input, {}, {1}, {Dtype::float32, {64, 64}}});
  for (int i = 0; i < 10000; ++i) {
    if (i % 5 == 4)
      x = transpose(g, x, {1, 0});
    else
      x = i % 2 ? elementwise(g, Op::Sin, {x}) : elementwise(g, Op::Add, {x, y});
  }
  g.set_outputs({x});
  std::map<std::string_view, double> least;  // of several runs: others share the machine
  for (int run = 0; run < 5; ++run) {
    passes::Context context;
    passes::run_pipeline(g, context);
    for (const auto& r : context.runs) least[r.pass] = run == 0 ? r.ms : std::min(least[r.pass], r.ms);
  }
  for (const auto& [pass, ms] : least) EXPECT_LT(ms, 50) << pass;
}

}  // namespace
}  // namespace sinter::graph
