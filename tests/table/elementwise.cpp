// Every elementwise operation of the table x every dtype it takes x layouts x lengths: the public function, compiled together with a
// neighbour, interpreted, at other code-generation levels, through compile(), and the reference. All equal bit for bit.
#include "graph/build.h"
#include "table/table.h"

namespace sinter::tests {
namespace {

// Operations of one number of operands on one dtype. Each result is an output, and so is that of a neighbour fused with it.
struct Batch {
  Dtype dtype;
  int operands;
  std::vector<Op> ops;
};

Dtype neighbour_dtype(Op op, Dtype t) { return static_cast<Dtype>((static_cast<int>(op) + static_cast<int>(t)) % kDtypeCount); }
// Negative on numbers, every other time a cast.
bool negates(Op op, Dtype result) { return result != Dtype::bool_ && static_cast<int>(op) % 2 == 0; }

bool is_where(const Batch& b) { return ops::info(b.ops[0]).rule == ops::Rule::Where; }

std::vector<Batch> batches(std::size_t size) {
  std::vector<Batch> result;
  for (int operands = 1; operands <= 3; ++operands)
    for (int d = 0; d < kDtypeCount; ++d) {
      Dtype t = static_cast<Dtype>(d);
      Batch b{t, operands, {}};
      for (Op op : elementwise_ops(operands, t)) {
        const bool where = ops::info(op).rule == ops::Rule::Where;
        if (where)
          result.push_back({t, operands, {op}});
        else
          b.ops.push_back(op);
        if (b.ops.size() == size) {
          result.push_back(b);
          b.ops.clear();
        }
      }
      if (!b.ops.empty()) result.push_back(b);
    }
  return result;
}

// Where all operations have one domain their operands come from it, with special values; the domains' union otherwise.
std::vector<Input> inputs_of(const Batch& b, Form f, int length, std::uint32_t seed) {
  double low = 1e9, high = -1e9;
  for (Op op : b.ops) {
    low = std::min(low, ops::info(op).low);
    high = std::max(high, ops::info(op).high);
  }
  std::vector<Input> in;
  for (int i = 0; i < b.operands; ++i) in.push_back(operand(f, length, i, operand_dtype(b.ops[0], i, b.dtype), seed, low, high));
  return in;
}

Graph graph_of(const Batch& b, std::span<const Input> in) {
  Graph g;
  std::vector<graph::Id> inputs, outputs;
  for (std::size_t i = 0; i < in.size(); ++i)
    inputs.push_back(g.add({Op::Input, {}, {static_cast<std::int64_t>(i)}, {in[i].tensor.dtype, in[i].tensor.shape}}));
  for (Op op : b.ops) {
    std::vector<Dtype> dtypes;
    for (const Input& i : in) dtypes.push_back(i.tensor.dtype);
    const ops::ElementwiseType t = ops::elementwise_type(op, dtypes);
    std::vector<graph::Id> operands = inputs;
    for (std::size_t i = is_where(b) ? 1 : 0; i < operands.size(); ++i) operands[i] = graph::cast(g, operands[i], t.compute);
    const graph::Id result = graph::elementwise(g, op, operands);
    outputs.push_back(result);
    outputs.push_back(negates(op, t.result) ? graph::elementwise(g, Op::Negative, {result})
                                            : graph::cast(g, result, neighbour_dtype(op, b.dtype)));
  }
  g.set_outputs(outputs);
  return g;
}

std::vector<Array> call_all(const Batch& b, const std::vector<Array>& in) {
  std::vector<Array> out;
  for (Op op : b.ops) {
    out.push_back(call(op, in));
    out.push_back(negates(op, out.back().dtype()) ? -out.back() : astype(out.back(), neighbour_dtype(op, b.dtype)));
  }
  return out;
}

std::vector<Array> arrays_of(std::span<const Input> in) {
  std::vector<Array> arrays;
  for (const Input& i : in) arrays.push_back(i.array);
  return arrays;
}

std::string check(const Batch& b, Form f, int length, std::uint32_t seed, const Ways& ways) {
  std::vector<Input> in = inputs_of(b, f, length, seed);
  std::string d = disagreement(graph_of(b, in), in, ways, read(call_all(b, arrays_of(in))));
  if (d.empty()) return d;
  std::string names;
  for (Op op : b.ops) names += str(" ", ops::info(op).name);
  return str(b.dtype, " ", name(f), " length ", length, " of", names, ": ", d);
}

TEST(Table, ElementwiseInEveryLayout) {
  std::vector<std::function<std::string()>> jobs;
  std::uint32_t seed = 0;
  for (const Batch& b : batches(6)) {
    ++seed;
    for (Form f : kForms) {
      // Each batch in contiguous memory and one other layout: so each layout meets each operation in some dtypes, each dtype in some
      // operations.
      const bool always = f == Form::contiguous || !has_length(f);
      if (!always && !test_all() && (seed + static_cast<std::uint32_t>(f)) % 5 > 0) continue;
      jobs.push_back([b, f, seed]() -> std::string {
        for (int length : {33, 16, 7, 1}) {
          if (!has_length(f) && length != 33) continue;
          if (std::string d = check(b, f, length, seed, {.levels = f == Form::contiguous && length == 33 && (test_all() || seed % 4 == 0)});
              !d.empty())
            return d;
        }
        return "";
      });
    }
  }
  run_jobs(std::move(jobs));
}

TEST(Table, EveryLengthForOneOperationOfEachArity) {
  std::vector<std::function<std::string()>> jobs;
  for (int d = 0; d < kDtypeCount; ++d)
    for (int operands = 1; operands <= 3; ++operands) {
      const Op op = operands == 1 ? Op::Square : operands == 2 ? Op::Add : Op::Where;
      for (Form f : {Form::contiguous, Form::stepped})
        jobs.push_back([=]() -> std::string {
          for (int length = 1; length <= 33; ++length)
            if (std::string e = check({static_cast<Dtype>(d), operands, {op}}, f, length, static_cast<std::uint32_t>(length), {});
                !e.empty())
              return e;
          return "";
        });
    }
  run_jobs(std::move(jobs));
}

// compile() of a function that calls them all.
TEST(Table, ElementwiseThroughCompile) {
  std::vector<std::function<std::string()>> jobs;
  for (const Batch& b : batches(6)) {
    jobs.push_back([b]() -> std::string {
      auto compiled = compile([b](const std::vector<Array>& in) { return call_all(b, in); });
      for (Form f : {Form::contiguous, Form::empty}) {
        std::vector<Array> in = arrays_of(inputs_of(b, f, 17, 99));
        std::vector<Tensor> regular = read(call_all(b, in));
        for (int n = 0; n < 2; ++n)
          if (std::string d = graph::difference(read(compiled(in)), regular); !d.empty())
            return str("compile(), ", b.dtype, " ", ops::info(b.ops[0]).name, " and others: ", d);
      }
      return compiled.stats().traces == 2 ? "" : str(compiled.stats().traces, " traces, not 2");
    });
  }
  run_jobs(std::move(jobs));
}

}  // namespace
}  // namespace sinter::tests
