// SPDX-License-Identifier: Apache-2.0
// deft/observe/summary_writer.ipp: TensorFlow's Event messages as records, written with protozero.
#pragma once
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <deft/core/error.hpp>
#include <deft/core/file.hpp>
#include <deft/core/printable.hpp>
#include <deft/data/record.hpp>
#include <deft/observe/summary_writer.hpp>
#include <filesystem>
#include <limits>
#include <mutex>
#include <protozero/pbf_writer.hpp>
#include <vector>

namespace deft {
namespace {

using protozero::pbf_writer;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// The upper ends, exclusive, of a histogram's buckets, as TensorBoard expects them: powers of 1.1
/// on both sides of 0.
const std::vector<double>& bucket_ends() {
  static const auto& ends = *new std::vector<double>([] {
    std::vector<double> positive;
    for (double v = 1e-12; v < 1e20; v *= 1.1) positive.push_back(v);
    std::vector<double> all(positive.rbegin(), positive.rend());
    for (double& v : all) v = -v;
    all.push_back(0);
    all.insert(all.end(), positive.begin(), positive.end());
    all.push_back(std::numeric_limits<double>::max());
    return all;
  }());
  return ends;
}

struct distribution {
  double least = 0, greatest = 0, count = 0, sum = 0, squares = 0;
  std::vector<double> ends, counts;  ///< runs of empty buckets are one
};
distribution distribution_of(const any_array& values) {
  const std::vector<double>& ends = bucket_ends();
  std::vector<double> counts(ends.size());
  distribution d;
  ext::visit_dtype(values.type(), [&]<class T>() {
    for (const T element : values.span<T>()) {
      const double v = static_cast<double>(element);
      if (!std::isfinite(v)) continue;
      d.least = d.count > 0 ? std::min(d.least, v) : v;
      d.greatest = d.count > 0 ? std::max(d.greatest, v) : v;
      ++d.count;
      d.sum += v;
      d.squares += v * v;
      const auto at = std::ranges::upper_bound(ends, v);  // as in TensorFlow
      ++counts[std::min(static_cast<std::size_t>(at - ends.begin()), counts.size() - 1)];
    }
  });
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const bool last_of_empty = i + 1 == ends.size() || counts[i + 1] > 0;
    if (counts[i] == 0 && !last_of_empty) continue;
    d.ends.push_back(ends[i]);
    d.counts.push_back(counts[i]);
  }
  return d;
}

/// The pixels as bytes: shape (height, width, channels).
struct bitmap {
  std::int64_t height, width, channels;
  std::string bytes;
};
bitmap bitmap_of(const any_array& pixels) {
  const dims& shape = pixels.shape();
  const std::int64_t channels = shape.rank() == 3 ? shape[2] : 1;
  const dtype type = pixels.type();
  if (shape.rank() < 2 || shape.rank() > 3 || (channels != 1 && channels != 3 && channels != 4) ||
      shape.elements() == 0 || (type != dtype::uint8 && !ext::is_floating(type)))
    ext::fail(
        errc::invalid_argument,
        "[image] expects (height, width) or (height, width, channels) with 1, 3 or 4 channels, of "
        "uint8, float or double, and got ",
        type, shape);
  bitmap b{shape[0], shape[1], channels, {}};
  ext::visit_dtype(type, [&]<class T>() {
    for (const T v : pixels.span<T>()) {
      if constexpr (ext::is_floating_type<T>)
        b.bytes += static_cast<char>(std::lround(255 * (v >= T(0) ? std::min<double>(v, 1) : 0)));
      else
        b.bytes += static_cast<char>(v);
    }
  });
  return b;
}

void put_big_endian(std::string& to, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(v >> shift);
}
void put_chunk(std::string& to, std::string_view type, const std::string& data) {
  put_big_endian(to, static_cast<std::uint32_t>(data.size()));
  const std::string whole = std::string(type) + data;
  to += whole;
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(whole.data()), whole.size());
  put_big_endian(to, static_cast<std::uint32_t>(crc));
}
/// PNG (RFC 2083), each row as it is.
std::string png_of(const bitmap& b) {
  std::string rows;
  const auto row = static_cast<std::size_t>(b.width * b.channels);
  for (std::size_t y = 0; y < static_cast<std::size_t>(b.height); ++y)
    (rows += '\0').append(b.bytes, y * row, row);
  uLongf size = compressBound(rows.size());
  std::string data(size, '\0');
  compress(reinterpret_cast<Bytef*>(data.data()), &size,
           reinterpret_cast<const Bytef*>(rows.data()), rows.size());
  data.resize(size);
  std::string png("\x89PNG\r\n\x1a\n"), head;
  put_big_endian(head, static_cast<std::uint32_t>(b.width));
  put_big_endian(head, static_cast<std::uint32_t>(b.height));
  const char colours = b.channels == 1 ? 0 : b.channels == 3 ? 2 : 6;
  head.append({8, colours, 0, 0, 0});  // bits of a channel, kind of colour, and no variants
  put_chunk(png, "IHDR", head);
  put_chunk(png, "IDAT", data);
  put_chunk(png, "IEND", "");
  return png;
}

/// The GraphDef that TensorBoard shows.
std::string encoded(const graph_def& g) {
  // Fields of GraphDef and NodeDef.
  constexpr protozero::pbf_tag_type node = 1, name = 1, op = 2, input = 3, device = 4;
  const auto name_of = [](const ext::node_def& n) { return ext::as_utf8(n.name.str()); };
  std::string bytes;
  pbf_writer all(bytes);
  for (const ext::node_def& n : g.nodes) {
    pbf_writer one(all, node);
    one.add_string(name, name_of(n));
    one.add_string(op, n.op->name.data(), n.op->name.size());
    for (const ext::edge_def& e : n.inputs) {
      const std::string from = name_of(g.nodes[e.node]);
      one.add_string(input, e.port == 0 ? from : ext::str(from, ":", e.port));
    }
    for (const auto c : n.controls) one.add_string(input, ext::str("^", name_of(g.nodes[c])));
    if (n.device) one.add_string(device, ext::as_utf8(to_string(*n.device)));
  }
  return bytes;
}

}  // namespace

// TensorBoard would lose the value and the rest of the file.
void detail::check_summary_tag(std::string_view tag) {
  if (!ext::is_utf8(tag))
    ext::fail(errc::invalid_argument, "[summary] \"", ext::printable(tag),
              "\" is not a valid tag: it is not UTF-8");
}

class summary_writer::state {
 public:
  explicit state(const std::string& folder) : file_(new_file(folder)), records_(file_) {
    add([](pbf_writer& event) { event.add_string(file_version_field, "brain.Event:2"); });
    records_.flush();
  }

  const std::string& file() const { return file_; }
  void flush() {
    std::lock_guard lock(guard_);
    records_.flush();
  }

  /// Writes an event that `put` completes.
  template <class F>
  void add(F put) {
    std::string bytes;
    pbf_writer event(bytes);
    event.add_double(wall_time_field, seconds_now());
    put(event);
    std::lock_guard lock(guard_);
    records_.write(bytes);
  }
  /// Writes one value, which `put` completes.
  template <class F>
  void add_value(std::string_view tag, std::int64_t step, F put) {
    detail::check_summary_tag(tag);
    add([&](pbf_writer& event) {
      event.add_int64(step_field, step);
      pbf_writer summary(event, summary_field);
      pbf_writer value(summary, value_field);
      value.add_string(tag_field, tag.data(), tag.size());
      put(value);
    });
  }

  // Fields of Event, Summary and Summary.Value.
  static constexpr protozero::pbf_tag_type wall_time_field = 1, step_field = 2,
                                           file_version_field = 3, graph_field = 4,
                                           summary_field = 5, session_field = 7, value_field = 1,
                                           tag_field = 1, simple_value_field = 2, image_field = 4,
                                           histogram_field = 5, tensor_field = 8,
                                           metadata_field = 9;

 private:
  static std::string new_file(const std::string& folder) {
    std::error_code e;
    std::filesystem::create_directories(folder, e);
    if (e)
      ext::fail(errc::unavailable, "[summary_writer] cannot create ", folder, ": ", e.message());
    static std::atomic<int> count{0};
    char host[256] = "localhost";
    gethostname(host, sizeof host - 1);
    for (;;) {
      const std::string file =
          ext::str(folder, "/events.out.tfevents.", static_cast<std::int64_t>(seconds_now()), ".",
                   host, ".", getpid(), ".", count++);
      // Another machine may have this name, and a process of this number.
      const ext::file_descriptor made(
          ::open(file.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
      if (made || errno != EEXIST) return file;
    }
  }

  std::string file_;
  std::mutex guard_;
  record_writer records_;
};

summary_writer::summary_writer(const std::string& folder) : state_(new state(folder)) {}
summary_writer::summary_writer(summary_writer&&) noexcept = default;
summary_writer& summary_writer::operator=(summary_writer&&) noexcept = default;
summary_writer::~summary_writer() = default;
void summary_writer::flush() { state_->flush(); }
const std::string& summary_writer::file() const { return state_->file(); }

void summary_writer::scalar(std::string_view tag, double value, std::int64_t step) {
  state_->add_value(tag, step, [&](pbf_writer& v) {
    v.add_float(state::simple_value_field, static_cast<float>(value));
  });
}

void summary_writer::histogram(std::string_view tag, const any_array& values, std::int64_t step) {
  if (!ext::plain_dtypes.has(values.type()))
    ext::fail(errc::invalid_argument, "[histogram] expects numbers, and got ", values.type(),
              values.shape());
  const distribution d = distribution_of(values);
  state_->add_value(tag, step, [&](pbf_writer& v) {
    pbf_writer h(v, state::histogram_field);
    const double numbers[] = {d.least, d.greatest, d.count, d.sum, d.squares};
    for (unsigned i = 0; i < 5; ++i) h.add_double(i + 1, numbers[i]);
    h.add_packed_double(6, d.ends.begin(), d.ends.end());
    h.add_packed_double(7, d.counts.begin(), d.counts.end());
  });
}

void summary_writer::image(std::string_view tag, const any_array& pixels, std::int64_t step) {
  const bitmap b = bitmap_of(pixels);
  const std::string png = png_of(b);
  state_->add_value(tag, step, [&](pbf_writer& v) {
    pbf_writer i(v, state::image_field);
    i.add_int32(1, static_cast<std::int32_t>(b.height));
    i.add_int32(2, static_cast<std::int32_t>(b.width));
    i.add_int32(3, static_cast<std::int32_t>(b.channels));
    i.add_bytes(4, png);
  });
}

void summary_writer::text(std::string_view tag, std::string_view markdown, std::int64_t step) {
  state_->add_value(tag, step, [&](pbf_writer& v) {
    {
      // TensorProto: dtype DT_STRING, a shape of one element, the string.
      pbf_writer t(v, state::tensor_field);
      t.add_enum(1, 7);
      {
        pbf_writer shape(t, 2);
        pbf_writer extent(shape, 2);
        extent.add_int64(1, 1);
      }
      t.add_bytes(8, ext::as_utf8(markdown));
    }
    // SummaryMetadata: the plugin that shows it.
    pbf_writer metadata(v, state::metadata_field);
    pbf_writer plugin(metadata, 1);
    plugin.add_string(1, "text");
  });
}

void summary_writer::graph(const graph_def& g) {
  const std::string bytes = encoded(g);
  state_->add([&](pbf_writer& event) { event.add_bytes(state::graph_field, bytes); });
}

void summary_writer::start_at(std::int64_t step) {
  state_->add([&](pbf_writer& event) {
    event.add_int64(state::step_field, step);
    pbf_writer(event, state::session_field).add_enum(1, 1);  // its status: START
  });
}

}  // namespace deft
