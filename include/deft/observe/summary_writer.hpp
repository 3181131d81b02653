// SPDX-License-Identifier: Apache-2.0
// deft/observe/summary_writer.hpp: event files, which TensorBoard shows.
#pragma once
#include <cstdint>
#include <deft/core/ndarray.hpp>
#include <deft/graph/graph_def.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace deft {

/// Writes an event file into a folder: `tensorboard --logdir FOLDER` shows it. A tag names a series
/// of values, `step` is their place in it, usually the global step; slashes group tags
/// ("layer1/weights"). Several threads may use one writer. All functions throw unavailable if the
/// file cannot be written, resource_exhausted if the disk is full, and those that take a tag
/// invalid_argument if it is not UTF-8.
class summary_writer {
 public:
  /// Creates the folder, and a file in it that no other writer uses.
  explicit summary_writer(const std::string& folder);
  /// @cond moves
  summary_writer(summary_writer&&) noexcept;
  summary_writer& operator=(summary_writer&&) noexcept;
  /// @endcond
  /// Ends the file; an error is logged.
  ~summary_writer();

  /// A point of a curve, which the file keeps as a float: `writer.scalar("loss", 0.25, step)`.
  void scalar(std::string_view tag, double value, std::int64_t step);
  /// How the elements of `values`, numbers of any dtype and shape, are distributed. Elements that
  /// are not finite are left out.
  /// @{
  void histogram(std::string_view tag, const any_array& values, std::int64_t step);
  template <ext::element T, std::int64_t... E>
  void histogram(std::string_view tag, const ndarray<T, E...>& values, std::int64_t step) {
    histogram(tag, values.array(), step);
  }
  /// @}

  /// An image of (height, width) or (height, width, channels), with 1 (grey), 3 (RGB) or 4 (RGBA)
  /// channels, of uint8, or of float or double from 0 to 1. Throws invalid_argument otherwise.
  /// @{
  void image(std::string_view tag, const any_array& pixels, std::int64_t step);
  template <ext::element T, std::int64_t... E>
  void image(std::string_view tag, const ndarray<T, E...>& pixels, std::int64_t step) {
    image(tag, pixels.array(), step);
  }
  /// @}

  /// Text, in which TensorBoard understands Markdown. Bytes that are not UTF-8 appear as "\xfc".
  void text(std::string_view tag, std::string_view markdown, std::int64_t step);
  /// A graph: its nodes, their devices and inputs. `s.describe(fetches…).placed` is the graph as a
  /// session has placed it.
  void graph(const graph_def& g);

  /// Training begins, or goes on, at `step`: TensorBoard forgets what the folder's files had for it
  /// and for later ones, as of steps that are made again after a recovery (TensorFlow's
  /// SessionLog.START).
  void start_at(std::int64_t step);

  /// Hands everything to the operating system, so that TensorBoard sees it.
  void flush();
  /// The path of the event file.
  const std::string& file() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

namespace detail {
/// Throws invalid_argument if TensorBoard could not read it.
void check_summary_tag(std::string_view tag);
}  // namespace detail

}  // namespace deft
