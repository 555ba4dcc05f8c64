// Moves views to operands: view(f(a, b)) becomes f(view(a), view(b)).
//
// Going back from the outputs, each view asks its operand to be computed in the view's shape; a node that all its users ask for the same
// (a list of views, composed) agrees if it can, and asks its own operands in turn. Going forward, nodes that agreed are built in the new
// shape, and the views are applied to the operands of those where it ended. Every step is constant work, since lists are short.
#include <algorithm>
#include <limits>

#include "graph/build.h"
#include "graph/group.h"
#include "graph/layout.h"
#include "ops/expand.h"
#include "passes/pass.h"
#include "passes/views.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;

constexpr int kMaxViews = 8;  // in a row
constexpr int kMaxCost = 12;  // instructions that a broadcast may repeat at each element: less than a division's time or a short function

class Sinker {
 public:
  explicit Sinker(const Graph& g)
      : g_(g), uses_(graph::count_uses(g)), asked_(g.size()), wanted_(g.size(), false), pinned_(g.size(), false) {}

  Graph run() {
    layouts_ = layouts_of(g_);
    for (Id id = g_.size(); id-- > 0;) decide(id);
    return build();
  }

 private:
  static constexpr int kNothing = -1, kConflict = -2;
  // A view, and what follows it.
  struct Step {
    View view;
    int next;
    int length;
  };
  // What a node's users ask of it.
  struct Asked {
    int views = kNothing;  // the first Step
    int users = 0;         // how many asked
    int budget = std::numeric_limits<int>::max();
    bool agreed = false;
  };

  int length(int views) const { return views == kNothing ? 0 : steps_[static_cast<std::size_t>(views)].length; }
  const Shape& shape_after(int views) const {
    while (steps_[static_cast<std::size_t>(views)].next != kNothing) views = steps_[static_cast<std::size_t>(views)].next;
    return steps_[static_cast<std::size_t>(views)].view.to;
  }
  // The list that does `first` and then `views`.
  int prepend(View first, int views) {
    while (views != kNothing) {
      std::optional<View> both = compose(first, steps_[static_cast<std::size_t>(views)].view);
      if (!both) break;
      first = std::move(*both);
      views = steps_[static_cast<std::size_t>(views)].next;
    }
    if (changes_nothing(first)) return views;
    steps_.push_back({std::move(first), views, length(views) + 1});
    return static_cast<int>(steps_.size()) - 1;
  }
  // Whether the views of an array of this layout need no copy.
  bool is_layout_only(graph::Layout layout, int views) const {
    for (; views != kNothing; views = steps_[static_cast<std::size_t>(views)].next) {
      const View& v = steps_[static_cast<std::size_t>(views)].view;
      auto after = graph::view_layout(v.op, v.attrs, v.to, v.from, layout);
      if (!after) return false;
      layout = *std::move(after);
    }
    return true;
  }

  void ask(Id id, int views, int budget) {
    Asked& a = asked_[id];
    if (a.users++ == 0)
      a.views = views;
    else if (a.views != views)
      a.views = kConflict;
    a.budget = std::min(a.budget, budget);
  }

  // An operand that is read at every element whatever the shape.
  bool is_scalar_of(Id operand, const Node& n) const { return g_[operand].type.shape.empty() && !n.type.shape.empty(); }

  bool agrees(Id id) {
    const Node& n = g_[id];
    Asked& a = asked_[id];
    if (a.users == 0 || a.users != uses_[id] || a.views < 0) return false;
    if (is_view(n.op)) {
      const int views = prepend(view_of(g_, n), a.views);
      return length(views) <= kMaxViews && is_layout_only({0, graph::row_major(g_[n.in[0]].type.shape)}, views);
    }
    if (!ops::is_elementwise(n.op) && n.op != Op::Cast) return false;
    if (shape_after(a.views).product() > n.type.shape.product()) {
      a.budget -= n.op == Op::Cast ? 1 : ops::cost(n.op, g_[n.in.back()].type.dtype);
      if (a.budget < 0) return false;
    }
    return std::all_of(n.in.begin(), n.in.end(), [&](Id in) { return is_scalar_of(in, n) || is_layout_only(layouts_[in], a.views); });
  }

  // Users have been decided already.
  void decide(Id id) {
    const Node& n = g_[id];
    Asked& a = asked_[id];
    a.agreed = agrees(id);
    if (!a.agreed) a = {};
    if (is_view(n.op)) {
      if (n.op == Op::Slice) wanted_[id] = true;  // less to compute
      a.views = prepend(view_of(g_, n), a.agreed ? a.views : kNothing);
      const bool copies = n.op == Op::Reshape || n.op == Op::AsStrided;  // its operand would be copied where it has gaps
      if (wanted_[id] || copies) wanted_[n.in[0]] = wanted_[n.in[0]] || is_view(g_[n.in[0]].op);
      if (pinned_[id]) pinned_[n.in[0]] = true;
      if ((a.agreed || wanted_[id]) && !pinned_[id] && a.views != kNothing) ask(n.in[0], a.views, std::min(a.budget, kMaxCost));
      return;
    }
    const bool wants = graph::is_in_kernel(n) || n.op == Op::Concatenate;
    for (Id in : n.in) {
      // A branch, a loop or blocks would copy what is not row-major.
      const bool copied = ops::info(n.op).kind == ops::OpKind::Region && !graph::is_row_major(g_[in].type.shape, layouts_[in].strides);
      if (wants || copied) wanted_[in] = true;
      if (is_product(n.op)) pinned_[in] = true;
      if (a.agreed && !is_scalar_of(in, n)) ask(in, a.views, a.budget);
    }
  }

  Graph build() {
    Graph target;
    target.name = g_.name;
    target.reserve(g_.size());
    std::vector<Id> copy(g_.size());
    // The operand in the shape that its user is built in.
    auto operand = [&](Id id, int views) {
      Id x = copy[id];
      if (asked_[id].agreed) return x;
      for (; views != kNothing; views = steps_[static_cast<std::size_t>(views)].next)
        x = add_view(target, x, steps_[static_cast<std::size_t>(views)].view);
      return x;
    };
    for (Id id = 0; id < g_.size(); ++id) {
      Node n = g_[id];
      const Asked& a = asked_[id];
      if (is_view(n.op)) {
        copy[id] = operand(n.in[0], a.views);
        continue;
      }
      if (is_product(n.op)) {
        for (Id& in : n.in) in = product_operand(target, g_, in, copy);
        copy[id] = target.add(std::move(n));
        continue;
      }
      for (Id& in : n.in) in = a.agreed && !is_scalar_of(in, g_[id]) ? operand(in, a.views) : copy[in];
      if (a.agreed) n.type.shape = shape_after(a.views);
      copy[id] = target.add(std::move(n));
    }
    std::vector<Id> outputs = g_.outputs();
    for (Id& id : outputs) id = copy[id];
    target.set_outputs(std::move(outputs));
    return target;
  }

  const Graph& g_;
  std::vector<int> uses_;
  std::vector<Asked> asked_;
  std::vector<bool> wanted_;  // of views: a kernel reads it, or would copy it, so that computing its operand there saves one
  std::vector<bool> pinned_;  // of views: a product reads it, or a view of it, so it stays
  std::vector<graph::Layout> layouts_;
  std::vector<Step> steps_;
};

}  // namespace

Graph sink_views(const Graph& g, Context& context) { return Sinker(drop_dead(g, context)).run(); }

}  // namespace sinter::passes
