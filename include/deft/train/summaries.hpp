// SPDX-License-Identifier: Apache-2.0
// deft/train/summaries.hpp: values of training for TensorBoard.
#pragma once
#include <cstdint>
#include <deft/train/hook.hpp>
#include <string>
#include <vector>

namespace deft {

/// What TensorBoard shows under a tag: the values of a tensor, or a text. The functions that make
/// one throw invalid_argument for a tag that is not UTF-8.
struct summary {
  /// As what TensorBoard shows it.
  enum class kind : std::uint8_t { scalar, histogram, image, text } shown_as;  ///< how it is shown
  std::string tag;        ///< names the series; slashes group tags: "layer1/weights"
  any_tensor value = {};  ///< what a run fetches; empty for a text
  std::string text = {};  ///< Markdown; empty for a tensor
};
/// A curve of a scalar's values. Throws invalid_argument if `value` is not a scalar of numbers.
summary scalar_summary(std::string tag, const any_tensor& value,
                       ext::source_location w = ext::here());
/// How the elements of `value`, numbers, are distributed. Throws invalid_argument for bool.
summary histogram_summary(std::string tag, const any_tensor& value,
                          ext::source_location w = ext::here());
/// An image of (height, width) or (height, width, channels), as summary_writer::image has it.
/// Throws invalid_argument for other shapes and dtypes.
summary image_summary(std::string tag, const any_tensor& value,
                      ext::source_location w = ext::here());

/// A text, in which TensorBoard understands Markdown, such as the options of a training run. It is
/// written with the first run, also after a recovery.
summary text_summary(std::string tag, std::string markdown);

/// Writes these summaries into an event file in `folder`, at the global step that a run reaches:
/// those of the first run, also after a recovery, and of one run whenever the global step has grown
/// by `every` or more. Other runs do not fetch them. On workers other than the chief it does
/// nothing. The graph of the first run, with the device of each node, is written too. Where
/// training goes on at an earlier step than the folder's files have seen, TensorBoard forgets what
/// they had for the steps that are made again. The session's constructor throws failed_precondition
/// if the graph has no global step or the file cannot be written, invalid_argument if two summaries
/// have one tag. This function throws invalid_argument if `every` is below 1.
hook_ref save_summaries(const std::string& folder, std::vector<summary> summaries,
                        std::int64_t every = 100);

}  // namespace deft
