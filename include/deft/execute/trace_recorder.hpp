// SPDX-License-Identifier: Apache-2.0
// deft/execute/trace_recorder.hpp: notes when the nodes of a part run.
#pragma once
#include <deft/core/step_trace.hpp>
#include <deft/kernels/context.hpp>
#include <mutex>
#include <vector>

namespace deft::ext {

/// Listens to one run of a part. The part must outlive `take`.
class trace_recorder final : public step_observer {
 public:
  trace_recorder();
  void begin(const node_label& n, std::uint32_t lane) override;
  void end(const node_label& n, std::uint32_t lane) override;
  /// What ran so far.
  std::vector<trace_event> take() const;

 private:
  struct span {
    const node_label* node;
    std::uint32_t lane;
    std::int64_t begin, end;
  };
  std::int64_t now() const;

  const std::int64_t offset_;  ///< of the steady clock to the time since 1970
  mutable std::mutex guard_;
  std::vector<span> spans_;
  std::vector<std::size_t> last_;  ///< the latest span of each lane
};

}  // namespace deft::ext
