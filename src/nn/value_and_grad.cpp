// The model of nn::value_and_grad, during one call. Layer: nn.
#include "sinter/nn/value_and_grad.h"

#include "base/check.h"

namespace sinter::nn::detail {

struct TracedModel::State {
  sinter::detail::Tape tape{"value_and_grad"};
  std::vector<Array> before, now;  // of each leaf: what the model held, and holds under the transform
  std::vector<Array> variables;
};

namespace {
std::vector<Array> arrays_of(const std::vector<Leaf>& leaves) {
  std::vector<Array> arrays;
  for (const Leaf& leaf : leaves) arrays.push_back(*leaf.array);
  return arrays;
}
}  // namespace

TracedModel::TracedModel(const std::vector<Leaf>& leaves) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.before = arrays_of(leaves);
  std::vector<Array> trained;
  for (const Leaf& leaf : leaves)
    if (leaf.trainable()) trained.push_back(*leaf.array);
  if (trained.empty()) throw Error(str("value_and_grad: the model has nothing to train; got ", leaves.size(), " arrays; unfreeze some"));
  s.variables = s.tape.variables(trained);
  std::size_t next = 0;
  for (const Leaf& leaf : leaves)
    if (leaf.trainable()) *leaf.array = s.variables[next++];
  s.now = arrays_of(leaves);
}
TracedModel::~TracedModel() = default;

std::vector<Array> TracedModel::finish(std::span<const Array> outputs, const std::vector<Leaf>& leaves, const std::vector<Leaf>& gradient) {
  State& s = *state_;
  std::vector<Array> cotangents = sinter::detail::cotangents_of_loss(outputs, "value_and_grad");
  // What the function wrote into the model may depend on variables: it leaves the transform as further outputs.
  std::vector<Array> all(outputs.begin(), outputs.end());
  std::vector<const Leaf*> written;
  for (const Leaf& leaf : leaves) {
    bool unchanged = !leaf.array->valid();
    for (std::size_t i = 0; i < s.now.size() && !unchanged; ++i) {
      if (s.now[i].get() != leaf.array->get()) continue;
      *leaf.array = s.before[i];
      unchanged = true;
    }
    if (unchanged) continue;
    written.push_back(&leaf);
    all.push_back(*leaf.array);
  }
  cotangents.resize(all.size());
  sinter::detail::Derivatives d = sinter::detail::backward(*s.tape.record(all), cotangents);
  for (std::size_t i = 0; i < written.size(); ++i) *written[i]->array = d.outputs[outputs.size() + i];
  std::size_t next = 0;
  for (const Leaf& leaf : gradient) *leaf.array = leaf.trainable() ? d.derivatives[next++] : Array();
  d.outputs.resize(outputs.size());
  return std::move(d.outputs);
}

}  // namespace sinter::nn::detail
