// SPDX-License-Identifier: Apache-2.0
// deft/data/digits.ipp: draws digits from bitmap glyphs, by the distance of each pixel to their
// strokes.
#pragma once
#include <algorithm>
#include <cmath>
#include <deft/core/philox.hpp>
#include <deft/data/digits.hpp>
#include <vector>

namespace deft {
namespace detail {

inline constexpr int glyph_width = 7, glyph_height = 9, glyph_styles = 3;

// Ten digits in three styles each, row by row; strokes run between neighbouring '#'.
inline constexpr const char* digit_glyphs[10 * glyph_styles] = {
    // clang-format off
    // 0
    "..###.." ".#...#." "#.....#" "#.....#" "#.....#"
    "#.....#" "#.....#" ".#...#." "..###..",
    ".#####." ".#...#." ".#...#." ".#...#." ".#...#."
    ".#...#." ".#...#." ".#...#." ".#####.",
    "...###." "..#...#" ".#....#" ".#....#" "#.....#"
    "#....#." "#....#." "#...#.." ".###...",
    // 1
    "...#..." "..##..." ".#.#..." "...#..." "...#..."
    "...#..." "...#..." "...#..." ".#####.",
    "...#..." "...#..." "...#..." "...#..." "...#..."
    "...#..." "...#..." "...#..." "...#...",
    "....#.." "...##.." "..#.#.." "....#.." "....#.."
    "...#..." "...#..." "...#..." "...#...",
    // 2
    "..###.." ".#...#." "#.....#" "......#" ".....#."
    "....#.." "..##..." ".#....." "#######",
    ".#####." ".....#." ".....#." ".....#." ".#####."
    ".#....." ".#....." ".#....." ".#####.",
    ".####.." "#....#." ".....#." ".....#." "....#.."
    ".###..." "#..##.." "#.#..#." ".#....#",
    // 3
    ".#####." "#.....#" "......#" ".....#." "..###.."
    ".....#." "......#" "#.....#" ".#####.",
    ".#####." ".....#." ".....#." ".....#." ".#####."
    ".....#." ".....#." ".....#." ".#####.",
    "#######" ".....#." "....#.." "...##.." ".....#."
    "......#" "......#" "#....#." ".####..",
    // 4
    ".....#." "....##." "...#.#." "..#..#." ".#...#."
    "#######" ".....#." ".....#." ".....#.",
    ".#...#." ".#...#." ".#...#." ".#...#." ".#####."
    ".....#." ".....#." ".....#." ".....#.",
    "#......" "#...#.." "#...#.." "#...#.." ".######"
    "....#.." "....#.." "....#.." "....#..",
    // 5
    "#######" "#......" "#......" "#.###.." "##...#."
    "......#" "......#" "#....#." ".####..",
    ".#####." ".#....." ".#....." ".#....." ".#####."
    ".....#." ".....#." ".....#." ".#####.",
    ".######" ".#....." ".#....." "#......" "#####.."
    ".....#." "......#" ".....#." "#####..",
    // 6
    "...###." "..#...." ".#....." "#......" "#.###.."
    "##...#." "#.....#" ".#...#." "..###..",
    ".#####." ".#....." ".#....." ".#....." ".#####."
    ".#...#." ".#...#." ".#...#." ".#####.",
    "....#.." "...#..." "..#...." ".#....." "#.###.."
    "##...#." "#.....#" "#....#." ".####..",
    // 7
    "#######" "......#" ".....#." "....#.." "...#..."
    "...#..." "..#...." "..#...." "..#....",
    ".#####." ".....#." ".....#." ".....#." ".....#."
    ".....#." ".....#." ".....#." ".....#.",
    "######." ".....#." ".....#." "....#.." ".#####."
    "...#..." "..#...." "..#...." ".#.....",
    // 8
    "..###.." ".#...#." "#.....#" ".#...#." "..###.."
    ".#...#." "#.....#" ".#...#." "..###..",
    ".#####." ".#...#." ".#...#." ".#...#." ".#####."
    ".#...#." ".#...#." ".#...#." ".#####.",
    "..##..." ".#..#.." ".#..#.." "..##..." ".#..#.."
    "#....#." "#....#." "#....#." ".####..",
    // 9
    "..###.." ".#...#." "#.....#" ".#...##" "..###.#"
    "......#" ".....#." "....#.." ".###...",
    ".#####." ".#...#." ".#...#." ".#...#." ".#####."
    ".....#." ".....#." ".....#." ".#####.",
    "..####." ".#....#" "#.....#" "#.....#" ".#...##"
    "..###.#" "......#" "......#" "......#",
    // clang-format on
};

/// The distance to the nearest stroke of each glyph, in units of its bitmap, on a finer grid.
class stroke_distances {
 public:
  static constexpr int margin = 2, finer = 4;  // units around the bitmap; grid points per unit
  static constexpr int width = (glyph_width - 1 + 2 * margin) * finer + 1;
  static constexpr int height = (glyph_height - 1 + 2 * margin) * finer + 1;
  static constexpr float far = 4;  // more than any stroke reaches

  static const stroke_distances& instance() {
    static const auto& d = *new stroke_distances;
    return d;
  }

  /// Interpolates linearly between the grid points.
  float at(int glyph, float x, float y) const {
    float gx = (x + margin) * finer, gy = (y + margin) * finer;
    if (!(gx >= 0 && gy >= 0 && gx < width - 1 && gy < height - 1)) return far;
    int ix = static_cast<int>(gx), iy = static_cast<int>(gy);
    float fx = gx - static_cast<float>(ix), fy = gy - static_cast<float>(iy);
    const float* p = &grid_[static_cast<std::size_t>((glyph * height + iy) * width + ix)];
    float top = p[0] + fx * (p[1] - p[0]), bottom = p[width] + fx * (p[width + 1] - p[width]);
    return top + fy * (bottom - top);
  }

 private:
  struct segment {
    float x, y, dx, dy;
  };

  stroke_distances() : grid_(10 * glyph_styles * width * height) {
    float* out = grid_.data();
    for (const char* glyph : digit_glyphs) {
      auto strokes = strokes_of(glyph);
      for (int iy = 0; iy < height; ++iy)
        for (int ix = 0; ix < width; ++ix)
          *out++ = distance(strokes, static_cast<float>(ix) / finer - margin,
                            static_cast<float>(iy) / finer - margin);
    }
  }

  static std::vector<segment> strokes_of(const char* glyph) {
    auto on = [&](int x, int y) {
      return x >= 0 && y >= 0 && x < glyph_width && y < glyph_height &&
             glyph[y * glyph_width + x] == '#';
    };
    std::vector<segment> s;
    for (int y = 0; y < glyph_height; ++y)
      for (int x = 0; x < glyph_width; ++x) {
        if (!on(x, y)) continue;
        auto fx = static_cast<float>(x), fy = static_cast<float>(y);
        if (on(x + 1, y)) s.push_back({fx, fy, 1, 0});
        if (on(x, y + 1)) s.push_back({fx, fy, 0, 1});
        // Diagonals, unless a corner joins the two already.
        if (on(x + 1, y + 1) && !on(x + 1, y) && !on(x, y + 1)) s.push_back({fx, fy, 1, 1});
        if (on(x - 1, y + 1) && !on(x - 1, y) && !on(x, y + 1)) s.push_back({fx, fy, -1, 1});
      }
    return s;
  }
  static float distance(const std::vector<segment>& strokes, float x, float y) {
    float nearest = far * far;
    for (const segment& s : strokes) {
      float px = x - s.x, py = y - s.y;
      float t = (px * s.dx + py * s.dy) / (s.dx * s.dx + s.dy * s.dy);
      t = std::clamp(t, 0.f, 1.f);
      float ex = px - t * s.dx, ey = py - t * s.dy;
      nearest = std::min(nearest, ex * ex + ey * ey);
    }
    return std::sqrt(nearest);
  }

  std::vector<float> grid_;
};

/// Without a branch: with noise, v < 0 is unpredictable.
inline float clamp_to_unit(float v) { return std::min(0.5f * (v + std::abs(v)), 1.f); }

}  // namespace detail

namespace ext {

int draw_digit(std::uint64_t seed, std::uint64_t index, std::span<float, 784> pixels) {
  using namespace detail;
  philox_stream random(seed, index);
  auto digit = static_cast<int>(random.below(10));
  int glyph = digit * glyph_styles + static_cast<int>(random.below(glyph_styles));

  float shift_x = random.uniform(-2.5f, 2.5f), shift_y = random.uniform(-2.5f, 2.5f);
  float angle = random.uniform(-0.25f, 0.25f);  // radians: 14 degrees
  float scale_y = random.uniform(1.75f, 2.5f);  // pixels per unit of the glyph
  float scale_x = scale_y * random.uniform(0.75f, 1.2f);
  float slant = random.uniform(-0.25f, 0.25f);
  float bend = random.uniform(-0.06f, 0.06f);  // units per unit squared
  float radius = random.uniform(0.7f, 1.7f);   // half a stroke's width, in pixels
  float ink = random.uniform(0.7f, 1.f);
  float noise = random.uniform(0.f, 0.25f);

  // By series, as libraries differ in the last bit of sin and cos.
  float a2 = angle * angle;
  float sine = angle * (1 - a2 / 6 * (1 - a2 / 20)), cosine = 1 - a2 / 2 * (1 - a2 / 12);
  float per_x = 1 / scale_x, per_y = 1 / scale_y;
  float to_pixels = std::sqrt(scale_x * scale_y);
  constexpr float middle_x = (glyph_width - 1) / 2.f, middle_y = (glyph_height - 1) / 2.f;
  const auto& distances = stroke_distances::instance();

  // Two bytes of noise per pixel, drawn first, so that the loop has no calls and few branches.
  std::uint32_t grain[2 * 784 / 4];
  for (auto& g : grain) g = random.word();
  const auto* grains = reinterpret_cast<const unsigned char*>(grain);

  float* out = pixels.data();
  for (int row = 0; row < 28; ++row, out += 28, grains += 56) {
    float py = static_cast<float>(row) - 13.5f - shift_y;
    for (int column = 0; column < 28; ++column) {
      float px = static_cast<float>(column) - 13.5f - shift_x;
      float y = (cosine * py - sine * px) * per_y;
      float x = (cosine * px + sine * py) * per_x + slant * y + bend * y * y;
      out[column] = radius + 0.5f - distances.at(glyph, x + middle_x, y + middle_y) * to_pixels;
    }
    for (int column = 0; column < 28; ++column) {
      float v = ink * clamp_to_unit(out[column]);
      v += noise * (static_cast<float>(grains[2 * column] + grains[2 * column + 1]) / 255 - 1);
      out[column] = clamp_to_unit(v);
    }
  }
  return digit;
}

}  // namespace ext

ext::digit_set draw_digits(std::int64_t count, std::uint64_t seed, std::uint64_t first) {
  if (count < 0)
    ext::fail(errc::invalid_argument, "[draw_digits] expects a count of at least 0, got ", count);
  any_array images(dtype::float32, {count, 784}), labels(dtype::int32, {count});
  float* pixels = images.mutable_data<float>();
  for (std::int64_t i = 0; i < count; ++i)
    labels.mutable_data<std::int32_t>()[i] = ext::draw_digit(
        seed, first + static_cast<std::uint64_t>(i), std::span<float, 784>(pixels + i * 784, 784));
  return {ndarray<float, dyn, 784>(std::move(images)),
          ndarray<std::int32_t, dyn>(std::move(labels))};
}

}  // namespace deft
