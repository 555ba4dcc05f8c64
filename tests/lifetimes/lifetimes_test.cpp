// The library serves until the last instruction of a program: destructors of global and thread_local objects, handlers of atexit() and
// threads that nobody waits for may use it while the program ends. Each case is a process.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "sinter/sinter.h"

namespace sinter::tests {
namespace {

bool near(const Array& got, std::vector<double> expected) {
  const std::vector<double> g = got.astype(Dtype::float64).to_vector<double>();
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (g.size() != expected.size() || !(std::abs(g[i] - expected[i]) <= 1e-5)) return false;
  return true;
}

Array compiled_before(const Array& x) {
  static auto& f = *new auto(compile([](const Array& a) { return a * 2 + 1; }));
  return f(x);
}

// What is done with x = {1, 2}, and whether the result is right. Nothing of it was done before, unless it says so.
struct Use {
  const char* name;
  bool (*right)(const Array& x);
  bool by_library = false;  // oneDNN and OpenBLAS end with main(): threads that use them later crash, now and then
};
const Use kUses[] = {
    {"operation", [](const Array& x) { return near(sinh(x) - 1, {std::sinh(1.0) - 1, std::sinh(2.0) - 1}); }},
    {"constant", [](const Array&) { return near(Array({2.0, 3.0}), {2, 3}); }},
    {"trace", [](const Array& x) { return near(compile([](const Array& a) { return (a * 1 + 0) * a; })(x), {1, 4}); }},
    {"reduction",
     [](const Array& x) { return near(compile([](const Array& a) { return max(exp(-a)) + sum(a); })(x), {3 + std::exp(-1)}); }},
    {"call again", [](const Array& x) { return near(compiled_before(x), {3, 5}); }},
    {"text", [](const Array& x) { return compile([](const Array& a) { return tan(a); }, {.name = "of_tan"}).graph(x).size() > 20; }},
    {"random", [](const Array&) { return near(floor(random::uniform({2})), {0, 0}); }},
    {"seed", [](const Array&) { return random::seed(3), near(floor(random::uniform({3})), {0, 0, 0}); }},
    {"random in a trace",
     [](const Array& x) { return near(compile([](const Array& a) { return floor(random::uniform({2})) + a; })(x), {1, 2}); }},
    {"matmul", [](const Array&) { return near(sum(matmul(ones({30, 40}), ones({40, 30}))), {36000}); }, true},
    {"float64 matmul",
     [](const Array&) { return near(sum(matmul(full({30, 40}, 1.0, Dtype::float64), full({40, 30}, 1.0, Dtype::float64))), {36000}); },
     true},
    {"convolution", [](const Array&) { return near(sum(conv2d(ones({1, 8, 8, 3}), ones({4, 3, 3, 3}))), {4 * 36 * 27}); }, true},
    {"solve", [](const Array& x) { return near(linalg::solve(eye(2) * 2, x), {0.5, 1}); }, true},
    {"sort", [](const Array& x) { return near(sort(-x), {-2, -1}); }},
    {"gradient", [](const Array& x) { return near(grad([](const Array& a) { return sum(a * a * a); })(x), {3, 12}); }},
    {"batch", [](const Array& x) { return near(vmap([](const Array& a) { return a * a; })(x), {1, 4}); }},
    {"loop", [](const Array& x) { return near(fori_loop(0, 3, [](const Array&, const Array& a) { return a * 2; }, x), {8, 16}); }},
    {"save",
     [](const Array& x) {
       const std::filesystem::path file = std::filesystem::temp_directory_path() / ("sinter_lifetimes_" + std::to_string(getpid()));
       save_safetensors(file.string(), {{"x", x + 5}});
       const bool right = near(load_safetensors(file.string()).arrays.at("x"), {6, 7});
       return std::filesystem::remove(file) && right;
     }},
    {"print", [](const Array& x) { return (std::ostringstream() << x * 3).str().find('6') != std::string::npos; }},
    {"error",
     [](const Array& x) {
       try {
         x + ones({3});
       } catch (const ShapeError&) {
         return true;
       }
       return false;
     }},
    {"clear the cache", [](const Array& x) { return clear_cache(), near(x + 7, {8, 9}); }},
};

// ---- in the child ---------------------------------------------------------------------------------------------------------------

std::span<const Use> uses;
Array* x = nullptr;
void run_uses() {
  for (const Use& u : uses) std::printf("%s: %s\n", u.name, u.right(*x) ? "right" : "wrong"), std::fflush(stdout);
}

struct InDestructor {
  bool run = false;
  ~InDestructor() {
    if (run) run_uses();
  }
};
InDestructor global;
thread_local InDestructor of_thread;

struct Moment {
  const char* name;
  void (*arrange)();  // run_uses() at that moment, after this call
};
const Moment kMoments[] = {
    {"destructor of a global object", [] { global.run = true; }},
    {"destructor of a thread_local object at the end of its thread",
     [] {
       std::thread([] {
         of_thread.run = true;  // older than what the library keeps for this thread
         (compiled_before(*x) + random::uniform({2})).eval();
       }).join();
     }},
    {"destructor of a thread_local object of the main thread", [] { of_thread.run = true; }},
    {"end of a thread after its thread_local objects",
     [] {
       std::thread([] {
         pthread_key_t key;
         pthread_key_create(&key, [](void*) { run_uses(); });
         pthread_setspecific(key, x);
         (compiled_before(*x) + random::uniform({2})).eval();
       }).join();
     }},
    {"handler of atexit()", [] { std::atexit(run_uses); }},
};

// The line of this name in a table, or all of it for none.
template <class T>
std::span<const T> find(std::span<const T> all, const char* name) {
  if (!name) return all;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::strcmp(all[i].name, name) == 0) return all.subspan(i, 1);
  return {};
}

TEST(Child, DISABLED_UsesTheLibraryAtTheEnd) {
  uses = find<Use>(kUses, std::getenv("SINTER_TEST_USE"));
  const std::span<const Moment> moments = find<Moment>(kMoments, std::getenv("SINTER_TEST_MOMENT"));
  ASSERT_TRUE(!uses.empty() && moments.size() == 1);
  x = new Array({1.0f, 2.0f});
  (compiled_before(*x) + random::uniform({2})).eval();
  moments[0].arrange();
}

TEST(Child, DISABLED_LeavesThreadsBehind) {
  std::atomic<int> started{0};
  for (std::size_t t = 0; t < 3; ++t) {
    std::thread([&started, t] {
      for (std::size_t i = t;; i += 3) {
        const Array y = Array({1.0f, 2.0f});
        const Use& u = kUses[i % std::size(kUses)];
        if (!u.by_library && !u.right(y)) std::puts("wrong"), std::abort();
        // Code that nobody has made before.
        sum(compile([i](const Array& a) {
          Array b = a;
          for (std::size_t n = i; n; n /= 2) b = n % 2 ? sin(b) : b + a;
          return b;
        })(y))
            .eval();
        ++started;
      }
    }).detach();
  }
  while (started < 3 * std::atoi(std::getenv("SINTER_TEST_ROUNDS"))) std::this_thread::yield();
}

// ---- in the parent --------------------------------------------------------------------------------------------------------------

struct Ended {
  int status = -1;
  std::string said;
};
std::ostream& operator<<(std::ostream& out, const Ended& e) { return out << "status " << e.status << ", said: " << e.said; }

Ended run_child(const char* test, const std::map<std::string, std::string>& environment) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string filter = std::string("--gtest_filter=Child.") + test;
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 1), dup2(ends[1], 2);
    close(ends[0]), close(ends[1]);
    for (const auto& [variable, value] : environment) setenv(variable.c_str(), value.c_str(), 1);
    alarm(60);  // what hangs fails
    execl(self.c_str(), self.c_str(), filter.c_str(), "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
    _exit(127);
  }
  close(ends[1]);
  Ended e;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) e.said.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  waitpid(child, &e.status, 0);
  return e;
}

void expect_right(const Moment& moment, std::span<const Use> expected, std::map<std::string, std::string> environment) {
  environment["SINTER_TEST_MOMENT"] = moment.name;
  const Ended e = run_child("DISABLED_UsesTheLibraryAtTheEnd", environment);
  EXPECT_EQ(e.status, 0) << moment.name << ": " << e;
  for (const Use& u : expected)
    EXPECT_NE(e.said.find(std::string(u.name).append(": right\n")), std::string::npos) << u.name << ", " << moment.name << ": " << e;
}

TEST(AtTheEnd, EveryUseIsRight) {
  for (const Moment& m : kMoments) expect_right(m, kUses, {});
}
TEST(AtTheEnd, EachUseIsRightAlone) {
  if (!std::getenv("SINTER_TEST_ALL")) GTEST_SKIP() << "a hundred processes: set SINTER_TEST_ALL";
  for (const Moment& m : kMoments)
    for (const Use& u : kUses) expect_right(m, {&u, 1}, {{"SINTER_TEST_USE", u.name}});
}
TEST(AtTheEnd, ThreadsMayStillUseTheLibrary) {
  for (const int rounds : {0, 1, 3, 8}) {
    const Ended e = run_child("DISABLED_LeavesThreadsBehind", {{"SINTER_TEST_ROUNDS", std::to_string(rounds)}});
    EXPECT_EQ(e.status, 0) << rounds << " rounds: " << e;
  }
}

}  // namespace
}  // namespace sinter::tests
