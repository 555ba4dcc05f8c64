#include "fuzz/steps.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "engine/capture.h"

namespace sinter::fuzz {
namespace {

void require(bool right, const char* what) {
  if (!right) throw std::runtime_error(what);
}

// What a function of the table is called with. Numbers are taken as they fit: so any numbers go with any arrays.
struct Args {
  const Step& step;
  Environment& env;
  Arrays in;

  const Array& operator[](std::size_t i) const { return in.at(i); }
  int n(std::size_t i) const { return i < step.numbers.size() ? static_cast<int>(step.numbers[i]) : 0; }
  int n(std::size_t i, int below) const { return ((n(i) % below) + below) % below; }
  bool flag(std::size_t i) const { return n(i, 2) != 0; }
  int axis(std::size_t i = 0, std::size_t operand = 0) const { return in.at(operand).ndim() == 0 ? 0 : n(i, in[operand].ndim()); }
  // Some of the axes, by bits; none: all.
  Axes axes(std::size_t i = 0) const {
    std::vector<int> some;
    for (int d = 0; d < in.at(0).ndim(); ++d)
      if (n(i) >> d & 1) some.push_back(d);
    return some.empty() ? Axes() : Axes(some);
  }
  Dtype dtype(std::size_t i) const { return static_cast<Dtype>(n(i, kDtypeCount)); }
  Dtype floating(std::size_t i) const {
    static constexpr Dtype kAll[] = {float32, float32, float16, bfloat16, float64};
    return kAll[n(i, 5)];
  }
  Array& state() const {
    require(!env.state->arrays.empty(), "there is no state");
    return env.state->arrays[static_cast<std::size_t>(n(0, static_cast<int>(env.state->arrays.size())))];
  }
  // The step's own function, which sees all values.
  Arrays body(const Arrays& x, std::size_t i = 0) const {
    require(!x.empty(), "nothing to work on");
    const Function& f = step.bodies.at(i);
    Environment inner = env;
    for (std::size_t k = 0; k < f.parameters.size(); ++k) inner.values[f.parameters[k]] = {x.at(k % x.size())};
    if (env.draw && f.results.empty()) env.draw(f, inner);
    return run(f, inner);
  }
};

bool is_real(const Array& x) { return issubdtype(x.dtype(), Category::floating); }
// What a gradient is of: every floating result counts.
Array loss(const Arrays& results) {
  Array total(0.0f);
  for (const Array& r : results)
    if (is_real(r)) total = total + sum(r * 0.5).astype(float32);
  return total;
}
Arrays real_ones(const Arrays& x) {
  Arrays real;
  std::copy_if(x.begin(), x.end(), std::back_inserter(real), is_real);
  return real;
}
Arrays joined(Arrays a, const Arrays& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
// Of the shape and dtype of x.
Array like(const Array& x, const Array& y, bool by_mean) { return (x + (by_mean ? mean(y) : y)).astype(x.dtype()); }

struct Entry {
  const char* name;
  char group;
  int operands;
  Arrays (*call)(const Args& x);
};

#define CALL [](const Args& x) -> Arrays
const Entry kEntries[] = {
#define OP1(Name, function, ...)                    \
  {#function, 'e', 1, CALL{return {function(x[0])}; \
  }                                                 \
  }                                                 \
  ,
#define OP2(Name, function, ...)                          \
  {#function, 'e', 2, CALL{return {function(x[0], x[1])}; \
  }                                                       \
  }                                                       \
  ,
#define OP3(Name, function, ...)                                \
  {#function, 'e', 3, CALL{return {function(x[0], x[1], x[2])}; \
  }                                                             \
  }                                                             \
  ,
#include "ops/elementwise.def"
#undef OP1
#undef OP2
#undef OP3
    {"astype", 'e', 1, CALL{return {x[0].astype(x.dtype(0))};
}  // namespace
}  // namespace sinter::fuzz
, {"add_number", 'e', 1, CALL{return {x[0] + x.n(0)};
}
}
, {"multiply_number", 'e', 1, CALL{return {x[0] * (0.25 * x.n(0))};
}
}
, {"number_minus", 'e', 1, CALL{return {1.5 - x[0]};
}
}
, {"choose", 'e', 2, CALL{return {where(x[0] > x[1], x[0], x[1])};
}
}
, {"nan_to_num", 'e', 1, CALL{return {nan_to_num(x[0], 0.5)};
}
}
, {"round_to", 'e', 1, CALL{return {round(x[0], x.n(0, 3))};
}
}
, {"isclose", 'e', 2, CALL{return {isclose(x[0], x[1], 0.1)};
}
}
, {"divmod", 'e', 2, CALL{return divmod(x[0], x[1]);
}
}
, {"literal", 'e', 1, CALL{return {x[0] * Array({0.5, 2.0, -1.0}, float32).reshape({3, 1})};
}
}
, {"call_number", 'e', 1, CALL{return {x[0] * x.env.inputs->number};
}
}
,

    {"over_size", 'z', 1, CALL{return {x[0] / x[0].shape(x.axis())};
}
}
, {"times_count", 'z', 1, CALL{return {x[0] * x[0].size()};
}
}
, {"arange", 'z', 1, CALL{return {x[0] * arange(x[0].shape(-1)).astype(float32)};
}
}
, {"ones", 'z', 2, CALL{return {tanh(x[0]) + ones(x[1].shape())};
}
}
, {"eye", 'z', 1, CALL{return {eye(x[0].shape(0), x[0].shape(-1), x.n(0, 3) - 1) + x[0]};
}
}
, {"linspace", 'z', 1, CALL{return {linspace(0, 1, x[0].shape(x.axis())) * x.n(1)};
}
}
, {"if_long", 'z', 1, CALL{return {x[0].shape(0) > x.n(0) ? x[0] * 2 : x[0] + 1};
}
}
, {"loop_over_rows", 'z', 1, CALL{Array total(0.0f);
for (int i = 0; i < x[0].shape(0); ++i) total = total + mean(take(x[0], i, 0));
return {total};
}
}
,

    {"transpose", 'v', 1, CALL{return {transpose(x[0])};
}
}
, {"swapaxes", 'v', 1, CALL{return {swapaxes(x[0], x.axis(0), x.axis(1))};
}
}
, {"moveaxis", 'v', 1, CALL{return {moveaxis(x[0], x.axis(0), x.axis(1))};
}
}
, {"flatten", 'v', 1, CALL{return {reshape(x[0], {-1})};
}
}
, {"merge", 'v', 1, CALL{return {reshape(x[0], {x[0].shape(0) * x[0].shape(1), -1})};
}
}
, {"halve", 'v', 1, CALL{return {reshape(x[0], {2, -1})};
}
}
, {"unflatten", 'v', 1, CALL{return {unflatten(x[0], x.axis(), {-1, x.n(1, 3) + 1})};
}
}
, {"expand_dims", 'v', 1, CALL{return {expand_dims(x[0], x.n(0, x[0].ndim() + 1))};
}
}
, {"squeeze", 'v', 1, CALL{return {squeeze(x[0])};
}
}
, {"broadcast", 'v', 1, CALL{Shape s = x[0].shape();
s.insert(0, x.n(0, 4));
return {broadcast_to(x[0], s)};
}
}
, {"broadcast_with", 'v', 2, CALL{return broadcast_arrays({x[0], x[1]});
}
}
, {"slice", 'v', 1, CALL{return {slice(x[0], {x.n(0), x.n(1)}, {x.n(2) - 3, 100 - x.n(3)}, {x.n(4, 2) + 1, x.n(5, 3) + 1})};
}
}
, {"slice_back", 'v', 1, CALL{return {slice(x[0], {-1 - x.n(0, 3)}, {-100}, {-1 - x.n(1, 2)})};
}
}
, {"flip", 'v', 1, CALL{return {flip(x[0], x.axes())};
}
}
, {"window", 'v', 1, CALL{const Array flat = reshape(x[0], {-1});
return {as_strided(flat, {flat.size() - 2, 3}, {1, 1})};
}
}
, {"concatenate", 'v', 2, CALL{return {concatenate({x[0], x[1]}, x.axis())};
}
}
, {"concatenate_own", 'v', 1, CALL{return {concatenate({x[0], flip(x[0], x.axis()), x[0]}, x.axis())};
}
}
, {"stack", 'v', 2, CALL{return {stack({x[0], x[1]}, x.n(0, x[0].ndim() + 1))};
}
}
, {"split", 'v', 1, CALL{return split(x[0], Shape{x.n(0, 4)}, x.axis(1));
}
}
, {"pad", 'v', 1, CALL{return {pad(x[0], std::pair<Dim, Dim>(x.n(0, 3), x.n(1, 3)), x.n(2))};
}
}
, {"second", 'v', 1, CALL{return {x.env.values.at(x.step.in[0]).at(1)};
}
}
,  // of what gives several arrays

    {"sum", 'r', 1, CALL{return {sum(x[0], x.axes(), x.flag(1))};
}
}
, {"prod", 'r', 1, CALL{return {prod(x[0], x.axes(), x.flag(1))};
}
}
, {"mean", 'r', 1, CALL{return {mean(x[0], x.axes(), x.flag(1))};
}
}
, {"var", 'r', 1, CALL{return {var(x[0], x.axes(), x.flag(1))};
}
}
, {"max", 'r', 1, CALL{return {max(x[0], x.axes(), x.flag(1))};
}
}
, {"min", 'r', 1, CALL{return {min(x[0], x.axes(), x.flag(1))};
}
}
, {"argmax", 'r', 1, CALL{return {argmax(x[0], x.axis(), x.flag(1))};
}
}
, {"argmin", 'r', 1, CALL{return {argmin(x[0])};
}
}
, {"all", 'r', 1, CALL{return {all(x[0], x.axes(), x.flag(1))};
}
}
, {"any", 'r', 1, CALL{return {any(x[0], x.axes(), x.flag(1))};
}
}
, {"norm", 'r', 1, CALL{return {norm(x[0], x.axes(), x.flag(1))};
}
}
, {"logsumexp", 'r', 1, CALL{return {logsumexp(x[0], x.axes(), x.flag(1))};
}
}
, {"centre", 'r', 1, CALL{return {x[0] - mean(x[0], x.axis(), true)};
}
}
, {"softmax", 'r', 1, CALL{return {softmax(x[0], x.axes())};
}
}
, {"log_softmax", 'r', 1, CALL{return {log_softmax(x[0], x.axis())};
}
}
, {"layer_norm", 'r', 1, CALL{return {layer_norm(x[0])};
}
}
, {"rms_norm", 'r', 1, CALL{return {rms_norm(x[0])};
}
}
, {"cumsum", 'r', 1, CALL{return {cumsum(x[0], x.axis(), x.flag(1), x.n(2, 3) != 0)};
}
}
, {"cumprod", 'r', 1, CALL{return {cumprod(x[0], x.axis(), x.flag(1), x.n(2, 3) != 0)};
}
}
, {"cummax", 'r', 1, CALL{return {cummax(x[0], x.axis(), x.flag(1), x.n(2, 3) != 0)};
}
}
, {"cummin", 'r', 1, CALL{return {cummin(x[0], x.axis(), x.flag(1), x.n(2, 3) != 0)};
}
}
, {"logcumsumexp", 'r', 1, CALL{return {logcumsumexp(x[0], x.axis(), x.flag(1), x.n(2, 3) != 0)};
}
}
,

    {"take", 'g', 2, CALL{return {take(x[0], x[1].astype(int32), x.axis())};
}
}
, {"take_first", 'g', 1, CALL{return {take(x[0], 0, x.axis())};
}
}
, {"take_along", 'g', 2, CALL{return {take_along_axis(x[0], x[1].astype(int32), x.axis())};
}
}
, {"put_along", 'g', 3, CALL{return {put_along_axis(x[0], x[1].astype(int32), x[2], x.axis())};
}
}
, {"add_along", 'g', 3, CALL{return {scatter_add_axis(x[0], x[1].astype(int32), x[2], x.axis())};
}
}
, {"one_hot", 'g', 1, CALL{return {one_hot(x[0].astype(int32), x.n(0, 5) + 1)};
}
}
, {"tril", 'g', 1, CALL{return {tril(x[0], x.n(0, 5) - 2)};
}
}
, {"triu", 'g', 1, CALL{return {triu(x[0], x.n(0, 5) - 2)};
}
}
, {"sort", 'g', 1, CALL{return {sort(x[0], x.axis())};
}
}
, {"argsort", 'g', 1, CALL{return {argsort(x[0], x.axis())};
}
}
,

    {"matmul", 'n', 2, CALL{return {matmul(x[0], x[1])};
}
}
, {"gram", 'n', 1, CALL{return {matmul(x[0], swapaxes(x[0], -1, -2))};
}
}
, {"addmm", 'n', 2, CALL{return {addmm(x[1], x[0], swapaxes(x[0], -1, -2), 0.5, 2)};
}
}
, {"solve", 'n', 1, CALL{return {linalg::solve(matmul(x[0], swapaxes(x[0], -1, -2)) + eye(x[0].shape(-2)), x[0])};
}
}
, {"conv", 'n', 1, CALL{const Array image = reshape(x[0], {1, -1, 1});
return {conv1d(image, reshape(arange(3).astype(float32), {1, 3, 1}), x.n(0, 2) + 1, x.n(1, 2))};
}
}
, {"pool", 'n', 1, CALL{const Array image = reshape(x[0], {1, x[0].shape(0), -1, 1});
return {x.flag(0) ? max_pool2d(image, 2, 1) : avg_pool2d(image, 2, 1, 1)};
}
}
, {"attention", 'n', 2, CALL{const Array q = reshape(x[0], {1, 1, x[0].shape(0), -1}), k = reshape(x[1], {1, 1, -1, x[0].shape(-1)});
return {scaled_dot_product_attention(q, k, k, 0.5, x.flag(0) ? "causal" : "")};
}
}
, {"rope", 'n', 1, CALL{return {rope(x[0], 2, x.flag(0))};
}
}
, {"mse_loss", 'n', 2, CALL{return {mse_loss(x[0], x[1])};
}
}
,

    {"normal", 'd', 1, CALL{return {random::normal(x[0].shape(), x.floating(0))};
}
}
, {"uniform", 'd', 1, CALL{return {random::uniform(0, x[0], x[0].shape(), x.floating(0))};
}
}
, {"dropout", 'd', 1, CALL{return {where(random::bernoulli(0.5, x[0].shape()), x[0] * 2, 0)};
}
}
, {"randint", 'd', 1, CALL{return {random::randint(-3, x.n(0, 9), x[0].shape())};
}
}
, {"permutation", 'd', 1, CALL{return {random::permutation(x[0], x.axis())};
}
}
, {"normal_of_key", 'd', 1, CALL{return {random::normal(x[0].shape(), float32, 0, 1, random::key(static_cast<std::uint64_t>(x.n(0, 9))))};
}
}
,

    {"read", 's', 0, CALL{return {x.state()};
}
}
, {"update", 's', 1, CALL{return {x.state() = x[0]};
}
}
, {"accumulate", 's', 1, CALL{Array& a = x.state();
return {a = like(a, x[0], x.flag(1))};
}
}
, {"exchange", 's', 1, CALL{Arrays& a = x.env.state->arrays;
if (a.size() > 1) std::swap(a.front(), a.back());
return {x[0]};
}
}
, {"push", 's', 1, CALL{x.env.state->list.push_back(x[0]);
return {x[0]};
}
}
, {"pop", 's', 1, CALL{if (x.env.state->list.empty()) return {x[0]};
Array last = x.env.state->list.back();
x.env.state->list.pop_back();
return {last};
}
}
, {"newest", 's', 1, CALL{return {x.env.state->list.empty() ? x[0] : x.env.state->list.back() * 2};
}
}
, {"count", 's', 1, CALL{return {x[0] + x.env.state->count++};
}
}
, {"grow", 's', 1,
   CALL{// a cache that grows by what is new
        Array& a = x.state();
return {a = concatenate({a, x[0].astype(a.dtype())}, 0)};
}
}
, {"fail", 's', 1, CALL{require(!x.env.inputs->fail, "told to fail");
return {x[0]};
}
}
,

    {"grad", 'b', 1, CALL{return grad([&](const Arrays& v) { return loss(x.body(v)); })(real_ones(x.in));
}
}
, {"value_and_grad", 'b', 2,
   CALL{auto [value, gradient] = value_and_grad([&](const Arrays& v) { return loss(x.body(v)); })(real_ones(x.in));
return joined({value}, gradient);
}
}
, {"jvp", 'b', 1, CALL{Arrays at = real_ones(x.in), along;
for (const Array& a : at) along.push_back(cos(a));
auto [values, change] = jvp([&](const Arrays& v) { return x.body(v); }, std::tuple(at), std::tuple(along));
return joined(values, change);
}
}
, {"vjp", 'b', 2, CALL{auto [values, back] = vjp([&](const Arrays& v) { return x.body(v); }, real_ones(x.in));
Arrays cotangents;
for (const Array& v : values) cotangents.push_back(is_real(v) ? v * 0.25 : v);
return joined(values, back(cotangents));
}
}
, {"vmap", 'b', 2, CALL{const BatchAxis first = x.axis(0, 0), second = x.flag(2) ? BatchAxis() : BatchAxis(x.axis(1, 1));
return vmap([&](const Array& a, const Array& b) { return x.body({a, b}); }, {first, second})(x[0], x[1]);
}
}
, {"vmap_one", 'b', 1, CALL{return vmap([&](const Array& a) { return x.body({a}); }, {BatchAxis(x.axis(0))})(x[0]);
}
}
, {"jacobian", 'b', 1, CALL{require(x[0].size() <= 12, "too large for a Jacobian");
return {x.flag(0) ? jacrev([&](const Array& a) { return loss(x.body({a})); })(x[0])
                  : jacfwd([&](const Array& a) { return x.body({a}).at(0); })(x[0])};
}
}
, {"hessian", 'b', 1, CALL{require(x[0].size() <= 8, "too large for a Hessian");
return {hessian([&](const Array& a) { return loss(x.body({a})); })(x[0])};
}
}
, {"checkpoint", 'b', 2, CALL{return checkpoint([&](const Arrays& v) { return x.body(v); })(x.in);
}
}
, {"grad_of_checkpoint", 'b', 2, CALL{auto part = checkpoint([&](const Arrays& v) { return x.body(v); });
return grad([&](const Arrays& v) { return loss(part(v)); })(real_ones(x.in));
}
}
, {"cond", 'b', 2, CALL{auto yes = [&](const Arrays& v) { return x.body(v); };
auto no = [&](const Arrays& v) {
  Arrays y = x.body(v);
  for (Array& a : y)
    if (is_real(a)) a = a * 2;
  return y;
};
return cond(sum(x[0]) > x.n(0), yes, no, x.in);
}
}
, {"scan", 'b', 2,
   CALL{auto [last, all] = scan(
            [&](const Array& carry, const Array& element) {
              Arrays y = x.body({carry, element});
              return std::pair(like(carry, y.at(0), x.n(0, 3) != 0), y);
            },
            x[0], x[1], {.reverse = x.flag(1), .checkpoint_every = x.n(2, 3)});
return joined({last}, all);
}
}
, {"grad_of_scan", 'b', 2, CALL{return grad([&](const Arrays& v) {
     auto [last, all] = scan(
         [&](const Array& carry, const Array& element) {
           Arrays y = x.body({carry, element});
           return std::pair(like(carry, y.at(0), true), y);
         },
         v[0], v[1], {.reverse = x.flag(1), .checkpoint_every = x.n(2, 3)});
     return loss(joined({last}, all));
   })(x.in);
}
}
, {"fori_loop", 'b', 1,
   CALL{auto step = [&](const Array& i, const Array& carry) { return like(carry, x.body({carry, i}).at(0), x.flag(0)); };
return {x.flag(1) ? fori_loop(0, x.n(2, 4), step, x[0]) : fori_loop(Array(1), Array(x.n(2, 4)), step, x[0])};
}
}
, {"while_loop", 'b', 1, CALL{using Carry = std::pair<Array, Array>;
return {while_loop([&](const Carry& c) { return c.first < x.n(0, 4); },
                   [&](const Carry& c) { return Carry(c.first + 1, like(c.second, x.body({c.second}).at(0), x.flag(1))); },
                   Carry(Array(0), x[0]))
            .second};
}
}
, {"compiled", 'b', 2,
   CALL{// holds all values
        return compile([&step = x.step, env = x.env](const Arrays& v) mutable { return Args{step, env, {}}.body(v); })(x.in);
}
}
,
}
;
#undef CALL

Arrays run_graph(const graph::Graph& g, const Arrays& in, bool reference) {
  std::vector<graph::Type> types;
  for (graph::Id id = 0; id < g.size(); ++id) {
    if (g[id].op != ops::Op::Input) continue;
    const auto slot = static_cast<std::size_t>(g[id].attrs[0]);
    require(slot < in.size() && in[slot].dtype() == g[id].type.dtype && in[slot].shape() == g[id].type.shape, "not the graph's input");
  }
  if (!reference) return engine::replay(g, in);
  Arrays out;
  for (const graph::Tensor& t : graph::interpret(g, tests::read(in))) out.push_back(tests::place(t));
  return out;
}

Arrays results_of(const Step& s, Environment& e) {
  Args x{s, e, {}};
  for (int id : s.in) {
    const auto found = e.values.find(id);
    require(found != e.values.end() && !found->second.empty(), "there is no such value");
    x.in.push_back(found->second.front());
  }
  if (s.name == "graph") {
    require(!s.numbers.empty() && static_cast<std::size_t>(s.numbers[0]) < e.program->graphs.size(), "there is no such graph");
    return run_graph(e.program->graphs[static_cast<std::size_t>(s.numbers[0])], x.in, e.reference);
  }
  static const auto* by_name = [] {
    auto* all = new std::unordered_map<std::string, const Entry*>;
    for (const Entry& entry : kEntries) all->emplace(entry.name, &entry);
    return all;
  }();
  const auto entry = by_name->find(s.name);
  if (entry == by_name->end()) throw std::runtime_error("there is no step " + s.name);
  return entry->second->call(x);
}

}  // namespace

Arrays run(const Function& f, Environment& e) {
  for (const Step& s : f.steps) run(s, e);
  Arrays results;
  for (int id : f.results) {
    const auto found = e.values.find(id);
    require(found != e.values.end(), "there is no such value");
    results.insert(results.end(), found->second.begin(), found->second.end());
  }
  return results;
}

void run(const Step& s, Environment& e) { e.values[s.id] = results_of(s, e); }

std::span<const StepKind> step_kinds() {
  static const std::vector<StepKind> all = [] {
    std::vector<StepKind> kinds;
    for (const Entry& e : kEntries) kinds.push_back({e.name, e.group, e.operands});
    return kinds;
  }();
  return all;
}

}  // namespace sinter::fuzz
