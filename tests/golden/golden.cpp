#include "golden/golden.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/text.h"
#include "graph/interpret.h"
#include "kernel/kernel.h"
#include "passes/pass.h"
#include "transforms/transforms.h"

namespace sinter::golden {
namespace {

std::string trim(const std::string& s) {
  const std::size_t a = s.find_first_not_of(" \t\n"), b = s.find_last_not_of(" \t\n");
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> parts;
  std::istringstream in(s);
  for (std::string part; std::getline(in, part, at);) {
    if (!trim(part).empty()) parts.push_back(trim(part));
  }
  return parts;
}

bool has(const std::vector<std::string>& list, const char* item) { return std::find(list.begin(), list.end(), item) != list.end(); }

graph::Graph parse_graph(const std::string& text) {
  graph::Graph g = graph::parse(text);
  graph::verify(g);
  const graph::Graph again = graph::parse(graph::print(g));
  check(again == g && again.name == g.name, "parse(print(graph)) is another graph");
  return g;
}

// The graph with each value right before its first reader, operands from left to right: a transform writes nodes in an order that
// depends on the compiler, where it writes several within one expression.
graph::Graph in_reading_order(const graph::Graph& g) {
  graph::Graph ordered;
  ordered.name = g.name;
  std::vector<graph::Id> copies(g.size(), graph::kKeep), stack;
  for (graph::Id id = g.size(); id-- > 0;) {
    if (g[id].op == ops::Op::Input) stack.push_back(id);
  }
  stack.insert(stack.begin(), g.outputs().rbegin(), g.outputs().rend());
  while (!stack.empty()) {
    const graph::Id id = stack.back();
    graph::Node node = g[id];
    const auto missing = std::find_if(node.in.begin(), node.in.end(), [&](graph::Id in) { return copies[in] == graph::kKeep; });
    if (missing != node.in.end() && copies[id] == graph::kKeep) {
      stack.push_back(*missing);
      continue;
    }
    stack.pop_back();
    if (copies[id] != graph::kKeep) continue;
    for (graph::Id& in : node.in) in = copies[in];
    copies[id] = ordered.add(std::move(node));
  }
  std::vector<graph::Id> outputs;
  for (graph::Id id : g.outputs()) outputs.push_back(copies[id]);
  ordered.set_outputs(std::move(outputs));
  return ordered;
}

// The step's transform, with respect to all floating inputs, or of 3 examples along the first axis of every input; none: not a transform.
std::optional<graph::Graph> transformed(const std::string& step, const graph::Graph& g) {
  if (step != "vjp" && step != "jvp" && step != "vmap") return std::nullopt;
  std::vector<std::int64_t> slots;
  std::size_t inputs = 0;
  for (graph::Id id = 0; id < g.size(); ++id) {
    if (g[id].op != ops::Op::Input) continue;
    ++inputs;
    if (is_floating(g[id].type.dtype) || is_complex(g[id].type.dtype)) slots.push_back(g[id].attrs[0]);
  }
  std::sort(slots.begin(), slots.end());
  if (step == "vjp") return in_reading_order(transforms::vjp(g, slots));
  if (step == "jvp") return in_reading_order(transforms::jvp(g, slots));
  return in_reading_order(transforms::vmap(g, 3, std::vector<std::int64_t>(inputs, 0), std::vector<std::int64_t>(g.outputs().size(), 0)));
}

// One line a value: `float32(2,3): 1, 2, ...`.
std::string print_values(const std::vector<graph::Tensor>& values) {
  std::string text;
  for (const graph::Tensor& t : values) {
    text += str(t.dtype, t.shape, ":");
    const char* before = " ";
    for (std::uint64_t word : graph::to_words(t)) {
      text += before;
      text::append_literal(text, t.dtype, word);
      before = ", ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace

std::vector<Case> read_cases(const std::string& text) {
  std::vector<Case> cases;
  std::string comment;
  std::string* part = nullptr;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(";; run:", 0) == 0) {
      Case& c = cases.emplace_back();
      c.comment = std::exchange(comment, "");
      c.run_line = line;
      const std::vector<std::string> fields = split(line.substr(7), '|');
      if (!fields.empty()) c.steps = split(fields[0], ',');
      c.options.assign(fields.begin() + (fields.empty() ? 0 : 1), fields.end());
      part = &c.input;
    } else if (line.rfind(";; expect", 0) == 0 && !cases.empty()) {
      cases.back().has_expected = true;
      part = &cases.back().expected;
    } else if (line.rfind(";;", 0) == 0 || part == nullptr) {
      if (!trim(line).empty()) comment += line + "\n";
    } else {
      *part += line + "\n";
    }
  }
  for (Case& c : cases) {
    c.input = trim(c.input) + "\n";
    c.expected = trim(c.expected) + "\n";
  }
  return cases;
}

std::string write_cases(const std::vector<Case>& cases) {
  std::string text;
  for (const Case& c : cases) text += (text.empty() ? "" : "\n") + c.comment + c.run_line + "\n" + c.input + ";; expect\n" + c.expected;
  return text;
}

std::string run_case(const Case& c) {
  if (has(c.steps, "kernel")) {
    const kernel::Kernel k = kernel::parse(c.input);
    kernel::verify(k);
    const kernel::Kernel again = kernel::parse(kernel::print(k));
    check(again.body == k.body && again.buffers == k.buffers && again.integers == k.integers && again.scalars == k.scalars,
          "parse(print(kernel)) is another kernel");
    return kernel::print(k);
  }
  const graph::Graph before = parse_graph(c.input);
  graph::Graph g = before;
  passes::Context context;
  context.fast_math = has(c.options, "fast");
  context.knobs.verify = 1;
  for (const std::string& step : c.steps) {
    if (step == "graph" || step == "interpret") continue;
    if (std::optional<graph::Graph> t = transformed(step, g)) {
      g = std::move(*t);
      graph::verify(g);
      continue;
    }
    const passes::Pass* one = step == "pipeline" ? nullptr : &passes::find_pass(step);
    g = passes::run(one ? std::span(one, 1) : passes::pipeline(), g, context);
  }
  if (has(c.options, "outcome=same")) {
    const std::vector<graph::Tensor> inputs = graph::sample_inputs(before, 7);
    const std::string difference = graph::difference(graph::interpret(before, inputs), graph::interpret(g, inputs));
    check(difference.empty(), ("the outcome differs: " + difference).c_str());
  }
  if (has(c.steps, "interpret")) return print_values(graph::interpret(g, graph::sample_inputs(g, 7)));
  g = passes::drop_dead(g, context);
  return graph::print(parse_graph(graph::print(g)));
}

std::string diff(const std::string& expected, const std::string& got) {
  const std::vector<std::string> a = split(expected, '\n'), b = split(got, '\n');
  // Longest common subsequence, from the ends.
  std::vector<std::vector<int>> common(a.size() + 1, std::vector<int>(b.size() + 1, 0));
  for (std::size_t i = a.size(); i-- > 0;) {
    for (std::size_t k = b.size(); k-- > 0;)
      common[i][k] = a[i] == b[k] ? common[i + 1][k + 1] + 1 : std::max(common[i + 1][k], common[i][k + 1]);
  }
  std::string text;
  std::size_t i = 0, k = 0;
  while (i < a.size() || k < b.size()) {
    if (i < a.size() && k < b.size() && a[i] == b[k]) {
      text += "    " + a[i++] + "\n";
      ++k;
    } else if (i < a.size() && (k == b.size() || common[i + 1][k] >= common[i][k + 1])) {
      text += "  - " + a[i++] + "\n";
    } else {
      text += "  + " + b[k++] + "\n";
    }
  }
  return text;
}

}  // namespace sinter::golden
