// Operations that hold functions of the user's: tracing them, and making the node (graph/bodies.h). Layer: engine.
#include "sinter/detail/bodies.h"

#include <algorithm>

#include "base/check.h"
#include "base/symbols.h"
#include "engine/blocks.h"
#include "engine/debug_print.h"
#include "engine/generator.h"
#include "engine/tape.h"
#include "engine/trace.h"
#include "engine/tracing.h"
#include "engine/value.h"
#include "graph/bodies.h"
#include "graph/build.h"
#include "sinter/functions.h"
#include "sinter/transforms.h"

namespace sinter::detail {

using graph::Id;
using graph::Type;
using ops::Op;

namespace {

Type type_of(const Array& a) { return {a.dtype(), a.shape()}; }
Array like(const Type& t) { return engine::constant(t.dtype, 0, t.shape); }
std::string describe(const Type& t) { return engine::describe(like(t)); }

// The arrays that bodies of one node use besides their arguments, each once.
class Constants {
 public:
  void add(const Recording& r) {
    for (std::size_t i = r.variables; i < r.bindings.size(); ++i)
      if (find(r.bindings[i]) == all.size()) all.push_back(r.bindings[i]);
  }
  // The graph with inputs for all of them, before or after those of the arguments.
  graph::Body body(const Recording& r, bool first) const {
    graph::Graph g;
    g.name = r.what;
    std::vector<Id> inputs(r.bindings.size()), constants;
    std::int64_t slots = 0;
    auto input = [&](const Type& t) { return g.add({Op::Input, {}, {slots++}, t}); };
    auto add_constants = [&] {
      for (const Array& a : all) constants.push_back(input(type_of(a)));
    };
    if (first) add_constants();
    for (std::size_t i = 0; i < r.variables; ++i) inputs[i] = input(r.graph[static_cast<Id>(i)].type);
    if (!first) add_constants();
    for (std::size_t i = r.variables; i < r.bindings.size(); ++i) inputs[i] = constants[find(r.bindings[i])];
    g.set_outputs(graph::inline_body(g, r.graph, inputs));
    return graph::rewrite(g, [](graph::Graph&, const graph::Node&) { return graph::kKeep; });
  }
  std::vector<Array> all;

 private:
  std::size_t find(const Array& a) const {
    auto it = std::find_if(all.begin(), all.end(), [&](const Array& b) { return a.get() == b.get(); });
    return static_cast<std::size_t>(it - all.begin());
  }
};

std::vector<Type> output_types(const Recording& r) { return graph::output_types(r.graph); }

void append(Leaves& to, std::span<const Array> more) { to.insert(to.end(), more.begin(), more.end()); }

bool any_prints(std::span<const graph::Body> bodies) {
  return std::any_of(bodies.begin(), bodies.end(), [](const graph::Body& b) { return graph::prints(*b); });
}
Array make_node(Op op, Leaves operands, ops::Attrs attrs, std::vector<graph::Body> bodies) {
  if (ops::info(op).kind == ops::OpKind::Region && any_prints(bodies)) operands[0] = engine::after_prints(operands[0]);
  return engine::make(op, std::move(operands), std::move(attrs), Dtype::bool_, Shape{0}, std::move(bodies));
}
Array get(const Array& node, std::size_t i, const Type& t) {
  return engine::make(Op::Get, {node}, {static_cast<std::int64_t>(i)}, t.dtype, t.shape);
}
Leaves results_of(const Array& node, std::span<const Type> types) {
  Leaves results;
  for (std::size_t i = 0; i < types.size(); ++i) results.push_back(get(node, i, types[i]));
  return results;
}

// To be called with the results of a branch or a loop, when all are made.
Leaves noted(Leaves results, std::span<const graph::Body> bodies) {
  if (any_prints(bodies)) engine::note_printed(results[0]);
  return results;
}

// Of two types that differ.
[[noreturn]] void throw_differ(const Type& a, const Type& b, const std::string& text) {
  if (a.shape == b.shape) throw DtypeError(text);
  throw ShapeError(text);
}

// Carries after a step must be what they were.
void check_carries(const char* what, std::span<const Array> init, std::span<const Type> after, bool exact) {
  if (exact ? after.size() != init.size() : after.size() < init.size())
    throw Error(str(what, ": the body gives another number of arrays than its state has; got ", after.size(), " for ", init.size(),
                    "; give back the whole state"));
  for (std::size_t i = 0; i < init.size(); ++i)
    if (!(type_of(init[i]) == after[i]))
      throw_differ(type_of(init[i]), after[i],
                   str(what, ": array ", i, " of the state changes its shape or dtype in a step; got ", engine::describe(init[i]),
                       " before and ", describe(after[i]), " after it; keep both, for example with astype on the first"));
}

}  // namespace

TracedBody trace_body(const char* what, std::span<const Array> arguments, LeafFunction f, bool loop) {
  const Array generator = engine::generator_state();
  Tape tape(what);
  const std::vector<Array> in = tape.placeholders(arguments);
  Leaves out = f(in);
  if (loop && engine::generator_state().get() != generator.get()) {
    engine::generator_state() = generator;
    throw TraceError(str(what,
                         ": a random number drawn in a loop would be the same in every step; got a draw from the thread's generator; "
                         "keep a key in the state, and split it in each step"));
  }
  if (Array& printed = engine::innermost_tape()->printed; printed.valid()) {
    if (out.empty())
      throw TraceError(
          str("debug_print: the body of ", what, " gives no array, and so is not run; got a line to show; give back an array"));
    out[0] = engine::after_prints(out[0]);
    printed = Array();
  }
  return tape.record(out, !loop);
}

// ---- branches and loops -----------------------------------------------------------------------------------------------------------------

Leaves call_cond(const Array& condition, std::span<const Array> arguments, const TracedBody& yes, const TracedBody& no) {
  const Value& c = engine::operand_of(condition, "cond");
  if (!c.shape.empty())
    throw ShapeError(str("cond: the condition is one value; got ", engine::describe(condition), "; use where to choose by element"));
  const std::vector<Type> types = output_types(*yes), others = output_types(*no);
  if (types.size() != others.size())
    throw Error(str("cond: the branches give other numbers of arrays; got ", types.size(), " and ", others.size(), "; give the same tree"));
  for (std::size_t i = 0; i < types.size(); ++i)
    if (!(types[i] == others[i]))
      throw_differ(types[i], others[i],
                   str("cond: the branches give different arrays; got ", describe(types[i]), " and ", describe(others[i]), " as array ", i,
                       "; give the same shape and dtype"));
  Constants constants;
  constants.add(*yes);
  constants.add(*no);
  Leaves operands{c.dtype == Dtype::bool_ ? condition : not_equal(condition, 0)};
  append(operands, arguments);
  append(operands, constants.all);
  const std::vector<graph::Body> bodies{constants.body(*yes, false), constants.body(*no, false)};
  return noted(results_of(make_node(Op::Cond, std::move(operands), {}, bodies), types), bodies);
}

Leaves call_while(const TracedBody& condition, const TracedBody& body, std::span<const Array> init, std::int64_t max_steps) {
  const std::vector<Type> test = output_types(*condition), types = output_types(*body);
  if (const Type one{Dtype::bool_, {}}; !(test[0] == one))
    throw_differ(test[0], one,
                 str("while_loop: the condition gives one bool; got ", describe(test[0]), "; compare, or reduce with any or all"));
  check_carries("while_loop", init, types, true);
  Constants constants;
  constants.add(*condition);
  constants.add(*body);
  const std::vector<graph::Body> bodies{constants.body(*condition, true), constants.body(*body, true)};
  const graph::Body &goes_on = bodies[0], &step = bodies[1];
  Leaves operands = constants.all;
  append(operands, init);
  const auto count = static_cast<std::int64_t>(constants.all.size());
  if (max_steps < 0) return noted(results_of(make_node(Op::While, std::move(operands), {count}, bodies), types), bodies);

  // A scan of so many steps; those after the end change nothing. If the condition shows values, it is not asked after the end: whether the
  // loop still runs is one more carry, the first.
  const bool once = graph::prints(*goes_on);
  graph::Graph g, same, never;
  g.name = same.name = never.name = "while_loop";
  std::vector<Id> in, kept;
  auto input = [](graph::Graph& to, std::size_t slot, const Type& t) {
    return to.add({Op::Input, {}, {static_cast<std::int64_t>(slot)}, t});
  };
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Type t = type_of(operands[i]);
    in.push_back(input(g, i + (once && i >= constants.all.size()), t));
    kept.push_back(input(same, i, t));
    input(never, i, t);
  }
  same.set_outputs({kept.begin() + count, kept.end()});
  never.set_outputs({graph::constant(never, Dtype::bool_, 0)});
  const Type composite{Dtype::bool_, Shape{0}};
  auto branch = [&](Id chosen, const graph::Body& yes, graph::Graph no) {
    std::vector<Id> arguments{chosen};
    arguments.insert(arguments.end(), in.begin(), in.end());
    return g.add({Op::Cond, std::move(arguments), {}, composite, {yes, graph::Body(std::move(no))}});
  };
  const Id runs = once ? graph::result(g, branch(input(g, constants.all.size(), {Dtype::bool_, {}}), goes_on, std::move(never)), 0)
                       : graph::inline_body(g, *goes_on, in)[0];
  const Id next = branch(runs, step, std::move(same));
  std::vector<Id> outputs;
  if (once) outputs.push_back(runs);
  for (std::size_t i = 0; i < types.size(); ++i) outputs.push_back(graph::result(g, next, i));
  if (once) operands.insert(operands.begin() + count, Array(true));
  const auto carries = static_cast<std::int64_t>(outputs.size());
  g.set_outputs(std::move(outputs));
  std::vector<Type> after = graph::output_types(g);
  Leaves last = results_of(make_node(Op::Scan, std::move(operands), {count, carries, max_steps, 0}, {std::move(g)}), after);
  if (once) last.erase(last.begin());
  return noted(std::move(last), bodies);
}

namespace {

// A scan over elements [begin, begin + length) of the sequences, after `carries`; the outputs go to the end of `outputs`.
struct ScanCall {
  const Recording& recording;
  const Constants& constants;
  const graph::Body body;
  bool reverse;
  Leaves carries;
  std::vector<Leaves> outputs = {};  // by output: pieces along axis 0

  // Steps in pieces of `every`, of which derivatives save the beginning.
  void run(std::span<const Array> sequences, const Dim& length, std::int64_t every) {
    if (every <= 1 || every >= length) return add(body, sequences, length, 1);
    const Dim pieces = length / every, rest = length % every;
    auto part = [&](const Dim& begin, const Dim& size) {
      Leaves some;
      for (const Array& a : sequences) {
        Shape start(std::vector<Dim>(a.shape().size(), 0)), stop = a.shape();
        start[0] = begin, stop[0] = begin + size;
        some.push_back(slice(a, start, stop));
      }
      return some;
    };
    const Dim rest_at = reverse ? Dim(0) : pieces * every;
    Leaves whole = part(reverse ? rest : Dim(0), pieces * every);
    for (Array& a : whole) {
      Shape s = a.shape();
      s[0] = every;
      s.insert(0, pieces);
      a = reshape(a, s);
    }
    add(inner(sequences, every), whole, pieces, every);
    if (rest > 0) add(body, part(rest_at, rest), rest, 1);
  }

 private:
  void add(const graph::Body& b, std::span<const Array> sequences, const Dim& length, const Dim& every) {
    Leaves operands = constants.all;
    append(operands, carries);
    append(operands, sequences);
    const Array node = make_node(
        Op::Scan, std::move(operands),
        {static_cast<std::int64_t>(constants.all.size()), static_cast<std::int64_t>(carries.size()), length, Dim(int{reverse})}, {b});
    const std::vector<Type> types = output_types(*b);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (i < carries.size()) {
        carries[i] = get(node, i, types[i]);
        continue;
      }
      Array all = get(node, i, graph::stacked(types[i], length));
      if (every > 1) {
        Shape s = types[i].shape;
        s[0] = length * every;
        all = reshape(all, s);
      }
      outputs.resize(types.size() - carries.size());
      Leaves& pieces = outputs[i - carries.size()];
      pieces.insert(reverse ? pieces.begin() : pieces.end(), all);
    }
  }
  // A body that takes `every` steps: a scan itself.
  graph::Body inner(std::span<const Array> sequences, std::int64_t every) const {
    graph::Graph g;
    g.name = recording.what;
    std::vector<Id> in;
    auto input = [&](Type t) { in.push_back(g.add({Op::Input, {}, {static_cast<std::int64_t>(in.size())}, std::move(t)})); };
    for (const Array& a : constants.all) input(type_of(a));
    for (const Array& a : carries) input(type_of(a));
    for (const Array& a : sequences) input(graph::stacked(graph::element_of(type_of(a)), every));
    const Id node =
        g.add({Op::Scan,
               in,
               {static_cast<std::int64_t>(constants.all.size()), static_cast<std::int64_t>(carries.size()), every, Dim(int{reverse})},
               {Dtype::bool_, Shape{0}},
               {body}});
    std::vector<Id> results;
    for (std::size_t i = 0; i < body->outputs().size(); ++i) results.push_back(graph::result(g, node, i));
    g.set_outputs(std::move(results));
    return g;
  }
};

}  // namespace

Leaves call_scan(const ScanShape& shape, LeafFunction f, std::span<const Array> init, std::span<const Array> sequences) {
  Dim length = shape.length;
  Leaves arguments(init.begin(), init.end());
  for (const Array& a : sequences) {
    const Value& v = engine::operand_of(a, shape.what);
    if (v.shape.empty() || (length >= 0 && v.shape[0] != length))
      throw ShapeError(str(shape.what, ": the arrays have no axis 0 of one length; got ", engine::describe(a),
                           length < 0 ? std::string() : str(" after one of length ", length), "; give sequences of equal length"));
    length = v.shape[0];
    arguments.push_back(like(graph::element_of(type_of(a))));
  }
  if (length < 0) throw ShapeError(str(shape.what, ": there is nothing to go over; got no array; give one, or use fori_loop"));
  if (shape.checkpoint_every < 0)
    throw Error(str(shape.what, ": checkpoint_every is negative; got ", shape.checkpoint_every, "; give a number of steps, or 0"));
  const TracedBody traced = trace_body(shape.what, arguments, f, true);
  check_carries(shape.what, init, output_types(*traced), false);
  Constants constants;
  constants.add(*traced);
  ScanCall call{*traced, constants, constants.body(*traced, true), shape.reverse, {init.begin(), init.end()}};
  call.run(sequences, length, shape.checkpoint_every);
  Leaves all = std::move(call.carries);
  for (const Leaves& pieces : call.outputs) all.push_back(pieces.size() == 1 ? pieces[0] : concatenate(pieces, 0));
  return noted(std::move(all), {&call.body, 1});
}

}  // namespace sinter::detail

namespace sinter::engine {

Array blocks(const char* what, std::size_t grid, std::span<const Array> operands, std::span<const char> cut, const Dim& extent,
             std::span<const Blocks> list, FunctionRef<Array(std::span<const Array>)> f) {
  using namespace detail;
  graph::Graph around;  // for the types
  graph::Node node{Op::Blocks, {}, {static_cast<std::int64_t>(grid), 0}, {Dtype::bool_, Shape{0}}, {}};
  for (const Array& a : operands) node.in.push_back(around.add({Op::Input, {}, {static_cast<std::int64_t>(node.in.size())}, type_of(a)}));
  for (char c : cut) node.attrs.push_back(Dim(int{c}));
  node.attrs.push_back(extent);
  for (const Blocks& b : list) {
    if (!base::changes(b.count) && b.count == 0) continue;
    node.attrs.push_back(b.count);
    for (const auto& [start, size] : b.windows) node.attrs.insert(node.attrs.end(), {start, size});
    Leaves windows;
    for (std::size_t i = 0; i < operands.size(); ++i)
      windows.push_back(like(graph::window_type(type_of(operands[i]), grid, b.windows[i].size)));
    auto body = [&](std::span<const Array> in) { return Leaves{f(in)}; };
    const TracedBody traced = trace_body(what, windows, LeafFunction(body), true);
    check(traced->bindings.size() == traced->variables, "blocks: the function uses other arrays");
    node.bodies.push_back(Constants().body(*traced, true));
  }
  const std::vector<Type> types = graph::result_types(around, node);
  return results_of(make_node(Op::Blocks, {operands.begin(), operands.end()}, std::move(node.attrs), std::move(node.bodies)), types)[0];
}

}  // namespace sinter::engine

namespace sinter::detail {

// ---- rules ------------------------------------------------------------------------------------------------------------------------------

bool rules_matter() { return engine::innermost_tape() || engine::open_trace(); }

Leaves call_checkpoint(std::span<const Array> arguments, LeafFunction f) {
  const TracedBody traced = trace_body("checkpoint", arguments, f, false);
  Constants constants;
  constants.add(*traced);
  Leaves operands(arguments.begin(), arguments.end());
  append(operands, constants.all);
  const std::vector<graph::Body> bodies{constants.body(*traced, false)};
  return noted(results_of(make_node(Op::Checkpoint, std::move(operands), {}, bodies), output_types(*traced)), bodies);
}

namespace {

bool has_derivative(const Array& a) { return graph::is_differentiable(a.dtype()); }

// The arrays in their places, from a list of those that have derivatives; zeros for the others.
Leaves with_zeros(std::span<const Array> arrays, std::span<const Array>& given) {
  Leaves all;
  for (const Array& a : arrays) {
    all.push_back(has_derivative(a) ? given[0] : zeros(a.shape(), a.dtype()));
    if (has_derivative(a)) given = given.subspan(1);
  }
  return all;
}
// Those that have derivatives, of what a rule gives for arrays like these.
Leaves of_rule(const char* what, const char* role, std::span<const Array> like, const Leaves& given) {
  if (given.size() != like.size())
    throw Error(str(what, ": the rule gives another number of arrays than there are ", role, "; got ", given.size(), " for ", like.size(),
                    "; give one for each"));
  Leaves some;
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!has_derivative(like[i])) continue;
    if (!(type_of(given[i]) == type_of(like[i])))
      throw_differ(type_of(given[i]), type_of(like[i]),
                   str(what, ": the rule gives an array that does not fit; got ", engine::describe(given[i]), " for ",
                       engine::describe(like[i]), "; give one of the same shape and dtype"));
    some.push_back(given[i]);
  }
  return some;
}
Leaves differentiable(std::span<const Array> arrays) {
  Leaves some;
  for (const Array& a : arrays)
    if (has_derivative(a)) some.push_back(a);
  return some;
}
std::vector<Type> types_of(std::span<const Array> arrays) {
  std::vector<Type> types;
  for (const Array& a : arrays) types.push_back(type_of(a));
  return types;
}
Leaves note(Op op, std::span<const Array> outputs, Leaves operands, ops::Attrs counts, std::span<const TracedBody> rules) {
  Constants constants;
  for (const TracedBody& r : rules) constants.add(*r);
  std::vector<graph::Body> bodies;
  for (const TracedBody& r : rules) bodies.push_back(constants.body(*r, false));
  append(operands, constants.all);
  return results_of(make_node(op, std::move(operands), std::move(counts), std::move(bodies)), types_of(outputs));
}

}  // namespace

Leaves note_vjp(std::span<const Array> outputs, std::span<const Array> residuals, std::span<const Array> arguments, LeafFunction back) {
  Leaves in(residuals.begin(), residuals.end());
  append(in, differentiable(outputs));
  auto rule = [&](std::span<const Array> leaves) {
    Leaves given(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(residuals.size()));
    leaves = leaves.subspan(residuals.size());
    append(given, with_zeros(outputs, leaves));
    return of_rule("custom_vjp", "arguments", arguments, back(given));
  };
  const TracedBody traced = trace_body("custom_vjp", in, LeafFunction(rule), false);
  Leaves operands(outputs.begin(), outputs.end());
  append(operands, residuals);
  append(operands, arguments);
  return note(
      Op::CustomVjp, outputs, std::move(operands),
      {static_cast<std::int64_t>(outputs.size()), static_cast<std::int64_t>(residuals.size()), static_cast<std::int64_t>(arguments.size())},
      {&traced, 1});
}

Leaves note_jvp(std::span<const Array> outputs, std::span<const Array> arguments, LeafFunction along) {
  Leaves in(arguments.begin(), arguments.end());
  append(in, differentiable(arguments));
  auto rule = [&](std::span<const Array> leaves) {
    Leaves given(leaves.begin(), leaves.begin() + static_cast<std::ptrdiff_t>(arguments.size()));
    leaves = leaves.subspan(arguments.size());
    append(given, with_zeros(arguments, leaves));
    return of_rule("custom_jvp", "results", outputs, along(given));
  };
  const TracedBody traced = trace_body("custom_jvp", in, LeafFunction(rule), false);
  Leaves operands(outputs.begin(), outputs.end());
  append(operands, arguments);
  return note(Op::CustomJvp, outputs, std::move(operands),
              {static_cast<std::int64_t>(outputs.size()), static_cast<std::int64_t>(arguments.size())}, {&traced, 1});
}

// The sizes of all batches that are open are known; which one meets the function is not.
Leaves note_vmap(std::span<const Array> outputs, std::span<const Array> arguments, LeafFunction batched) {
  std::vector<Dim> sizes;
  for (const engine::OpenTape* t = engine::innermost_tape(); t; t = t->outer())
    if (t->batch >= 0 && std::find(sizes.begin(), sizes.end(), t->batch) == sizes.end()) sizes.push_back(t->batch);
  if (arguments.empty()) sizes.clear();
  if (engine::Trace* trace = engine::open_trace()) trace->has_batch_rules = true;
  std::vector<TracedBody> rules;
  for (const Dim& n : sizes) {
    Leaves in;
    for (const Array& a : arguments) {
      Shape s = a.shape();
      s.insert(0, n);
      in.push_back(engine::broadcast(a, s));
    }
    const TracedBody traced = trace_body("custom_vmap", in, batched, false);
    const std::vector<Type> types = output_types(*traced);
    bool fits = types.size() == outputs.size();
    for (std::size_t i = 0; i < types.size() && fits; ++i) fits = types[i] == graph::stacked(type_of(outputs[i]), n);
    if (!fits)
      throw ShapeError(str("custom_vmap: the rule gives other arrays than the function with a batch of ", n, " along axis 0; got ",
                           types.empty() ? std::string("none") : describe(types[0]), " for ",
                           outputs.empty() ? std::string("none") : engine::describe(outputs[0]), "; stack the results along axis 0"));
    rules.push_back(traced);
  }
  Leaves operands(outputs.begin(), outputs.end());
  append(operands, arguments);
  return note(Op::CustomVmap, outputs, std::move(operands),
              {static_cast<std::int64_t>(outputs.size()), static_cast<std::int64_t>(arguments.size())}, rules);
}

}  // namespace sinter::detail
