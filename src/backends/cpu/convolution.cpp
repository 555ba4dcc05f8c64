// Convolutions by oneDNN. The batch is cut into chunks whose number is one of the shapes alone, and each chunk is one thread's; the weight
// gets the sum over the chunks in their order. Of few examples, each is cut into bands of rows of its output. So the bits depend on no
// number of threads. Weights are packed as the library likes them; inputs and outputs stay as they lie.
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

constexpr std::int64_t kChunkWork = 1'000'000;          // multiplications that are worth a call
constexpr std::int64_t kMostChunks = 64;                // so many threads can share the work
constexpr std::int64_t kMostSums = 16, kSums = 4;       // weights that are added up: at most, and in any case
constexpr std::int64_t kSumsMemory = 4;                 // ... in between, those that take so many times the memory of input and output
constexpr std::int64_t kMostBands = 16, kBandRows = 4;  // of all examples; of an output
constexpr std::int64_t kBandWork = 4'000'000;           // multiplications that are worth a band
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

// Rows of the output, and the rows of the input that they see.
struct Band {
  std::int64_t output, input;             // the first
  ConvAxis axis;                          // of an input that ends where the band's does
  bool operator==(const Band& o) const {  // of one primitive
    return axis.input == o.axis.input && axis.low == o.axis.low && axis.high == o.axis.high;
  }
};
// The bands into which each example is cut, the whole if that is not worth it.
std::vector<Band> bands_of(const kernel::ConvDesc& d) {
  const Convolution& c = d.geometry;
  const ConvAxis& whole = c.axes[0];
  const std::vector<Band> one{{0, 0, whole}};
  const std::int64_t rows = whole.output(),
                     count = std::min<std::int64_t>({kMostBands / c.batch, rows / kBandRows, c.work() / c.batch / kBandWork});
  if (d.result != Convolution::kOutput || count < 2) return one;
  std::vector<Band> bands;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t begin = rows * i / count, end = rows * (i + 1) / count;
    const std::int64_t first = begin * whole.stride - whole.low,
                       last = (end - 1) * whole.stride - whole.low + (whole.kernel - 1) * whole.dilation;
    const std::int64_t from = std::max<std::int64_t>(first, 0), to = std::min<std::int64_t>(last + 1, whole.input);
    if (from >= to) return one;  // a band of padding
    bands.push_back({begin, from, {to - from, whole.kernel, whole.stride, from - first, last + 1 - to, whole.dilation}});
  }
  return bands;
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
  explicit OneDnnConvolution(const kernel::ConvDesc& d) : d_(d) {
    const Convolution& c = d.geometry;
    const std::vector<Band> bands = bands_of(d);
    if (bands.size() > 1)
      cut_examples(bands);
    else
      cut_batch();
    const memory::desc packed = parts_[0]->weight();
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
  std::int64_t workspace() const {
    return packed_bytes_ * (d_.result == Convolution::kWeight ? static_cast<std::int64_t>(pieces_.size()) : 1);
  }

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
    runtime::parallel_for_libraries(static_cast<std::int64_t>(pieces_.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      dnnl::stream stream(cpu_engine());
      std::vector<dnnl::memory> scratch;
      for (const auto& part : parts_) scratch.push_back(part->scratchpad());
      for (std::int64_t i = begin; i < end; ++i) {
        const Piece& piece = pieces_[static_cast<std::size_t>(i)];
        parts_[piece.part]->run(d_.result, input + piece.input, weight ? work + i * packed_bytes_ : work, output + piece.output, stream,
                                scratch[piece.part]);
      }
      stream.wait();
    });
    if (!weight) return;
    add_up(reinterpret_cast<float*>(work));
    repack(work, given[2]);
  }

 private:
  std::int64_t example(Convolution::Role role) const { return bytes_of(d_.geometry, role, d_.dtype) / d_.geometry.batch; }
  std::size_t add_part(const kernel::ConvDesc& d, std::int64_t examples) {
    parts_.push_back(std::make_unique<Part>(d, examples, parts_.empty() ? std::nullopt : std::optional(parts_[0]->weight())));
    return parts_.size() - 1;
  }
  void cut_batch() {
    const std::int64_t batch = d_.geometry.batch, chunk = chunk_of(d_);
    add_part(d_, chunk);
    if (batch % chunk) add_part(d_, batch % chunk);
    for (std::int64_t at = 0; at < batch; at += chunk)
      pieces_.push_back({at + chunk > batch ? 1u : 0u, at * example(Convolution::kInput), at * example(Convolution::kOutput)});
  }
  void cut_examples(const std::vector<Band>& bands) {
    const std::int64_t in = example(Convolution::kInput) / d_.geometry.axes[0].input,
                       out = example(Convolution::kOutput) / d_.geometry.axes[0].output();
    std::vector<std::size_t> part(bands.size());
    for (std::size_t i = 0; i < bands.size(); ++i) {
      const auto same = static_cast<std::size_t>(std::find(bands.begin(), bands.end(), bands[i]) - bands.begin());
      kernel::ConvDesc d = d_;
      d.geometry.axes[0] = bands[i].axis;
      part[i] = same < i ? part[same] : add_part(d, 1);
    }
    for (std::int64_t n = 0; n < d_.geometry.batch; ++n)
      for (std::size_t i = 0; i < bands.size(); ++i)
        pieces_.push_back(
            {part[i], n * example(Convolution::kInput) + bands[i].input * in, n * example(Convolution::kOutput) + bands[i].output * out});
  }
  void repack(void* from, void* to) const {
    runtime::parallel_for_libraries(1, 1, [&](std::int64_t, std::int64_t) {
      dnnl::stream stream(cpu_engine());
      const bool pack = d_.result != Convolution::kWeight;
      const memory::desc& packed = parts_[0]->weight();
      dnnl::memory a(pack ? plain_ : packed, cpu_engine(), from), b(pack ? packed : plain_, cpu_engine(), to);
      reorder_.execute(stream, a, b);
      stream.wait();
    });
  }
  // The chunks' weights, into the first.
  void add_up(float* sums) const {
    const std::int64_t n = packed_bytes_ / static_cast<std::int64_t>(sizeof(float));
    const auto some = [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t chunk = 1; chunk < pieces_.size(); ++chunk) {
        const float* more = sums + static_cast<std::int64_t>(chunk) * n;
        for (std::int64_t i = begin; i < end; ++i) sums[i] += more[i];
      }
    };
    constexpr std::int64_t kBlock = 4096, kGrain = 16;  // elements that stay in the nearest cache; blocks that are worth a thread
    runtime::parallel_for(divide_up(n, kBlock), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) some(i * kBlock, std::min(n, (i + 1) * kBlock));
    });
  }

  // A number of examples, or a band of one: which primitive, and where its input and output begin, in bytes.
  struct Piece {
    std::size_t part;
    std::int64_t input, output;
  };

  kernel::ConvDesc d_;
  std::int64_t packed_bytes_ = 0;
  std::vector<std::unique_ptr<Part>> parts_;  // the first decides how weights are packed
  std::vector<Piece> pieces_;
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

WithWorkspace make_convolution(const kernel::ConvDesc& d) {
  if (d.geometry.work() == 0) return {std::make_shared<NoConvolution>(d), 0};
  WithWorkspace made;
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
