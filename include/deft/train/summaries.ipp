// SPDX-License-Identifier: Apache-2.0
// deft/train/summaries.ipp: a hook that fetches summaries now and then.
#pragma once
#include <deft/observe/summary_writer.hpp>
#include <deft/op/global_step.hpp>
#include <deft/session/launch/task.hpp>
#include <deft/train/due_steps.hpp>
#include <deft/train/summaries.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace deft {
namespace {

summary checked_summary(summary::kind shown_as, std::string tag, const any_tensor& value, bool fits,
                        const char* expected, ext::source_location w) {
  detail::check_summary_tag(tag);
  if (!fits)
    throw error(
        errc::invalid_argument,
        ext::str("[summary] \"", tag, "\" expects ", expected, ", and got ", value.handle().type()),
        name_of(value), w);
  return {.shown_as = shown_as, .tag = std::move(tag), .value = value};
}

bool is_image(const ext::tensor_type& t) {
  const std::int64_t channels = t.shape.rank() == 3 ? t.shape[2] : 1;
  const bool fits = channels == dyn || channels == 1 || channels == 3 || channels == 4;
  return (t.shape.rank() == 2 || t.shape.rank() == 3) && fits &&
         (t.type == dtype::uint8 || ext::is_floating(t.type));
}

class summary_hook final : public hook {
 public:
  summary_hook(std::string folder, std::vector<summary> summaries, std::int64_t every)
      : folder_(std::move(folder)), summaries_(std::move(summaries)), due_(every) {}

  void begin() override {
    detail::expect_global_step("save_summaries");
    std::set<std::string_view> tags;
    for (const summary& s : summaries_)
      if (!tags.insert(s.tag).second)
        ext::fail(errc::invalid_argument, "[save_summaries] two summaries have the tag \"", s.tag,
                  "\"");
  }
  void after_create(run_context& context) override {
    if (!context.self().is_chief()) return;
    if (!writer_) try {
        writer_.emplace(folder_);
      } catch (const error& e) {
        // `unavailable` would mean that a task was lost.
        if (e.code() != errc::unavailable) throw;
        ext::fail(errc::failed_precondition, e.message());
      }
    due_.restart();
    starts_ = true;
  }
  run_arguments before_run(run_context&) override {
    if (!writer_) return {};
    std::vector<any_tensor> all;
    if (due_.next())
      for (const summary& s : summaries_)
        if (s.value.valid()) all.push_back(s.value);
    return {.fetches = std::move(all), .global_step = true, .graph = starts_ ? &graph_ : nullptr};
  }
  void after_run(run_context& context, std::span<const any_array> values) override {
    if (!writer_) return;
    const std::int64_t step = context.global_step();
    if (std::exchange(starts_, false)) {
      writer_->start_at(step);  // which makes TensorBoard forget the graph and texts, too
      writer_->graph(std::exchange(graph_, {}));
      for (const summary& s : summaries_)
        if (!s.value.valid()) writer_->text(s.tag, s.text, step);
    }
    const bool due = due_.next();
    if (due) {
      auto value = values.begin();
      for (const summary& s : summaries_)
        if (s.value.valid()) write(s, *value++, step);
      writer_->flush();
    }
    due_.ran(step, due);
  }
  void end(run_context&) override {
    if (writer_) writer_->flush();
    writer_.reset();
  }

 private:
  void write(const summary& s, const any_array& value, std::int64_t step) {
    switch (s.shown_as) {
      case summary::kind::scalar:
        return ext::visit_dtype(value.type(), [&]<class T>() {
          writer_->scalar(s.tag, static_cast<double>(value.item<T>()), step);
        });
      case summary::kind::histogram:
        return writer_->histogram(s.tag, value, step);
      case summary::kind::image:
        return writer_->image(s.tag, value, step);
      case summary::kind::text:
        return;
    }
  }

  std::string folder_;
  std::vector<summary> summaries_;
  detail::due_steps due_;
  bool starts_ = false;  ///< the next run is the first of a session, or after a recovery
  graph_def graph_;
  std::optional<summary_writer> writer_;
};

}  // namespace

summary scalar_summary(std::string tag, const any_tensor& value, ext::source_location w) {
  return checked_summary(summary::kind::scalar, std::move(tag), value,
                         value.rank() == 0 && ext::is_numeric(value.type()), "a scalar of numbers",
                         w);
}
summary histogram_summary(std::string tag, const any_tensor& value, ext::source_location w) {
  return checked_summary(summary::kind::histogram, std::move(tag), value,
                         ext::is_numeric(value.type()), "numbers", w);
}
summary image_summary(std::string tag, const any_tensor& value, ext::source_location w) {
  return checked_summary(summary::kind::image, std::move(tag), value,
                         is_image(value.handle().type()),
                         "(height, width) or (height, width, channels) with 1, 3 or 4 channels, of "
                         "uint8, float or double",
                         w);
}
summary text_summary(std::string tag, std::string markdown) {
  detail::check_summary_tag(tag);
  return {.shown_as = summary::kind::text, .tag = std::move(tag), .text = std::move(markdown)};
}

hook_ref save_summaries(const std::string& folder, std::vector<summary> summaries,
                        std::int64_t every) {
  if (every < 1)
    ext::fail(errc::invalid_argument,
              "[save_summaries] expects a number of steps above 0, and got ", every);
  return std::make_shared<summary_hook>(folder, std::move(summaries), every);
}

}  // namespace deft
