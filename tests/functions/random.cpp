// Random numbers against those of MLX 0.32 (CPU) from the same keys.
#include "functions/cases.h"

namespace {

struct Golden {
  std::uint64_t seed;
  std::vector<std::uint32_t> split;  // in three
  std::vector<float> unit, half, brain, range, normal, half_normal;
};
const Golden kGoldens[] = {
    {0,
     {0x9312778bu, 0x19850714u, 0xbdf17afdu, 0xe4e8dfbeu, 0x98b89669u, 0x7408518du},
     {0x1.2624fp-1f, 0x1.985072p-4f, 0x1.92989cp-2f, 0x1.c9d1cp-1f, 0x1.31712cp-1f},
     {0x1.264p-1f, 0x1.984p-4f, 0x1.928p-2f, 0x1.c9cp-1f, 0x1.318p-1f},
     {0x1.26p-1f, 0x1.98p-4f, 0x1.92p-2f, 0x1.cap-1f, 0x1.32p-1f},
     {0x1.69ce44p+1f, -0x1.bf97c8p-1f, 0x1.2a4744p+0f, -0x1.094334p-1f},
     {0x1.80b47p-3f, -0x1.48891cp+0f, -0x1.159906p-2f, 0x1.3fc264p+0f, 0x1.f4acb2p-3f},
     {0x1.6p+0f, -0x1.91p+0f, 0x1.d5p-2f, 0x1.bfcp+1f, 0x1.7dp+0f}},
    {42,
     {0xbad56946u, 0xde837c89u, 0xdf4f11dfu, 0x354ba891u, 0x2fc69b62u, 0x8cdb9797u},
     {0x1.75aad2p-1f, 0x1.bd06fap-1f, 0x1.924e1cp-3f, 0x1.aa5d44p-3f, 0x1.7e34dcp-3f},
     {0x1.75cp-1f, 0x1.bdp-1f, 0x1.924p-3f, 0x1.aa4p-3f, 0x1.7e4p-3f},
     {0x1.76p-1f, 0x1.bep-1f, 0x1.92p-3f, 0x1.aap-3f, 0x1.7ep-3f},
     {0x1.bdcf48p-1f, 0x1.243f8p+1f, -0x1.b3e3c2p+0f, -0x1.b02f5p+0f},
     {0x1.397adap-1f, 0x1.1f61f8p+0f, -0x1.b575ap-1f, -0x1.a01e76p-1f, -0x1.c7e32p-1f},
     {0x1.1ccp+1f, 0x1.9f8p+1f, -0x1.6a8p-1f, -0x1.4p-1f, -0x1.8f8p-1f}},
    {0x123456789abcdef,
     {0xb56625d1u, 0xca66f4e5u, 0x25061b0au, 0xa83ecbadu, 0xbbce5c09u, 0x23683a9bu},
     {0x1.6acc4cp-1f, 0x1.94cdeap-1f, 0x1.4e0c9ap-1f, 0x1.507d98p-1f, 0x1.779cb8p-1f},
     {0x1.6acp-1f, 0x1.94cp-1f, 0x1.4ep-1f, 0x1.508p-1f, 0x1.778p-1f},
     {0x1.6ap-1f, 0x1.94p-1f, 0x1.4ep-1f, 0x1.5p-1f, 0x1.78p-1f},
     {-0x1.a96ep-1f, -0x1.8bfdbep+0f, 0x1.b61a4p-4f, -0x1.5e07bp-2f},
     {0x1.1939eep-1f, 0x1.9e039ep-1f, 0x1.915278p-2f, 0x1.9e9284p-2f, 0x1.3f6188p-1f},
     {0x1.0c8p+1f, 0x1.4fp+1f, 0x1.c88p+0f, 0x1.cf8p+0f, 0x1.1fcp+1f}},
};

void expect_near(const Array& x, const std::vector<float>& expected, float ulp, const char* what) {
  const std::vector<float> got = x.to_vector<float>();
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 2 * ulp * std::abs(expected[i])) << what << ' ' << i;
}

TEST(Random, equal_to_mlx) {
  for (const Golden& g : kGoldens) {
    const Array k = random::key(g.seed);
    EXPECT_EQ(random::split(k, 3).to_vector<std::uint32_t>(), g.split);
    EXPECT_EQ(random::uniform({5}, float32, k).to_vector<float>(), g.unit);
    EXPECT_EQ(random::uniform({5}, float16, k).to_vector<float>(), g.half);
    EXPECT_EQ(random::uniform({5}, bfloat16, k).to_vector<float>(), g.brain);
    EXPECT_EQ(random::uniform(-2, 3, {4}, float32, k).to_vector<float>(), g.range);
    expect_near(random::normal({5}, float32, 0, 1, k), g.normal, 0x1p-23f, "normal");
    expect_near(random::normal({5}, float16, 1, 2, k), g.half_normal, 0x1p-10f, "normal float16");
  }
}

TEST(Random, narrow_bits_are_the_bytes_of_words) {
  const Array k = random::key(5);
  const std::vector<std::uint32_t> words = random::bits({4}, 4, k).to_vector<std::uint32_t>();
  const std::vector<std::uint16_t> halves = random::bits({8}, 2, k).to_vector<std::uint16_t>();
  const std::vector<std::uint8_t> bytes = random::bits({2, 8}, 1, k).to_vector<std::uint8_t>();
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(bytes[i], static_cast<std::uint8_t>(words[i / 4] >> (8 * (i % 4)))) << i;
    if (i < 8) {
      EXPECT_EQ(halves[i], static_cast<std::uint16_t>(words[i / 2] >> (16 * (i % 2)))) << i;
    }
  }
  EXPECT_EQ(random::bits({3}, 1, k).dtype(), uint8);
}

TEST(Random, the_generator_follows_mlx) {
  random::seed(7);
  const std::vector<float> expected = {0x1.078f8cp-1f, 0x1.4180p-4f, 0x1.9a432cp-1f, 0x1.79b64p-3f, 0x1.ee6308p-3f, 0x1.247d8ep-1f};
  EXPECT_EQ(concatenate({random::uniform({2}), random::uniform({2}), random::uniform({2})}).to_vector<float>(), expected);
  expect_near(random::normal({3}), {0x1.a88cbep-1f, -0x1.598a9p+0f, -0x1.6c882ap+0f}, 0x1p-23f, "normal");
}

TEST(Random, moments) {
  const Array u = random::uniform({200000}, float32, random::key(1)), n = random::normal({200000}, float32, 3, 2, random::key(2));
  EXPECT_NEAR(u.mean().item<float>(), 0.5f, 0.003f);
  EXPECT_NEAR(u.var().item<float>(), 1 / 12.f, 0.001f);
  EXPECT_NEAR(n.mean().item<float>(), 3.f, 0.02f);
  EXPECT_NEAR(n.std().item<float>(), 2.f, 0.02f);
  EXPECT_LT(u.max().item<float>(), 1.f);
  EXPECT_GE(u.min().item<float>(), 0.f);
}

TEST(Random, bounds_broadcast) {
  const Array x = random::uniform(Array({0.f, 10.f}), Array({1.f, 20.f}), {3, 2}, float32, random::key(0));
  EXPECT_EQ(x.shape(), (Shape{3, 2}));
  EXPECT_TRUE(all(x < Array({1.f, 20.f})).item<bool>() && all(x >= Array({0.f, 10.f})).item<bool>());
  EXPECT_EQ(random::uniform({2}, float64, random::key(0)).dtype(), float64);
}

TEST(Random, uniform_stays_below_high) {
  const struct {
    double low, high;
  } cases[] = {{0, 1},     {1, 1.5},   {256, 257}, {-257, -256}, {-2, -1},    {3, 4},        {-1, 0},       {1, 2},   {1000, 1001},
               {-1001, 1}, {-1, 1e-4}, {0, 1e-7},  {-6e-8, 0},   {-6e4, 6e4}, {-3e38, 3e38}, {-3e38, 1e38}, {5, 1e20}};
  for (const Dtype t : {float16, bfloat16, float32, float64})
    for (const auto& c : cases) {
      const Array low(c.low, t), high(c.high, t);
      if (!all(isfinite(low) && isfinite(high) && low < high).item<bool>()) continue;  // not both numbers of the dtype
      const Array x = random::uniform(low, high, {1 << 17}, t, random::key(5));
      EXPECT_TRUE(all(x >= low && x < high).item<bool>())
          << t << " from " << c.low << " to " << c.high << ": " << min(x) << " to " << max(x);
      const double middle = (c.low + c.high) / 2, far = c.high - c.low;
      if (far > 100 * std::abs(middle) * finfo(t).eps && far > 1e-4) {
        EXPECT_NEAR(mean(astype(x, float64)).item<double>(), middle, 0.01 * far) << t << " from " << c.low << " to " << c.high;
      }
    }
  const Array same = random::uniform(Array({2.f, 3.f}), Array({2.f, 1.f}), {2}, float32, random::key(0));  // empty; backwards
  EXPECT_EQ(same.to_vector<float>()[0], 2.f);
  EXPECT_TRUE(same.to_vector<float>()[1] <= 3.f && same.to_vector<float>()[1] >= 1.f);
}

}  // namespace
