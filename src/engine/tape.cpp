// Tape: one application of a function transform. Layer: engine.
//
// The function runs on stand-ins. What its results are in terms of them is then captured as a graph, the transform makes another graph of
// it, and that graph's nodes become values again, over the arrays that the stand-ins stood for. So transforms nest: what an inner one
// leaves behind is ordinary values, which an outer one, or compile(), captures in turn.
#include "engine/tape.h"

#include <algorithm>

#include "base/check.h"
#include "base/symbols.h"
#include "engine/capture.h"
#include "engine/debug_print.h"
#include "engine/trace.h"
#include "engine/tracing.h"
#include "graph/bodies.h"
#include "graph/build.h"
#include "graph/rebind.h"
#include "sinter/functions.h"
#include "sinter/transforms.h"
#include "transforms/transforms.h"

namespace sinter::engine {
namespace {

std::atomic<std::uint64_t> next_tape{1};
thread_local constinit OpenTape* innermost = nullptr;

}  // namespace

OpenTape::OpenTape(const char* w)
    : id(next_tape.fetch_add(1, std::memory_order_relaxed)), what(w), within(open_trace()), outer_(innermost) {
  innermost = this;
}
OpenTape::~OpenTape() {
  innermost = outer_;
  for (const Array& a : evaluated_) a.get()->inputs.clear();
}
OpenTape* OpenTape::find(std::uint64_t id) {
  for (OpenTape* t = innermost; t; t = t->outer_)
    if (t->id == id) return t;
  return nullptr;
}
OpenTape* innermost_tape() { return innermost; }

}  // namespace sinter::engine

namespace sinter::detail {

using engine::OpenTape;
using graph::Graph;
using graph::Id;
using ops::Op;

struct Tape::State {
  const char* what;
  OpenTape open;
  std::vector<Array> originals, variables;
  std::vector<BatchAxis> axes;  // of elements()
  // Outside of compile(), placeholders need a trace of their own; it may use any array.
  Callee callee;
  std::unique_ptr<engine::Trace> trace;
  std::unique_ptr<engine::TraceScope> scope;

  explicit State(const char* w) : what(w), open(w) {}
  std::uint64_t trace_id() {
    open.has_data = false;
    if (std::uint64_t id = engine::current_trace()) return id;
    callee.constants = true;
    callee.name = engine::intern_name(what);
    trace = std::make_unique<engine::Trace>(callee, std::span<const Array>(), std::span<const bool>());
    return trace->id;
  }
  Array stand_in(const Array& a, std::uint64_t trace_id) {
    Array made = engine::placeholder(a, variables.size(), trace_id);
    made.get()->tape = open.id;
    if (!open.first.valid()) open.first = made;
    originals.push_back(a);
    variables.push_back(made);
    return made;
  }
  void open_scope() {
    if (trace) scope = std::make_unique<engine::TraceScope>(*trace);
  }
};

namespace {

class Capture {
 public:
  Capture(std::uint64_t tape, std::span<const Array> variables, std::span<const Array> originals, const char* what, bool whole = false)
      : tape_(tape), what_(what), whole_(whole) {
    c_.what = what;
    c_.variables = variables.size();
    for (std::size_t i = 0; i < variables.size(); ++i) ids_[variables[i].get()] = input(*variables[i].get(), originals[i]);
  }
  Recording run(std::span<const Array> outputs) {
    for (const Array& a : outputs) c_.outputs.push_back(engine::capture(c_.graph, ids_, a, [this](const Array& x) { return known(x); }));
    c_.graph.set_outputs(c_.outputs);
    return std::move(c_);
  }

 private:
  Id input(const Value& v, const Array& binding) {
    c_.bindings.push_back(binding);
    return c_.graph.add({Op::Input, {}, {static_cast<std::int64_t>(c_.bindings.size() - 1)}, {v.dtype, v.shape}});
  }
  bool known(const Array& a) {
    const Value& v = engine::value_of(a, what_);
    if (ids_.contains(&v)) return true;
    if (whole_ && v.tape != tape_ && v.scope >= tape_ && !v.inputs.empty()) return false;
    // A function of fixed sizes has no view that changes nothing: what it shows is bound once.
    if (v.tape != tape_ && v.symbolic && !v.inputs.empty() && graph::may_change_nothing(v.op) && base::changes(v.shape)) return false;
    if (v.op == Op::Constant && v.tape != tape_)
      ids_[&v] = c_.graph.add({Op::Constant, {}, v.attrs, {v.dtype, v.shape}});
    else if (v.tape != tape_)
      ids_[&v] = input(v, a);
    else if (v.inputs.empty())
      throw Error(str(what_, ": a value was computed on another thread, or kept from an earlier call; got ", engine::describe(a),
                      "; compute it inside the function"));
    return v.tape != tape_ || v.op == Op::Constant;
  }
  std::uint64_t tape_;
  const char* what_;
  bool whole_;
  Recording c_;
  engine::NodeOf ids_;
};

std::string kind_error(const char* what, const Array& a, std::size_t i) {
  return str(what, ": only floating arrays have derivatives; got ", engine::describe(a), " as array ", i,
             " of the arguments; convert it with astype, or take the gradient of others");
}

}  // namespace

Tape::Tape(const char* what) : state_(new State(what)) {}
Tape::~Tape() = default;

std::vector<Array> Tape::variables(std::span<const Array> arrays) {
  State& s = *state_;
  std::vector<Array> made;
  for (const Array& a : arrays) {
    Value& v = engine::operand_of(a, s.what);
    if (!is_floating(v.dtype) && !is_complex(v.dtype)) throw DtypeError(kind_error(s.what, a, s.variables.size()));
    Array variable;
    if (v.symbolic) {
      variable = engine::placeholder(a, s.variables.size(), v.trace);
    } else {
      engine::evaluate({&a, 1}, s.what);
      variable = engine::make_ready(v.buffer, v.layout, v.dtype, v.shape);
    }
    variable.get()->tape = s.open.id;
    if (!s.open.first.valid()) s.open.first = variable;
    s.originals.push_back(a);
    s.variables.push_back(variable);
    made.push_back(variable);
  }
  return made;
}

std::vector<Array> Tape::elements(std::span<const Array> arrays, std::span<const BatchAxis> axes) {
  State& s = *state_;
  const std::uint64_t trace = s.trace_id();
  std::vector<Array> made;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const Array& a = arrays[i];
    const Value& v = engine::operand_of(a, s.what);
    if (!axes[i]) {
      made.push_back(a);
      continue;
    }
    int rank = static_cast<int>(v.shape.size()), axis = *axes[i];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
      throw ShapeError(
          str(s.what, ": there is no such axis to map over; got axis ", *axes[i], " of ", engine::describe(a), "; choose another in_axes"));
    const Dim n = v.shape[static_cast<std::size_t>(axis)];
    if (s.open.batch >= 0 && s.open.batch != n)
      throw ShapeError(str(s.what, ": sizes of the mapped axes differ; got ", s.open.batch, " and ", n, "; map over axes of one size"));
    s.open.batch = n;
    Array element = s.stand_in(a, trace);
    element.get()->shape.erase(static_cast<std::size_t>(axis));
    s.axes.push_back(axis);
    made.push_back(element);
  }
  if (s.open.batch < 0)
    throw ShapeError(str(s.what, ": there is nothing to map over; got no argument with an axis; give at least one array and its axis"));
  s.open_scope();
  return made;
}

std::vector<Array> Tape::placeholders(std::span<const Array> arrays) {
  State& s = *state_;
  const std::uint64_t trace = s.trace_id();
  std::vector<Array> made;
  for (const Array& a : arrays) {
    engine::operand_of(a, s.what);
    made.push_back(s.stand_in(a, trace));
  }
  s.open_scope();
  return made;
}

std::shared_ptr<const Recording> Tape::record(std::span<const Array> outputs, bool whole) {
  State& s = *state_;
  Recording r = Capture(s.open.id, s.variables, s.originals, s.what, whole).run(outputs);
  const Array printed = std::exchange(s.open.printed, {});
  s.open.closed = true;
  if (printed.valid()) {  // for what is around it
    const Recording shown = Capture(s.open.id, s.variables, s.originals, s.what).run({&printed, 1});
    engine::note_printed(engine::replay(shown.graph, shown.bindings)[0]);
  }
  if (s.open.has_data && engine::shows_at_once()) {  // what its branches and loops show has been shown
    r.graph = graph::without_prints(r.graph);
    r.outputs = r.graph.outputs();
  }
  return std::make_shared<const Recording>(std::move(r));
}

namespace {

// Adds an input for what the caller gives for `node`; checks its type.
Id given(Graph& g, std::vector<Array>& bindings, const Array& a, Id node, const Recording& r, const char* role) {
  const Value& v = engine::operand_of(a, r.what);
  const graph::Type t = g[node].type;
  if (!(v.shape == t.shape) || v.dtype != t.dtype)
    throw ShapeError(str(r.what, ": a ", role, " does not fit; got ", engine::describe(a), " for ", name(t.dtype), t.shape,
                         "; give one of the same shape and dtype"));
  bindings.push_back(a);
  return g.add({Op::Input, {}, {static_cast<std::int64_t>(bindings.size() - 1)}, t});
}

// The outputs, and the derivatives in the shapes of `like`, zeros where they are kKeep.
Derivatives finish(Graph& g, const Recording& r, std::span<const Array> bindings, std::span<const Id> derivatives,
                   std::span<const Id> like) {
  std::vector<Id> all = r.outputs;
  for (std::size_t i = 0; i < derivatives.size(); ++i) {
    const graph::Type t = g[like[i]].type;
    all.push_back(derivatives[i] != graph::kKeep ? derivatives[i] : graph::constant(g, t.dtype, 0, t.shape));
  }
  g.set_outputs(all);
  std::vector<Array> values = engine::replay(g, bindings);
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(r.outputs.size());
  return {{values.begin(), middle}, {middle, values.end()}};
}

std::vector<Id> variables_of(const Recording& r) {
  std::vector<Id> ids;
  for (std::size_t i = 0; i < r.variables; ++i) ids.push_back(static_cast<Id>(i));
  return ids;
}

}  // namespace

namespace {

// What the way back reads of the way there: it is kept until then. Inputs and constants are there anyway.
std::string saved_values(const Graph& g, Id end, std::span<const Id> gradients, const char* what) {
  std::vector<bool> read(end, false), needed(g.size(), false);
  for (Id id : gradients)
    if (id != graph::kKeep) needed[id] = true;
  for (Id id = g.size(); id-- > end;) {
    if (!needed[id]) continue;
    for (Id in : g[id].in) {
      // A view keeps what it shows; a recomputation what it begins with.
      while (ops::info(g[in].op).kind == ops::OpKind::View || g[in].op == Op::Barrier) in = g[in].in[0];
      needed[in] = true;
      if (in < end && !g[in].in.empty()) read[in] = true;
    }
  }
  constexpr std::size_t kMaxListed = 20;
  std::int64_t count = 0, bytes = 0;
  std::string list;
  for (Id id = 0; id < end; ++id) {
    if (!read[id]) continue;
    const graph::Type& t = g[id].type;
    bytes += base::peek(t.shape.product()) * size_of(t.dtype);
    if (static_cast<std::size_t>(count++) < kMaxListed)
      list += str(list.empty() ? " " : ", ", ops::info(g[id].op).name, ' ', t.dtype, t.shape);
  }
  return str(what, " saves ", count, " values, ", bytes, " bytes:", list, count > static_cast<std::int64_t>(kMaxListed) ? ", ..." : "");
}

}  // namespace

Derivatives backward(const Recording& r, std::span<const Array> cotangents) {
  if (cotangents.size() != r.outputs.size())
    throw ShapeError(str(r.what, ": the cotangent has another number of arrays than the result; got ", cotangents.size(), " and ",
                         r.outputs.size(), "; give one an array"));
  Graph g = r.graph;
  std::vector<Array> bindings = r.bindings;
  std::vector<Id> given_ids, wrt = variables_of(r);
  for (std::size_t i = 0; i < cotangents.size(); ++i) {
    const Id id = cotangents[i].valid() ? given(g, bindings, cotangents[i], r.outputs[i], r, "cotangent") : graph::kKeep;
    given_ids.push_back(graph::is_differentiable(g[r.outputs[i]].type.dtype) ? id : graph::kKeep);
  }
  const Id end = g.size();
  std::vector<Id> gradients = transforms::pull_back(g, r.outputs, given_ids, wrt);
  if (engine::Trace* trace = engine::open_trace(); trace && trace->callee.program)  // a compiled function: explain() shows it
    trace->notes.push_back(saved_values(g, end, gradients, r.what));
  return finish(g, r, bindings, gradients, wrt);
}

Derivatives forward(const Recording& r, std::span<const Array> tangents) {
  if (tangents.size() != r.variables)
    throw ShapeError(str(r.what, ": there are other numbers of tangents and of arrays; got ", tangents.size(), " and ", r.variables,
                         "; give one an array"));
  Graph g = r.graph;
  std::vector<Array> bindings = r.bindings;
  std::vector<Id> along, wrt = variables_of(r);
  for (std::size_t i = 0; i < tangents.size(); ++i) along.push_back(given(g, bindings, tangents[i], wrt[i], r, "tangent"));
  std::vector<Id> moved = transforms::push_forward(g, wrt, along, r.outputs);
  return finish(g, r, bindings, moved, r.outputs);
}

std::vector<Array> Tape::batch(std::span<const Array> outputs, std::span<const BatchAxis> axes) {
  State& s = *state_;
  std::vector<Array> all(outputs.begin(), outputs.end());
  const bool prints = s.open.printed.valid();
  if (prints) all.push_back(std::exchange(s.open.printed, {}));
  Recording c = Capture(s.open.id, s.variables, s.originals, s.what).run(all);
  std::vector<std::int64_t> in_axes, out_axes, slots;
  for (std::size_t i = 0; i < c.bindings.size(); ++i) {
    in_axes.push_back(i < s.axes.size() ? std::int64_t{*s.axes[i]} : transforms::kNotBatched);
    if (i < s.axes.size()) slots.push_back(static_cast<std::int64_t>(i));
  }
  std::vector<bool> depends = transforms::depends_on(c.graph, slots);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    int rank = outputs[i].ndim() + 1;
    if (!axes[i]) {
      if (depends[i])
        throw ShapeError(str(s.what, ": a result differs between the elements of the batch; got no out_axes for ",
                             engine::describe(outputs[i]), "; say along which axis they go"));
      out_axes.push_back(transforms::kNotBatched);
      continue;
    }
    int axis = *axes[i];
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank)
      throw ShapeError(str(s.what, ": there is no such axis in a result; got axis ", *axes[i], " for ", engine::describe(outputs[i]),
                           " of each element; choose another out_axes"));
    out_axes.push_back(axis);
  }
  if (prints) out_axes.push_back(depends.back() ? 0 : transforms::kNotBatched);
  Graph g = transforms::vmap(c.graph, s.open.batch, in_axes, out_axes);
  s.scope.reset();  // what follows is ordinary work again
  s.trace.reset();
  s.open.closed = true;
  std::vector<Array> results = engine::replay(g, c.bindings);
  if (prints) {
    engine::note_printed(results.back());
    results.pop_back();
  }
  return results;
}

std::vector<Array> cotangents_of_loss(std::span<const Array> outputs, const char* what) {
  if (outputs.empty()) throw Error(str(what, ": the function must return its loss; got no array; return a scalar array first"));
  const Value& v = engine::value_of(outputs[0], what);
  if (!v.shape.empty())
    throw ShapeError(
        str(what, ": the function must return a scalar; got ", engine::describe(outputs[0]), "; reduce it, for example with sum or mean"));
  if (!is_floating(v.dtype))
    throw DtypeError(str(what, ": the loss must be floating; got ", engine::describe(outputs[0]), "; convert it with astype"));
  std::vector<Array> cotangents(outputs.size());
  cotangents[0] = astype(1, v.dtype);
  return cotangents;
}

Array basis_of(const Array& like) {
  Shape shape{like.size()};
  for (const Dim& d : like.shape()) shape.push_back(d);
  return eye(like.size(), like.size(), 0, like.dtype()).reshape(shape);
}
Array columns_last(const Array& jacobian, const Shape& outputs, const Shape& inputs) {
  Shape shape = outputs;
  for (const Dim& d : inputs) shape.push_back(d);
  return jacobian.reshape({inputs.product(), outputs.product()}).T().reshape(shape);
}

void throw_axes_count(std::size_t axes, std::size_t arguments) {
  throw ShapeError(str("vmap: in_axes do not match the arguments; got ", axes, " axes for ", arguments,
                       " arguments; give one for each, or none at all"));
}

}  // namespace sinter::detail
