// Casts between all pairs of dtypes, views, joins and gathers on every dtype, in every layout of their operand; fused with a neighbour.
#include "graph/build.h"
#include "table/table.h"

namespace sinter::tests {
namespace {

// A whole graph with T for the dtype. Operand %0 is placed in each layout; index operands hold integers from -9 to 9, out of range too.
const char* const kViews[] = {
    R"(graph g(%0: T[6,10], %1: int32[4,3], %2: T[6,10]) {
      %3 = transpose %0 {axes=1,0} : T[10,6]
      %4 = reshape %3 {shape=4,15} : T[4,15]
      %5 = slice %0 {start=1,8 size=3,4 step=2,-2} : T[3,4]
      %6 = add %5, %5 : T[3,4]
      %7 = broadcast_to %5 {shape=2,3,4} : T[2,3,4]
      %8 = add %2, %0 : T[6,10]
      %9 = transpose %8 {axes=1,0} : T[10,6]
      %10 = reshape %9 {shape=12,5} : T[12,5]
      return %3, %4, %5, %6, %7, %8, %9, %10
    })",
    R"(graph g(%0: T[6,10], %1: int32[4,3], %2: T[6,10]) {
      %3 = as_strided %0 {shape=3,4 strides=7,2 offset=5} : T[3,4]
      %4 = as_strided %0 {shape=5,3 strides=1,1 offset=0} : T[5,3]
      %5 = add %4, %4 : T[5,3]
      %6 = concatenate %0, %2, %0 {axis=0} : T[18,10]
      %7 = slice %0 {start=5,0 size=6,3 step=-1,1} : T[6,3]
      %8 = concatenate %7, %2 {axis=1} : T[6,13]
      %9 = slice %2 {start=2,2 size=1,1 step=1,1} : T[1,1]
      %10 = reshape %9 {shape=} : T[]
      %11 = pad %0, %10 {low=1,0 high=0,3} : T[7,13]
      %12 = add %11, %11 : T[7,13]
      %13 = pad %7, %10 {low=0,2 high=2,0} : T[8,5]
      return %3, %4, %5, %6, %8, %11, %12, %13
    })",
    R"(graph g(%0: T[6,10], %1: int32[4,3], %2: T[6,10]) {
      %3 = take %0, %1 {axis=0} : T[4,3,10]
      %4 = take %0, %1 {axis=1} : T[6,4,3]
      %5 = add %4, %4 : T[6,4,3]
      %6 = add %0, %2 : T[6,10]
      %7 = take %6, %1 {axis=1} : T[6,4,3]
      %8 = slice %0 {start=0,0 size=4,10 step=1,1} : T[4,10]
      %9 = take_along_axis %8, %1 {axis=1} : T[4,3]
      %10 = slice %0 {start=0,9 size=6,3 step=1,-3} : T[6,3]
      %11 = take_along_axis %10, %1 {axis=0} : T[4,3]
      %12 = add %11, %9 : T[4,3]
      return %3, %4, %5, %7, %9, %11, %12
    })",
};
std::string with_dtype(std::string text, Dtype t) {
  for (std::size_t at; (at = text.find("T[")) != std::string::npos;) text.replace(at, 1, name(t));
  return text;
}

graph::Strides strides_of(const Shape& shape, int layout) {
  switch (layout) {
    case 1: return {1, shape[0]};
    case 2: return {2 * shape[1], 2};
    case 3: return {-shape[1], -1};
    case 4: return {0, 1};
    case 5: return {1, 0};
    default: return graph::row_major(shape);
  }
}

std::string check_views(const char* text, Dtype t, int layout, bool levels) {
  const Graph g = graph::parse(with_dtype(text, t));
  graph::verify(g);
  const std::uint32_t seed = static_cast<std::uint32_t>(layout) * 20 + static_cast<std::uint32_t>(t);
  const std::vector<Input> in{operand(t, {6, 10}, strides_of({6, 10}, layout), seed, -3, 3, true),
                              operand(Dtype::int32, {4, 3}, strides_of({4, 3}, layout), seed, -9, 9, false),
                              operand(t, {6, 10}, {10, 1}, seed + 1, -3, 3, true)};
  std::string d = disagreement(g, in, {.unfused = true, .levels = levels});
  return d.empty() ? d : str("views of ", t, " layout ", layout, ": ", d, "\n", graph::print(g));
}

TEST(Table, ViewsJoinsAndGathersInEveryLayout) {
  std::vector<std::function<std::string()>> jobs;
  for (const char* text : kViews)
    for (int d = 0; d < kDtypeCount; ++d)
      for (int layout = 0; layout < 6; ++layout) {
        if (!test_all() && layout != 0 && (layout + d) % 3 != 0) continue;
        jobs.push_back([=] { return check_views(text, static_cast<Dtype>(d), layout, layout == d % 6); });
      }
  run_jobs(std::move(jobs));
}

TEST(Table, IndicesOfEveryDtype) {
  for (int d = 0; d < kDtypeCount; ++d) {
    const Dtype t = static_cast<Dtype>(d);
    if (!is_integer(t)) continue;
    for (int layout = 0; layout < 4; ++layout) {
      const Input x = operand(Dtype::float32, {6, 4}, {4, 1}, 1, -3, 3, false);
      const Input index = operand(t, {6, 2}, strides_of({6, 2}, layout), 2, is_signed(t) ? -20 : 0, 20, true);
      std::vector<float> values = x.array.to_vector<float>(), expected;
      std::vector<std::uint64_t> words = graph::to_words(index.tensor);
      const auto place = [&](std::uint64_t w, std::int64_t n) {  // negative: from the end; then clamped
        std::int64_t i = static_cast<std::int64_t>(w << (64 - 8 * size_of(t))) >> (64 - 8 * size_of(t));
        if (!is_signed(t)) return static_cast<std::int64_t>(std::min(w, static_cast<std::uint64_t>(n - 1)));
        return std::clamp<std::int64_t>(i < 0 ? i + n : i, 0, n - 1);
      };
      for (std::size_t i = 0; i < words.size(); ++i) expected.push_back(values[i / 2 * 4 + static_cast<std::size_t>(place(words[i], 4))]);
      EXPECT_EQ(take_along_axis(x.array, index.array, 1).to_vector<float>(), expected) << t << " layout " << layout;
      auto f = compile([](const Array& a, const Array& i) { return take_along_axis(a * 1, i, 1); });
      EXPECT_EQ(f(x.array, index.array).to_vector<float>(), expected) << t << " layout " << layout;
      expected.clear();
      for (std::uint64_t w : words)
        for (std::int64_t k = 0; k < 4; ++k) expected.push_back(values[static_cast<std::size_t>(place(w, 6) * 4 + k)]);
      EXPECT_EQ(take(x.array, index.array, 0).to_vector<float>(), expected) << t << " layout " << layout;
    }
  }
}

// Each source dtype to all others in one graph; and there and back, so that no cast vanishes.
TEST(Table, CastsBetweenAllPairs) {
  std::vector<std::function<std::string()>> jobs;
  for (int d = 0; d < kDtypeCount; ++d)
    for (Form f : kForms) {
      if (!test_all() && f != Form::contiguous && has_length(f) && (static_cast<int>(f) + d) % 3 != 0) continue;
      jobs.push_back([=]() -> std::string {
        for (int length : {33, 16, 7, 1}) {
          if (!has_length(f) && length != 33) continue;
          const Dtype t = static_cast<Dtype>(d);
          const std::vector<Input> in{operand(f, length, 0, t, static_cast<std::uint32_t>(d), -300, 300)};
          Graph g;
          const graph::Id x = g.add({Op::Input, {}, {0}, {t, in[0].tensor.shape}});
          std::vector<graph::Id> outputs;
          for (int to = 0; to < kDtypeCount; ++to) {
            outputs.push_back(graph::cast(g, x, static_cast<Dtype>(to)));
            outputs.push_back(graph::cast(g, outputs.back(), t));
          }
          g.set_outputs(outputs);
          if (std::string e = disagreement(g, in, {.levels = f == Form::contiguous && length == 33}); !e.empty())
            return str("casts of ", t, " ", name(f), " length ", length, ": ", e);
        }
        return "";
      });
    }
  run_jobs(std::move(jobs));
}

}  // namespace
}  // namespace sinter::tests
