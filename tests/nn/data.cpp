// Batches of data.
#include <algorithm>
#include <thread>

#include "nn/models.h"

namespace sinter::tests {
namespace {

TEST(Data, batches_hold_every_element_once) {
  const Array x = reshape(arange(46), {23, 2}), y = transpose(reshape(arange(46, float64), {2, 23})), z = astype(arange(23), uint8);
  for (const int prefetch : {0, 1, 3}) {
    for (const bool drop : {false, true}) {
      const data::Batches batches({x, y, z}, 5, {.drop_last = drop, .prefetch = prefetch});
      EXPECT_EQ(batches.count(), drop ? 4 : 5);
      EXPECT_EQ(batches.size(), 23);
      std::vector<std::vector<int>> orders;
      for (const std::uint64_t key : {1, 1, 2}) {
        std::vector<int>& order = orders.emplace_back();
        int n = 0;
        for (const std::vector<Array>& b : batches.epoch(random::key(key))) {
          EXPECT_EQ(b[0].shape(), (Shape{++n == 5 ? 3 : 5, 2}));
          for (int row : b[2].to_vector<int>()) order.push_back(row);
          EXPECT_TRUE(same(b[0], take(x, b[2], 0)) && same(b[1], take(y, b[2], 0)));
          EXPECT_EQ(b[1].dtype(), float64);
        }
      }
      EXPECT_EQ(orders[0], orders[1]);
      EXPECT_NE(orders[0], orders[2]);
      std::ranges::sort(orders[0]);
      EXPECT_EQ(std::ranges::unique(orders[0]).begin() - orders[0].begin(), drop ? 20 : 23);
    }
  }
  std::vector<int> all;
  for (const auto& b : data::Batches({z}, 4).in_order())
    for (int row : b[0].to_vector<int>()) all.push_back(row);
  EXPECT_TRUE(std::ranges::is_sorted(all) && all.size() == 23);
}

TEST(Data, an_epoch_may_end_early) {
  const data::Batches batches({arange(1000)}, 10);
  for (int i = 0; i < 20; ++i) {
    auto epoch = batches.epoch(random::key(1));
    std::vector<Array> b;
    for (int k = 0; k < i % 3; ++k) EXPECT_TRUE(epoch.next(b));
  }
  int n = 0;
  for (const auto& b : data::Batches({zeros({0, 3})}, 4).in_order()) n += static_cast<int>(b.size());
  EXPECT_EQ(n, 0);
}

// Each epoch has a thread of its own, and all of them read the same arrays while others compute with these.
TEST(Data, epochs_side_by_side) {
  const Array x = reshape(arange(40000, float32), {200, 200});
  const data::Batches batches({x, sum(x, 1)}, 7);
  std::vector<std::thread> threads;
  std::vector<float> totals(4);
  for (std::size_t i = 0; i < totals.size(); ++i)
    threads.emplace_back([&, i] {
      auto add = compile([](Array& total, const Array& rows, const Array& sums) { total = total + sum(rows) - sum(sums); });
      Array total = zeros({});
      for (const std::vector<Array>& b : batches.epoch(random::key(i))) add(total, b[0], b[1]);
      totals[i] = total.item<float>();
    });
  for (std::thread& t : threads) t.join();
  for (float total : totals) EXPECT_EQ(total, 0);
}

TEST(Data, mistakes) {
  EXPECT_EQ(thrown<ShapeError>([] { data::Batches({zeros({3}), zeros({4})}, 2); }),
            "Batches: the first axes differ; got (3) and (4); make them equal");
  EXPECT_EQ(thrown<Error>([] { data::Batches({zeros({3})}, 0); }), "Batches: the size is not positive; got 0; use 1 or more");
  EXPECT_EQ(thrown<Error>([] { data::Batches({}, 1); }), "Batches: there are no arrays; got none; give one or more");
}

}  // namespace
}  // namespace sinter::tests
