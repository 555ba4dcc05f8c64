// Attention by blocks of rows: products whose results are only folded along their rows and used up by further products (scores.h) become
// a blocks node, so that no whole array of scores is ever in memory.
//
// A block is some rows of one matrix of scores, all that is computed from them, and the products that use them up. Whatever it needs is
// computed anew, also where a gradient needs what an earlier product needed. Its products are library calls on one thread, and whether
// rows have the bits of whole products is asked of the library (Context::rows_keep_bits). A product that adds up over rows (the gradient
// of keys and of values) keeps its bits where a block is a whole matrix; smaller blocks are added up under fast_math alone.
#include <algorithm>
#include <map>

#include "graph/bodies.h"
#include "graph/build.h"
#include "passes/pass.h"
#include "passes/scores.h"
#include "passes/views.h"

namespace sinter::passes {
namespace {

using graph::Graph;
using graph::Id;
using graph::Node;
using ops::Op;
using Matrix = ops::Product::Matrix;

// As for scaled_dot_product_attention: scores of a block, and rows that are worth packing the other operands of the products.
constexpr std::int64_t kBlockScores = 131072, kLeastRows = 64;

// What blocks read. `shape` has the axes of the grid, of its sizes or 1.
struct Operand {
  Id node = 0;  // of the source
  Shape shape;
  bool swap = false;    // the last two axes are exchanged
  bool parted = false;  // has the rows as its first axis behind the grid
  friend bool operator==(const Operand&, const Operand&) = default;
};

// Products of a site that depend on each other in no way but through scores: one blocks node.
struct Stage {
  std::vector<ScoreSite::Exit> exits;
  std::vector<Id> row_values;  // members that are read elsewhere
  std::vector<Id> members;
  std::vector<Operand> operands;
  struct Use {
    std::size_t operand;
    bool swapped;  // its last two axes are exchanged in the body: a product's operand that lies so
  };
  std::map<std::pair<Id, std::size_t>, Use> uses;  // by member or exit and its operand
  std::int64_t blocks = 1;
};

class Site {
 public:
  // depth: how many exits, of any site, a node comes behind.
  Site(const Graph& g, const ScoreSite& s, const std::vector<int>& depth, const std::vector<graph::Layout>& layouts, const Context& context)
      : g_(g),
        s_(s),
        shape_(s.shape),
        grid_(shape_.size() - 2),
        n_(shape_[grid_]),
        m_(shape_[grid_ + 1]),
        depth_(depth),
        layouts_(layouts),
        context_(context) {
    for (std::size_t d = 0; d < grid_; ++d) points_ *= shape_[d];
  }

  // Why not; empty: it is done.
  std::string plan() {
    if (points_ * n_ * m_ <= kBlockScores) return "they fit in a cache";
    if (!context_.plain && !context_.fast_math) return "an input is not row-major";
    if (std::string why = make_stages(); !why.empty()) return why;
    for (auto& [depth, stage] : stages) {
      stage.members = members_for(g_, shape_, needed(stage));
      choose_blocks(stage);
      if (points_ * stage.blocks <= std::max(context_.threads, 1)) return "there are too few matrices of them for the threads";
      if (std::string why = make_operands(stage); !why.empty()) return why;
      if (!context_.fast_math && !keeps_bits(stage)) return "products of a part of the rows have other bits than the whole";
    }
    return {};
  }
  std::string describe() const { return str("scores ", g_[scores_of(g_, s_.exits[0])].type.dtype, shape_); }
  std::string describe_blocks() const {
    std::string text;
    for (const auto& [depth, stage] : stages)
      text += str(text.empty() ? "" : ", then ", points_ * stage.blocks, " blocks of ", (n_ + stage.blocks - 1) / stage.blocks, " rows");
    return text;
  }

  // Adds the blocks node; `copy`: of nodes of the source. Sets that of its results.
  void emit(const Stage& stage, Graph& target, std::vector<Id>& copy) const;

  std::map<int, Stage> stages;  // by depth

 private:
  std::string make_stages();
  std::vector<Id> needed(const Stage& stage) const {
    std::vector<Id> ids = stage.row_values;
    for (const auto& e : stage.exits) ids.push_back(scores_of(g_, e));
    return ids;
  }
  void choose_blocks(Stage& stage) const {
    const bool sums = std::any_of(stage.exits.begin(), stage.exits.end(), [](const auto& e) { return e.is_sum(); });
    const Dtype t = g_[scores_of(g_, stage.exits[0])].type.dtype;
    const std::int64_t rows = std::max(kBlockScores / m_, kLeastRows);
    stage.blocks = sums && !(context_.fast_math && (t == Dtype::float32 || t == Dtype::float64)) ? 1 : (n_ + rows - 1) / rows;
  }
  std::string make_operands(Stage& stage) const;
  std::pair<Operand, bool> product_operand(const Stage& stage, Id id, int rows_axis) const;
  Operand plain_operand(const Stage& stage, Id id) const;
  bool keeps_bits(const Stage& stage) const;
  bool keeps_bits(const Stage& stage, Id product, std::int64_t rows) const;
  const ScoreSite::Exit* exit_at(const Stage& stage, Id id) const {
    const auto it = std::find_if(stage.exits.begin(), stage.exits.end(), [&](const auto& e) { return e.id == id; });
    return it == stage.exits.end() ? nullptr : &*it;
  }

  // Those with one row less come first.
  std::int64_t rows(const Stage& stage, std::int64_t block) const { return n_ / stage.blocks + (block >= fewer(stage)); }
  std::int64_t start(const Stage& stage, std::int64_t block) const {
    return block * (n_ / stage.blocks) + std::max<std::int64_t>(block - fewer(stage), 0);
  }
  std::int64_t fewer(const Stage& stage) const { return stage.blocks - n_ % stage.blocks; }
  graph::Body body(const Stage& stage, std::int64_t rows) const;
  // The type in a body of what has this type: scores, or one a row.
  graph::Type within(const graph::Type& t, std::int64_t rows) const {
    switch (rows_of(shape_, t.shape)) {
      case Rows::Scores: return {t.dtype, {rows, m_}};
      case Rows::Columns: return {t.dtype, {rows, 1}};
      case Rows::Flat: return {t.dtype, {rows}};
      default: return t;
    }
  }

  const Graph& g_;
  const ScoreSite& s_;
  const Shape& shape_;
  const std::size_t grid_;  // axes
  const std::int64_t n_, m_;
  std::int64_t points_ = 1;
  const std::vector<int>& depth_;
  const std::vector<graph::Layout>& layouts_;
  const Context& context_;
};

// Exits of one depth are a stage: what a stage reads comes before all of its depth. Other readers of scores must be members.
std::string Site::make_stages() {
  std::vector<char> made(g_.size(), 0);  // computed from an entry, in the site
  for (Id id = 0; id < g_.size(); ++id) {
    const Node& n = g_[id];
    const auto e = std::lower_bound(s_.exits.begin(), s_.exits.end(), id, [](const auto& x, Id i) { return x.id < i; });
    if (e != s_.exits.end() && e->id == id) {
      stages[depth_[id]].exits.push_back(*e);
      if (made[n.in[1 - e->operand]] || (e + 1 != s_.exits.end() && (e + 1)->id == id)) return "a product reads them twice";
      continue;
    }
    const bool member = std::binary_search(s_.members.begin(), s_.members.end(), id);
    const bool reads = std::any_of(n.in.begin(), n.in.end(), [&](Id in) { return made[in] != 0; });
    if (member && n.op != Op::Matmul) made[id] = reads;
    if (member && n.op == Op::Matmul) made[id] = 1;
    if (!reads || (member && n.op != Op::Matmul)) continue;
    if (is_swap(n)) {  // for exits alone
      made[id] = 1;
      continue;
    }
    for (Id in : n.in) {
      if (!made[in]) continue;
      if (rows_of(shape_, g_[in].type.shape) == Rows::Scores || is_swap(g_[in])) return str(ops::info(n.op).name, " reads them");
      stages[depth_[in] + 1].row_values.push_back(in);
    }
  }
  for (Id id : g_.outputs()) {
    if (!made[id]) continue;
    if (rows_of(shape_, g_[id].type.shape) == Rows::Scores || is_swap(g_[id])) return "they are a result";
    stages[depth_[id] + 1].row_values.push_back(id);
  }
  for (auto& [at, stage] : stages) {
    if (stage.exits.empty()) return "what is computed from them one a row is read elsewhere";
    std::vector<Id>& v = stage.row_values;
    std::sort(v.begin(), v.end());
    v.erase(std::unique(v.begin(), v.end()), v.end());
  }
  return {};
}

// Under views that only exchange its last two axes, and repeat it along the grid; whether the body exchanges them again. rows_axis: which
// of the last two are the rows; -1: none.
std::pair<Operand, bool> Site::product_operand(const Stage& stage, Id id, int rows_axis) const {
  Operand o;
  bool swapped = false;
  for (;; id = g_[id].in[0]) {
    const Node& n = g_[id];
    if (is_swap(n)) {
      swapped = !swapped;
    } else if (n.op != Op::Broadcast || g_[n.in[0]].type.shape.size() < 2 ||
               !std::equal(n.type.shape.end() - 2, n.type.shape.end(), g_[n.in[0]].type.shape.end() - 2)) {
      break;
    }
  }
  o.node = id;
  o.parted = rows_axis >= 0 && stage.blocks > 1;
  if (o.parted && (rows_axis == 1) != swapped) o.swap = true, swapped = !swapped;
  o.shape = g_[id].type.shape;
  while (o.shape.size() < grid_ + 2) o.shape.insert(0, 1);
  if (o.swap) std::swap(o.shape[grid_], o.shape[grid_ + 1]);
  return {o, swapped};
}
// What elementwise members read: scores and row values from elsewhere, and what is broadcast to scores.
Operand Site::plain_operand(const Stage& stage, Id id) const {
  const bool repeated = g_[id].op == Op::Broadcast && rows_of(shape_, g_[id].type.shape) == Rows::Scores;  // to the last axes
  if (repeated) id = g_[id].in[0];
  Operand o{id, g_[id].type.shape, false, false};
  const std::size_t rank = grid_ + (!repeated && rows_of(shape_, o.shape) == Rows::Flat ? 1 : 2);
  while (o.shape.size() < rank) o.shape.insert(0, 1);
  o.parted = stage.blocks > 1 && o.shape[grid_] != 1;
  return o;
}

std::string Site::make_operands(Stage& stage) const {
  auto add = [&](Id user, std::size_t i, std::pair<Operand, bool> use) {
    auto it = std::find(stage.operands.begin(), stage.operands.end(), use.first);
    stage.uses[{user, i}] = {static_cast<std::size_t>(it - stage.operands.begin()), use.second};
    if (it == stage.operands.end()) stage.operands.push_back(std::move(use.first));
  };
  for (Id id : stage.members) {
    const Node& n = g_[id];
    for (std::size_t i = 0; i < n.in.size(); ++i) {
      if (n.op == Op::Matmul)
        add(id, i, product_operand(stage, n.in[i], i == 0 ? 0 : -1));
      else if (!graph::is_scalar_constant(g_[n.in[i]]) && !std::binary_search(stage.members.begin(), stage.members.end(), n.in[i]))
        add(id, i, {plain_operand(stage, n.in[i]), false});
    }
  }
  for (const auto& e : stage.exits)
    add(e.id, 1 - e.operand, product_operand(stage, g_[e.id].in[1 - e.operand], !e.is_sum() ? -1 : e.operand == 0 ? 0 : 1));
  // The grid is what the operands say.
  for (std::size_t d = 0; d < grid_; ++d)
    if (shape_[d] != 1 && std::all_of(stage.operands.begin(), stage.operands.end(), [&](const Operand& o) { return o.shape[d] == 1; }))
      return "all of them are equal along an axis";
  return {};
}

bool Site::keeps_bits(const Stage& stage, Id product, std::int64_t rows) const {
  const Node& n = g_[product];
  const ScoreSite::Exit* e = exit_at(stage, product);
  ops::Product whole{n.type.dtype, points_, n.type.shape[grid_], n.type.shape[grid_ + 1], g_[n.in[0]].type.shape[grid_ + 1], {}, {}};
  ops::Product part = whole;
  part.batch = 1;
  part.alone = true;
  if (e && e->is_sum())
    part.k = rows;
  else
    (e && e->operand == 1 ? part.n : part.m) = rows;
  if (ops::has_few_rows(whole.m, whole.n, whole.k) || ops::has_few_rows(part.m, part.n, part.k)) return false;
  for (std::size_t i = 0; i < 2; ++i) {
    const Shape& shape = g_[n.in[i]].type.shape;
    const std::int64_t r = shape[grid_], c = shape[grid_ + 1];
    const auto lies = graph::matrix_layout(shape, layouts_[n.in[i]].strides);
    (i == 0 ? whole.x : whole.y) = lies ? *lies : ops::dense(r, c);
    const bool scores = e && e->operand == i;
    const bool transposed = scores ? e->transposed : stage.uses.at({product, i}).swapped;
    (i == 0 ? part.x : part.y) = i == 0 ? ops::dense(part.m, part.k, transposed) : ops::dense(part.k, part.n, transposed);
  }
  return context_.rows_keep_bits(whole, part);
}
bool Site::keeps_bits(const Stage& stage) const {
  for (std::int64_t b : {std::int64_t{0}, stage.blocks - 1}) {  // the fewest rows, and the most
    for (Id id : stage.members)
      if (g_[id].op == Op::Matmul && !keeps_bits(stage, id, rows(stage, b))) return false;
    for (const auto& e : stage.exits)
      if (!keeps_bits(stage, e.id, rows(stage, b))) return false;
  }
  return true;
}

graph::Body Site::body(const Stage& stage, std::int64_t rows) const {
  Graph b;
  b.name = "rows";
  std::vector<Id> operands;
  for (const Operand& o : stage.operands) {
    graph::Type t =
        graph::window_type({g_[o.node].type.dtype, o.shape}, grid_, o.parted ? rows : static_cast<std::int64_t>(o.shape[grid_]));
    operands.push_back(b.add({Op::Input, {}, {static_cast<std::int64_t>(operands.size())}, std::move(t)}));
  }
  std::map<Id, Id> copy;
  const auto transposed = [&](Id x) { return graph::transpose(b, x, {1, 0}); };
  const auto outer = [&](Id user, std::size_t i) {
    const Stage::Use& use = stage.uses.at({user, i});
    return use.swapped ? transposed(operands[use.operand]) : operands[use.operand];
  };
  const auto product = [&](Id x, Id y) {
    const graph::Type &a = b[x].type, &c = b[y].type;
    return b.add({Op::Matmul, {x, y}, {}, {a.dtype, {a.shape[0], c.shape[1]}}});
  };
  const auto inner = [&](Id user, std::size_t i) {
    const Id id = g_[user].in[i];
    const graph::Type type = within(g_[id].type, rows);
    if (const auto it = copy.find(id); it != copy.end()) return it->second;
    if (graph::is_scalar_constant(g_[id])) return b.add({Op::Constant, {}, g_[id].attrs, type});
    const Id x = operands[stage.uses.at({user, i}).operand];
    return type.shape.size() < b[x].type.shape.size() ? graph::reshape(b, x, type.shape) : graph::broadcast(b, x, type.shape);
  };
  for (Id id : stage.members) {
    Node n = g_[id];
    if (n.op == Op::Matmul) {
      copy[id] = product(outer(id, 0), outer(id, 1));
      continue;
    }
    n.type = within(n.type, rows);
    for (std::size_t i = 0; i < n.in.size(); ++i) n.in[i] = inner(id, i);
    if (is_view(n.op)) n.attrs = ops::Attrs(n.type.shape.begin(), n.type.shape.end());
    if (ops::info(n.op).kind == ops::OpKind::Reduce) n.attrs[1] = 1;
    copy[id] = b.add(std::move(n));
  }
  std::vector<Id> outputs, sums;
  for (const auto& e : stage.exits) {
    Id scores = copy.at(scores_of(g_, e));
    if (e.transposed) scores = transposed(scores);
    const Id other = outer(e.id, 1 - e.operand);
    const Id made = e.operand == 0 ? product(scores, other) : product(other, scores);
    if (e.is_sum())
      sums.push_back(made);
    else
      outputs.push_back(e.operand == 0 ? made : transposed(made));  // rows first
  }
  for (Id id : stage.row_values) outputs.push_back(copy.at(id));
  outputs.insert(outputs.end(), sums.begin(), sums.end());
  b.set_outputs(std::move(outputs));
  return b;
}

void Site::emit(const Stage& stage, Graph& target, std::vector<Id>& copy) const {
  Node node{Op::Blocks, {}, {static_cast<std::int64_t>(grid_), 0}, {Dtype::bool_, Shape{0}}, {}};
  const auto swapped = [&](Id x) {
    ops::Attrs axes;
    for (std::size_t d = 0; d < grid_; ++d) axes.push_back(static_cast<std::int64_t>(d));
    axes.insert(axes.end(), {static_cast<std::int64_t>(grid_ + 1), static_cast<std::int64_t>(grid_)});
    return graph::transpose(target, x, std::move(axes));
  };
  for (const Operand& o : stage.operands) {
    Shape shape = o.shape;
    if (o.swap) std::swap(shape[grid_], shape[grid_ + 1]);
    const Id x = graph::reshape(target, copy[o.node], shape);
    node.in.push_back(o.swap ? swapped(x) : x);
  }
  std::vector<ScoreSite::Exit> sums, others;
  for (const auto& e : stage.exits) (e.is_sum() ? sums : others).push_back(e);
  // Sums of one block are cut: into one part.
  if (stage.blocks > 1) node.attrs[1] = static_cast<std::int64_t>(sums.size());
  for (const Operand& o : stage.operands) node.attrs.push_back(Dim(int{o.parted}));
  const auto rows_of = [&](const auto& e) { return static_cast<std::int64_t>(g_[e.id].type.shape[grid_]); };
  for (std::size_t k = 0; k < others.size() + stage.row_values.size(); ++k) node.attrs.push_back(n_);
  for (const auto& e : sums) node.attrs.push_back(rows_of(e));
  for (std::int64_t i = 0; i < stage.blocks;) {
    const std::int64_t first = start(stage, i), size = rows(stage, i), begin = i;
    while (i < stage.blocks && rows(stage, i) == size) ++i;
    node.bodies.push_back(body(stage, size));
    node.attrs.push_back(i - begin);
    for (const Operand& o : stage.operands)
      node.attrs.insert(node.attrs.end(), {o.parted ? first : 0, o.parted ? size : static_cast<std::int64_t>(o.shape[grid_])});
    for (std::size_t k = 0; k < others.size() + stage.row_values.size(); ++k) node.attrs.insert(node.attrs.end(), {first, size});
    for (const auto& e : sums) node.attrs.insert(node.attrs.end(), {0, rows_of(e)});
  }
  const Id made = target.add(std::move(node));
  std::size_t next = 0;
  for (const auto& e : others) {
    Id x = graph::result(target, made, next++);
    if (e.operand == 1) x = swapped(x), x = target.add({Op::Copy, {x}, {}, graph::Type(target[x].type)});  // computed, as it was
    copy[e.id] = x;
  }
  for (Id id : stage.row_values) copy[id] = graph::result(target, made, next++);
  for (const auto& e : sums) copy[e.id] = graph::result(target, made, next++);
}

// The graph with blocks in the place of stages. A node is added when it is needed first, so that list order stays where it can.
Graph rebuilt(const Graph& g, const std::vector<std::pair<const Site*, const Stage*>>& stages) {
  std::vector<const std::pair<const Site*, const Stage*>*> stage_of(g.size(), nullptr);
  for (const auto& s : stages) {
    for (const auto& e : s.second->exits) stage_of[e.id] = &s;
    for (Id id : s.second->row_values) stage_of[id] = &s;
  }
  const auto operands = [&](Id id) {
    if (!stage_of[id]) return g[id].in;
    std::vector<Id> nodes;
    for (const Operand& o : stage_of[id]->second->operands) nodes.push_back(o.node);
    return nodes;
  };
  std::vector<char> needed(g.size(), 0);
  std::vector<Id> next = g.outputs();
  while (!next.empty()) {
    const Id id = next.back();
    next.pop_back();
    if (needed[id]) continue;
    needed[id] = 1;
    for (Id in : operands(id)) next.push_back(in);
  }
  Graph target;
  target.name = g.name;
  std::vector<Id> copy(g.size(), graph::kKeep);
  for (Id id = 0; id < g.size(); ++id) {
    if (!needed[id] && g[id].op != Op::Input) continue;
    next = {id};
    while (!next.empty()) {
      const Id at = next.back();
      const std::size_t before = next.size();
      if (copy[at] == graph::kKeep)
        for (Id in : operands(at))
          if (copy[in] == graph::kKeep) next.push_back(in);
      if (next.size() > before) continue;
      next.pop_back();
      if (copy[at] != graph::kKeep) continue;
      if (stage_of[at]) {
        stage_of[at]->first->emit(*stage_of[at]->second, target, copy);
        continue;
      }
      Node n = g[at];
      for (Id& in : n.in) in = copy[in];
      copy[at] = target.add(std::move(n));
    }
  }
  std::vector<Id> outputs = g.outputs();
  for (Id& id : outputs) id = copy[id];
  target.set_outputs(std::move(outputs));
  return target;
}

}  // namespace

Graph by_blocks(const Graph& source, Context& context) {
  if (context.is_part) return source;
  const std::vector<ScoreSite> found = find_scores(source);
  if (found.empty()) return source;
  const Graph g = drop_dead(source, context);
  const std::vector<ScoreSite> all = find_scores(g);
  const std::vector<graph::Layout> layouts = layouts_of(g);
  std::vector<int> depth(g.size(), 0);
  for (const ScoreSite& s : all)
    for (const auto& e : s.exits) depth[e.id] = 1;
  for (Id id = 0; id < g.size(); ++id) {
    int before = 0;
    for (Id in : g[id].in) before = std::max(before, depth[in]);
    depth[id] += before;
  }
  std::vector<Site> sites;
  std::vector<std::pair<const Site*, const Stage*>> stages;
  sites.reserve(all.size());
  for (const ScoreSite& s : all) {
    Site& site = sites.emplace_back(g, s, depth, layouts, context);
    const std::string why = site.plan();
    context.reasons.push_back(why.empty() ? str("in blocks: ", site.describe(), ": ", site.describe_blocks())
                                          : str("not in blocks: ", site.describe(), ": ", why));
    if (why.empty())
      for (const auto& [depth, stage] : site.stages) stages.push_back({&site, &stage});
  }
  if (stages.empty()) return g;
  context.relied_on_plain = !context.fast_math;
  return rebuilt(g, stages);
}

}  // namespace sinter::passes
