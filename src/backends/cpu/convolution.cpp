// Convolutions by oneDNN. The batch is cut into chunks whose number is one of the shapes alone, and each chunk is one thread's; the weight
// gets the sum over the chunks in their order. So the bits depend on no number of threads. Weights are packed as the library likes them;
// inputs and outputs stay as they lie.
#include <algorithm>
#include <cstring>
#include <optional>

#include "backends/cpu/onednn.h"
#include "backends/cpu/products.h"
#include "runtime/pool.h"

namespace sinter::backends {
namespace {

using dnnl::memory;
using ops::ConvAxis;
using ops::Convolution;

constexpr std::int64_t kChunkWork = 1'000'000;     // multiplications that are worth a call
constexpr std::int64_t kMostChunks = 64;           // so many threads can share the work
constexpr std::int64_t kMostSums = 16, kSums = 4;  // weights that are added up: at most, and in any case
constexpr std::int64_t kSumsMemory = 4;            // ... in between, those that take so many times the memory of input and output
constexpr std::int64_t kAlignment = 64;

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
std::int64_t bytes_of(const Convolution& c, Convolution::Role role, Dtype t) { return c.shape(role).product() * size_of(t); }

// The examples of a chunk.
std::int64_t chunk_of(const kernel::ConvDesc& d) {
  const Convolution& c = d.geometry;
  std::int64_t most = kMostChunks;
  if (d.result == Convolution::kWeight) {
    const std::int64_t data = bytes_of(c, Convolution::kInput, d.dtype) + bytes_of(c, Convolution::kOutput, d.dtype);
    most = std::clamp(kSumsMemory * data / bytes_of(c, Convolution::kWeight, Dtype::float32), kSums, kMostSums);
  }
  return std::min<std::int64_t>(c.batch, std::max(divide_up(c.batch, most), divide_up(kChunkWork, c.work() / c.batch)));
}

// One primitive for a number of examples, which runs on one thread.
class Part {
 public:
  // `packed`: the layout of the weight; any, if it is not given.
  Part(const kernel::ConvDesc& d, std::int64_t examples, const std::optional<memory::desc>& packed) {
    const Convolution& c = d.geometry;
    const auto type = onednn_type(d.dtype);
    memory::dims stride, low, high, dilation, in{examples, c.in}, out{examples, c.out}, weight{c.out / c.groups, c.in / c.groups};
    if (c.groups > 1) weight.insert(weight.begin(), c.groups);
    for (const ConvAxis& a : c.axes) {
      stride.push_back(a.stride), low.push_back(a.low), high.push_back(a.high), dilation.push_back(a.dilation - 1);
      in.push_back(a.input), out.push_back(a.output()), weight.push_back(a.kernel);
    }
    using Tag = memory::format_tag;
    constexpr Tag kTags[] = {Tag::nwc, Tag::nhwc, Tag::ndhwc};
    const Tag tag = kTags[c.axes.size() - 1];
    input_ = memory::desc(in, type, tag);
    output_ = memory::desc(out, type, tag);
    // Weights are added up in float32, and rounded once.
    weight_ = packed ? *packed : memory::desc(weight, d.result == Convolution::kWeight ? memory::data_type::f32 : type, Tag::any);

    constexpr auto kDirect = dnnl::algorithm::convolution_direct;
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    // Of the forward direction, a hint for the others; in the weight's own dtype.
    const memory::desc hint(weight, type, Tag::any);
    const dnnl::convolution_forward::primitive_desc forward(
        {dnnl::prop_kind::forward, kDirect, input_, d.result == Convolution::kWeight ? hint : weight_, output_, stride, dilation, low,
         high},
        attributes, cpu_engine());
    auto take = [&](const auto& pd, auto primitive, memory::desc used) {
      primitive_ = std::move(primitive);
      scratchpad_ = pd.scratchpad_desc();
      weight_ = std::move(used);
    };
    switch (d.result) {
      case Convolution::kOutput: take(forward, dnnl::convolution_forward(forward), forward.weights_desc()); break;
      case Convolution::kInput: {
        const dnnl::convolution_backward_data::primitive_desc pd({kDirect, input_, weight_, output_, stride, dilation, low, high},
                                                                 attributes, cpu_engine(), forward);
        take(pd, dnnl::convolution_backward_data(pd), pd.weights_desc());
        break;
      }
      case Convolution::kWeight: {
        const dnnl::convolution_backward_weights::primitive_desc pd({kDirect, input_, weight_, output_, stride, dilation, low, high},
                                                                    attributes, cpu_engine(), forward);
        take(pd, dnnl::convolution_backward_weights(pd), pd.diff_weights_desc());
        break;
      }
    }
  }

  const memory::desc& weight() const { return weight_; }
  dnnl::memory scratchpad() const { return {scratchpad_, cpu_engine()}; }

  void run(Convolution::Role result, void* input, void* weight, void* output, dnnl::stream& stream, const dnnl::memory& scratch) const {
    const dnnl::memory x(input_, cpu_engine(), input), w(weight_, cpu_engine(), weight), y(output_, cpu_engine(), output);
    primitive_.execute(stream, {{result == Convolution::kInput ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, x},
                                {result == Convolution::kWeight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, w},
                                {result == Convolution::kOutput ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, y},
                                {DNNL_ARG_SCRATCHPAD, scratch}});
  }

 private:
  memory::desc input_, weight_, output_, scratchpad_;
  dnnl::primitive primitive_;
};

class OneDnnConvolution final : public Routine {
 public:
  explicit OneDnnConvolution(const kernel::ConvDesc& d) : d_(d), chunk_(chunk_of(d)), chunks_(divide_up(d.geometry.batch, chunk_)) {
    const Convolution& c = d.geometry;
    full_.emplace(d, chunk_, std::nullopt);
    const memory::desc packed = full_->weight();
    if (const std::int64_t rest = c.batch % chunk_) rest_.emplace(d, rest, packed);
    const Shape plain = c.shape(Convolution::kWeight);
    memory::dims strides(packed.dims().size());
    std::int64_t stride = 1;
    const std::size_t first = c.groups > 1 ? 1 : 0;  // of (groups,) out, in, axes...
    strides[first + 1] = 1;
    stride = c.in / c.groups;
    for (std::size_t i = c.axes.size(); i-- > 0;) {
      strides[first + 2 + i] = stride;
      stride *= c.axes[i].kernel;
    }
    strides[first] = stride;
    if (first) strides[0] = stride * (c.out / c.groups);
    plain_ = memory::desc(packed.dims(), onednn_type(d.dtype), strides);
    const bool pack = d.result != Convolution::kWeight;
    reorder_ = dnnl::reorder({cpu_engine(), pack ? plain_ : packed, cpu_engine(), pack ? packed : plain_});
    packed_bytes_ = divide_up(static_cast<std::int64_t>(packed.get_size()), kAlignment) * kAlignment;
  }

  const char* name() const override { return "convolution"; }
  std::int64_t workspace() const { return packed_bytes_ * (d_.result == Convolution::kWeight ? chunks_ : 1); }

  void run(std::span<void* const> given) const override {
    char* work = static_cast<char*>(given[3]);
    char *input = nullptr, *output = nullptr;
    auto place = [&](Convolution::Role role, void* at) {
      if (role != Convolution::kWeight) (role == Convolution::kInput ? input : output) = static_cast<char*>(at);
    };
    const auto roles = ops::operand_roles(ops::convolution_op(d_.result));
    for (std::size_t i = 0; i < 2; ++i) place(roles[i], given[i]);
    place(d_.result, given[2]);

    const bool weight = d_.result == Convolution::kWeight;
    if (!weight) repack(given[1], work);
    const Convolution& c = d_.geometry;
    const std::int64_t in = bytes_of(c, Convolution::kInput, d_.dtype) / c.batch * chunk_,
                       out = bytes_of(c, Convolution::kOutput, d_.dtype) / c.batch * chunk_;
    runtime::parallel_for_libraries(chunks_, 1, [&](std::int64_t begin, std::int64_t end) {
      dnnl::stream stream(cpu_engine());
      const dnnl::memory scratch = full_->scratchpad();
      for (std::int64_t i = begin; i < end; ++i) {
        const bool rest = rest_ && i + 1 == chunks_;
        (rest ? *rest_ : *full_)
            .run(d_.result, input + i * in, weight ? work + i * packed_bytes_ : work, output + i * out, stream,
                 rest ? rest_->scratchpad() : scratch);
      }
      stream.wait();
    });
    if (!weight) return;
    add_up(reinterpret_cast<float*>(work));
    repack(work, given[2]);
  }

 private:
  void repack(void* from, void* to) const {
    runtime::parallel_for_libraries(1, 1, [&](std::int64_t, std::int64_t) {
      dnnl::stream stream(cpu_engine());
      const bool pack = d_.result != Convolution::kWeight;
      dnnl::memory a(pack ? plain_ : full_->weight(), cpu_engine(), from), b(pack ? full_->weight() : plain_, cpu_engine(), to);
      reorder_.execute(stream, a, b);
      stream.wait();
    });
  }
  // The chunks' weights, into the first.
  void add_up(float* sums) const {
    const std::int64_t n = packed_bytes_ / static_cast<std::int64_t>(sizeof(float));
    const auto some = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t chunk = 1; chunk < chunks_; ++chunk) {
        const float* more = sums + chunk * n;
        for (std::int64_t i = begin; i < end; ++i) sums[i] += more[i];
      }
    };
    constexpr std::int64_t kBlock = 4096, kGrain = 16;  // elements that stay in the nearest cache; blocks that are worth a thread
    runtime::parallel_for(divide_up(n, kBlock), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) some(i * kBlock, std::min(n, (i + 1) * kBlock));
    });
  }

  kernel::ConvDesc d_;
  std::int64_t chunk_, chunks_, packed_bytes_ = 0;
  std::optional<Part> full_, rest_;
  memory::desc plain_;
  dnnl::reorder reorder_;
};

// Of nothing.
class NoConvolution final : public Routine {
 public:
  explicit NoConvolution(const kernel::ConvDesc& d) : bytes_(static_cast<std::size_t>(bytes_of(d.geometry, d.result, d.dtype))) {}
  const char* name() const override { return "convolution"; }
  void run(std::span<void* const> given) const override { std::memset(given[2], 0, bytes_); }

 private:
  std::size_t bytes_;
};

}  // namespace

Convolver make_convolution(const kernel::ConvDesc& d) {
  if (d.geometry.work() == 0) return {std::make_shared<NoConvolution>(d), 0};
  Convolver made;
  std::string error;
  // The library's primitives remember the number of threads for which they were made: one.
  runtime::parallel_for_libraries(1, 1, [&](std::int64_t, std::int64_t) {
    try {
      auto routine = std::make_shared<OneDnnConvolution>(d);
      made.workspace = routine->workspace();
      made.routine = std::move(routine);
    } catch (const dnnl::error& e) {
      error = e.what();
    }
  });
  if (!made.routine) {
    const Convolution& c = d.geometry;
    throw InternalError(str("internal: ", ops::info(ops::convolution_op(d.result)).name, ": oneDNN refuses ", d.dtype, " input ",
                            c.shape(Convolution::kInput), ", weight ", c.shape(Convolution::kWeight), ": ", error));
  }
  return made;
}

}  // namespace sinter::backends
