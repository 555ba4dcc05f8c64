#include <algorithm>
#include <cstring>
#include <map>

#include "base/check.h"
#include "kernel/kernel.h"
#include "ops/elements.h"

namespace sinter::kernel {
namespace {

using ops::Lanes;
using ops::Wide;
using Word = std::uint64_t;

// Values live on one of two machines: outside Vector loops all are uniform, on a machine of one lane; inside, on a machine that has a
// lane for each of the loop's copies. A frame is a machine with its values; a loop releases what an iteration made.
struct Frame {
  Lanes machine;
  std::vector<Wide> values;  // by Ref
  int active;                // lanes that run: all but in a tail
  Frame(int lanes, std::size_t refs) : machine(lanes), values(refs), active(lanes) {}
};

class Interpreter {
 public:
  Interpreter(const Kernel& k, int lanes, std::int64_t begin, std::int64_t end, const Word* block)
      : k_(k), lanes_(lanes), begin_(begin), end_(end), block_(block), close_(k.body.size()), outer_uses_(k.body.size()) {
    std::vector<Ref> open;
    for (Ref r = 0; r < k.body.size(); ++r) {
      if (k.body[r].code == Code::Loop) open.push_back(r);
      if (k.body[r].code == Code::End) {
        close_[open.back()] = r;
        open.pop_back();
      }
    }
    for (Ref r = 0; r < k.body.size(); ++r) {
      if (k.body[r].code == Code::Loop && k.body[r].kind == LoopKind::Vector) find_outer_uses(r);
    }
  }

  void run() {
    Frame frame(1, k_.body.size());
    run(frame, 0, static_cast<Ref>(k_.body.size()));
  }

 private:
  // What a Vector loop uses of the values before it.
  void find_outer_uses(Ref loop) {
    std::vector<Ref>& uses = outer_uses_[loop];
    for (Ref r = loop + 1; r < close_[loop]; ++r) {
      for (Ref in : k_.body[r].in) {
        if (in < loop) uses.push_back(in);
      }
    }
    std::sort(uses.begin(), uses.end());
    uses.erase(std::unique(uses.begin(), uses.end()), uses.end());
  }

  void run(Frame& f, Ref from, Ref to) {
    for (Ref r = from; r < to; ++r) {
      const Inst& i = k_.body[r];
      switch (i.code) {
        case Code::Arg: set(f, r, block_[k_.buffers.size() + static_cast<std::size_t>(i.imm)]); break;
        case Code::Range: set(f, r, static_cast<Word>(i.imm == 0 ? begin_ : end_)); break;
        case Code::Scalar: set(f, r, block_[k_.buffers.size() + static_cast<std::size_t>(k_.integers + i.imm)]); break;
        case Code::Const: set(f, r, static_cast<Word>(i.imm)); break;
        case Code::Loop:
          if (i.kind == LoopKind::Vector)
            vector_loop(f, r);
          else
            serial_loop(f, r);
          r = close_[r];
          break;
        case Code::Compute: {
          Wide in[3];
          const auto operands = static_cast<std::size_t>(ops::info(i.op).operands);
          for (std::size_t n = 0; n < operands; ++n) in[n] = f.values[i.in[n]];
          f.values[r] = ops::expand(i.op, i.dtype, {in, operands});
          break;
        }
        case Code::Cast: f.values[r] = ops::cast(f.values[i.in[0]], i.dtype); break;
        case Code::Load: load(f, r); break;
        case Code::Store: store(f, r); break;
        case Code::Combine: combine(f, r); break;
        case Code::Tile: tile(f, r); break;
        case Code::Prefetch:
        case Code::Carry:
        case Code::End: break;  // the loops' own
      }
    }
  }

  void set(Frame& f, Ref r, Word word) { f.values[r] = ops::wide_of(f.machine, k_.body[r].dtype, {&word, 1}); }
  static std::vector<Word> words_of(Frame& f, Ref r) {
    const ops::Words words = ops::words_of(f.machine, f.values[r]);
    std::vector<Word> copy(std::max(words.low.size(), words.high.size()));
    for (std::size_t l = 0; l < copy.size(); ++l) copy[l] = words[l];
    return copy;
  }
  static std::int64_t integer(Frame& f, Ref r) { return static_cast<std::int64_t>(words_of(f, r)[0]); }
  Ref first_after_carries(Ref loop) const {
    Ref r = loop + 1;
    while (k_.body[r].code == Code::Carry) ++r;
    return r;
  }

  void serial_loop(Frame& f, Ref loop) {
    const Inst& l = k_.body[loop];
    const bool parallel = l.kind == LoopKind::Parallel;
    const std::int64_t begin = parallel ? begin_ : integer(f, l.in[0]), end = parallel ? end_ : integer(f, l.in[1]);
    const Ref body = first_after_carries(loop);
    std::vector<std::vector<Word>> carried;
    for (Ref c = loop + 1; c < body; ++c) carried.push_back(words_of(f, k_.body[c].in[0]));
    const Lanes::Mark mark = f.machine.mark();
    auto define_carries = [&] {
      f.machine.release(mark);
      for (Ref c = loop + 1; c < body; ++c) f.values[c] = ops::wide_of(f.machine, k_.body[c].dtype, carried[c - loop - 1]);
    };
    for (std::int64_t i = begin; i < end; ++i) {
      define_carries();
      set(f, loop, static_cast<Word>(i));
      run(f, body, close_[loop]);
      for (Ref c = loop + 1; c < body; ++c) carried[c - loop - 1] = words_of(f, k_.body[c].in[1]);
    }
    define_carries();
  }

  void vector_loop(Frame& outer, Ref loop) {
    const Inst& l = k_.body[loop];
    const int width = lanes_ * l.unroll;
    const auto size = static_cast<std::size_t>(width);
    Frame& f = frames_.try_emplace(width, width, k_.body.size()).first->second;
    f.machine.release({0, 0});
    for (Ref r : outer_uses_[loop]) f.values[r] = ops::wide_of(f.machine, result_dtype(k_, r), words_of(outer, r));
    const std::int64_t begin = integer(outer, l.in[0]), end = integer(outer, l.in[1]);
    const Ref body = first_after_carries(loop);
    for (Ref c = loop + 1; c < body; ++c) partials_[c].assign(size, words_of(outer, k_.body[c].in[0])[0]);
    std::vector<Word> index(size);
    const Lanes::Mark mark = f.machine.mark();
    for (std::int64_t i = begin; i < end; i += width) {
      f.machine.release(mark);
      f.active = static_cast<int>(std::min<std::int64_t>(width, end - i));
      for (std::size_t lane = 0; lane < size; ++lane) index[lane] = static_cast<Word>(i) + lane;
      f.values[loop] = ops::wide_of(f.machine, Dtype::int64, index);
      for (Ref c = loop + 1; c < body; ++c) f.values[c] = ops::wide_of(f.machine, k_.body[c].dtype, partials_[c]);
      run(f, body, close_[loop]);
      for (Ref c = loop + 1; c < body; ++c) {
        const ops::Words next = ops::words_of(f.machine, f.values[k_.body[c].in[1]]);
        for (int lane = 0; lane < f.active; ++lane) partials_[c][static_cast<std::size_t>(lane)] = next[static_cast<std::size_t>(lane)];
      }
    }
  }

  // By halves: copy c is lane c mod lanes of unrolled part c / lanes, so that halving the copies folds parts first, then lanes.
  void combine(Frame& f, Ref r) {
    const Inst& i = k_.body[r];
    std::vector<Word> left = partials_.at(i.in[0]);
    for (std::size_t half = left.size() / 2; half > 0; half /= 2) {
      const std::span<const Word> pair[] = {{left.data(), half}, {left.data() + half, half}};
      std::vector<Word> folded(half);
      ops::evaluate(i.op, i.dtype, pair, folded);
      left = folded;
    }
    set(f, r, left[0]);
  }

  void tile(Frame& f, Ref r) {
    const Inst& i = k_.body[r];
    const auto bytes = static_cast<std::size_t>(size_of(i.dtype));
    const auto* base = reinterpret_cast<const std::byte*>(block_[i.imm]);
    auto* to = reinterpret_cast<std::byte*>(block_[i.to]);
    const std::vector<Word> index = words_of(f, i.in[0]), place = words_of(f, i.in[1]);
    const Word step = words_of(f, i.in[2])[0], count = words_of(f, i.in[3])[0];
    for (std::size_t l = 0; l < static_cast<std::size_t>(f.active); ++l)
      for (std::size_t n = 0; n < count; ++n)
        std::memcpy(to + (place[l] + n * step) * bytes, base + (index[index.size() == 1 ? 0 : l] + n) * bytes, bytes);
  }

  static Word read(const std::byte* at, int bytes) {
    Word w = 0;
    std::memcpy(&w, at, static_cast<std::size_t>(bytes));
    return w;
  }

  void load(Frame& f, Ref r) {
    const Inst& i = k_.body[r];
    const int bytes = size_of(i.dtype);
    const auto* base = reinterpret_cast<const std::byte*>(block_[i.imm]);
    const std::vector<Word> condition = i.in[1] == kNone ? std::vector<Word>{1} : words_of(f, i.in[1]);
    const ops::Words index = ops::words_of(f.machine, f.values[i.in[0]]);
    Word words[kMaxLanes];
    const std::size_t count = std::max(index.low.size(), condition.size());
    for (std::size_t l = 0; l < count; ++l) {
      const bool reads = (count == 1 || l < static_cast<std::size_t>(f.active)) && condition[condition.size() == 1 ? 0 : l] != 0;
      words[l] = reads ? read(base + static_cast<std::int64_t>(index.low[index.low.size() == 1 ? 0 : l]) * bytes, bytes) : 0;
    }
    f.values[r] = ops::wide_of(f.machine, i.dtype, {words, count});
  }

  void store(Frame& f, Ref r) {
    const Inst& i = k_.body[r];
    const int bytes = size_of(i.dtype);
    auto* base = reinterpret_cast<std::byte*>(block_[i.imm]);
    const std::vector<Word> index = words_of(f, i.in[0]);
    const ops::Words value = ops::words_of(f.machine, f.values[i.in[1]]);
    for (std::size_t l = 0; l < static_cast<std::size_t>(f.active); ++l) {
      const Word word = value[l];
      std::memcpy(base + static_cast<std::int64_t>(index[index.size() == 1 ? 0 : l]) * bytes, &word, static_cast<std::size_t>(bytes));
    }
  }

  static constexpr std::size_t kMaxLanes = 256;  // lanes times unroll

  const Kernel& k_;
  int lanes_;
  std::int64_t begin_, end_;
  const Word* block_;
  std::vector<Ref> close_;                     // the End of each Loop
  std::vector<std::vector<Ref>> outer_uses_;   // by Vector loop
  std::map<int, Frame> frames_;                // by lanes
  std::map<Ref, std::vector<Word>> partials_;  // of Vector loops, by Carry
};

}  // namespace

void interpret(const Kernel& k, int lanes, std::int64_t begin, std::int64_t end, const std::uint64_t* block) {
  check(lanes >= 1 && lanes <= 32, "kernel::interpret: lanes are 1 to 32");
  Interpreter(k, lanes, begin, end, block).run();
}

}  // namespace sinter::kernel
