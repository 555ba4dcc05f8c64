// A transformer that reads and writes characters learns to spell numbers. Its text is made here: lines such as "6241 is six thousand two
// hundred and forty one". It is trained on nine tenths of the numbers up to 9999 and asked for the others, which it never saw: one
// character at a time, with a cache of keys and values.
#include <sinter/sinter.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>

using namespace sinter;

namespace {

constexpr int kMost = 9999, kLength = 60, kBatch = 32, kSteps = 1500, kWidth = 64, kLayers = 2, kHeads = 4, kAsked = 50;

// ---- the text
// -----------------------------------------------------------------------------------------------------------------------------

const std::string kCharacters = "\n 0123456789abcdefghijklmnopqrstuvwxyz";

std::string in_words(int n) {
  static const char* const kSmall[] = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                       "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                       "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static const char* const kTens[] = {"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
  // What follows a part: nothing, or the rest behind `between`.
  auto rest = [](int m, const char* between) { return m == 0 ? std::string() : between + in_words(m); };
  if (n < 20) return kSmall[n];
  if (n < 100) return kTens[n / 10] + rest(n % 10, " ");
  if (n < 1000) return in_words(n / 100) + " hundred" + rest(n % 100, " and ");
  return in_words(n / 1000) + " thousand" + rest(n % 1000, n % 1000 < 100 ? " and " : " ");
}
std::string question(int n) { return std::to_string(n) + " is "; }
std::string line(int n) { return question(n) + in_words(n) + "\n"; }
// One number in ten, whatever its digits.
bool held_out(int n) { return (static_cast<unsigned>(n) * 2654435761u >> 16) % 10 == 0; }

int code(char c) { return static_cast<int>(kCharacters.find(c)); }

// All lines but those held out: characters (n, length), and what follows each, -1 where it does not count: in the number, which cannot be
// foreseen, and after the end.
struct Lines {
  Array characters, next;
};
Lines make_lines() {
  std::vector<std::int32_t> characters, next;
  for (int n = 0; n <= kMost; ++n) {
    if (held_out(n)) continue;
    const std::string text = line(n);
    const std::size_t answer = question(n).size();
    for (std::size_t i = 0; i < kLength; ++i) {
      characters.push_back(code(i < text.size() ? text[i] : '\n'));
      next.push_back(i + 1 >= answer && i + 1 < text.size() ? code(text[i + 1]) : -1);
    }
  }
  const Shape shape{characters.size() / kLength, kLength};
  return {Array(characters, shape), Array(next, shape)};
}

// ---- the model
// ----------------------------------------------------------------------------------------------------------------------------

struct Writer {
  nn::Embedding table{static_cast<std::int64_t>(kCharacters.size()), kWidth};
  nn::TransformerEncoder encoder{
      kLayers, kWidth, kHeads, {.activation = nn::Activation::gelu, .attention = {.causal = true, .rope = true}}};
  nn::Linear out{kWidth, static_cast<std::int64_t>(kCharacters.size())};
  Array operator()(const Array& characters) const { return out(encoder(table(characters))); }
  Array operator()(const Array& characters, std::vector<nn::KeyValueCache>& caches) const {
    return out(encoder(table(characters), caches));
  }
  SINTER_FIELDS(table, encoder, out)
};

Array loss(const Writer& model, const Array& characters, const Array& next) {
  return cross_entropy(model(characters), next, {.ignore_index = -1, .reduction = Reduction::mean});
}
Array train_step(Writer& model, optim::AdamW& optimizer, const Array& characters, const Array& next) {
  auto [value, gradients] = nn::value_and_grad(loss)(model, characters, next);
  optimizer.update(model, optim::clip_grad_norm(gradients, 1).first);
  return value;
}

// The likeliest character after `characters` (batch, 1), whose predecessors are in the caches.
Array write_one(const Writer& model, std::vector<nn::KeyValueCache>& caches, const Array& characters) {
  return argmax(model(characters, caches), -1);
}

// The answers to questions of one length, as many as kAsked or fewer. Every step has the same shapes, so two traces serve all: the first
// step of a cache, which makes its arrays, and the others.
template <class Step>
std::vector<std::string> answer(const Writer& model, const Step& step, const std::vector<std::string>& questions) {
  std::vector<nn::KeyValueCache> caches(kLayers, nn::KeyValueCache(kLength));
  std::vector<std::string> answers(questions.size());
  std::vector<bool> ended(questions.size());
  std::vector<std::int32_t> next(kAsked);
  for (std::size_t i = 0; i < kLength && !std::ranges::all_of(ended, std::identity()); ++i) {
    for (std::size_t k = 0; k < questions.size(); ++k) {
      if (i < questions[k].size()) {
        next[k] = code(questions[k][i]);
      } else {
        ended[k] = ended[k] || next[k] == code('\n');
        if (!ended[k]) answers[k] += kCharacters[static_cast<std::size_t>(next[k])];
      }
    }
    next = step(model, caches, Array(next, Shape{kAsked, 1})).template to_vector<std::int32_t>();
  }
  return answers;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

int main() {
  random::seed(1);
  const Lines training = make_lines();
  const data::Batches batches({training.characters, training.next}, kBatch, {.drop_last = true});
  Writer model;
  std::printf("%lld parameters, %lld lines such as \"%.*s\"\n", static_cast<long long>(nn::parameter_count(model)),
              static_cast<long long>(batches.size()), static_cast<int>(line(6241).size()) - 1, line(6241).c_str());

  optim::AdamW optimizer(optim::warm_up(50, optim::cosine_decay(3e-3, kSteps - 50, 1e-5)), 0.01);
  optimizer.init(model);
  auto step = compile(train_step, {.name = "train_step"});
  auto write = compile(write_one, {.name = "write_one"});
  auto ask = [&](int n) { return answer(model, write, {question(n)})[0]; };

  const double start = now();
  int done = 0;
  for (std::uint64_t epoch = 0; done < kSteps; ++epoch) {
    for (const std::vector<Array>& batch : batches.epoch(random::key(epoch))) {
      const Array value = step(model, optimizer, batch[0], batch[1]);
      if (++done % 200 == 0)
        std::printf("step %4d  loss %.4f  %4.1f s   %s%s\n", done, value.item<float>(), now() - start, question(8472).c_str(),
                    ask(8472).c_str());
      std::fflush(stdout);
      if (done == kSteps) break;
    }
  }

  // All numbers that were held out, in batches of one length.
  std::map<std::size_t, std::vector<int>> by_length;
  for (int n = 0; n <= kMost; ++n)
    if (held_out(n)) by_length[question(n).size()].push_back(n);
  int asked = 0, right = 0;
  std::size_t written = 0;
  const double begin = now();
  for (const auto& [length, numbers] : by_length) {
    for (std::size_t first = 0; first < numbers.size(); first += kAsked) {
      std::vector<std::string> questions;
      for (std::size_t i = first; i < std::min(first + kAsked, numbers.size()); ++i) questions.push_back(question(numbers[i]));
      const std::vector<std::string> answers = answer(model, write, questions);
      for (std::size_t i = 0; i < answers.size(); ++i) {
        const bool good = answers[i] == in_words(numbers[first + i]);
        if (asked % 90 == 0 || !good) std::printf("  %s%s%s\n", questions[i].c_str(), answers[i].c_str(), good ? "" : "   (wrong)");
        ++asked, right += good, written += questions[i].size() + answers[i].size();
      }
    }
  }
  std::printf("%d of %d numbers that it had not seen are right (%.1f%%); asked in %.1f s\n", right, asked, 100.0 * right / asked,
              now() - begin);
}
