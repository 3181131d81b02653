// SPDX-License-Identifier: Apache-2.0
// benchmarks/direct.cpp: the CPU's kernels called directly, without a session, against
// hand-written Eigen. They run on one thread; further rows add a second one.
#include <cmath>
#include <deft/kernels/cpu/device.hpp>
#include <deft/kernels/cpu/kernel_hook.hpp>
#include <deft/kernels/kernel.hpp>
#include <deft/kernels/team.hpp>
#include <deft/op/catalog.hpp>

#include <Eigen/Dense>  // after deft, which keeps g++ from warning of its own intrinsics

#include "bench.hpp"

namespace {

using namespace deft;
using namespace deft::ext;
using array = Eigen::Map<Eigen::ArrayXf, Eigen::Aligned64>;
using unaligned = Eigen::Map<Eigen::ArrayXf>;
using matrix = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

/// Deterministic values of about unit size, of both signs.
any_array filled(const dims& shape) {
  any_array a(dtype::float32, shape);
  std::uint32_t state = 1;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    a.mutable_data<float>()[i] = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-30f;
  }
  return a;
}
array eigen(any_array& a) { return {a.mutable_data<float>(), a.elements()}; }
matrix eigen2(any_array& a) { return {a.mutable_data<float>(), a.shape()[0], a.shape()[1]}; }

/// A kernel with its inputs and outputs, ready to run repeatedly.
class runner {
 public:
  runner(const op_def& op, attr_list attributes, std::vector<any_array> inputs)
      : inputs_(std::move(inputs)) {
    node_.op = &op;
    node_.attributes = std::move(attributes);
    for (const auto& i : inputs_) {
      types_.push_back({i.shape(), i.type()});
      in_.push_back(i.raw());
    }
    std::vector<tensor_type> outputs;
    infer_types(op, {types_, node_.attributes}, outputs);
    node_.outputs = std::move(outputs);
    for (const auto& t : node_.outputs)
      out_.push_back(outputs_.emplace_back(t.type, t.shape).mutable_raw());
    kernel_ = find_cpu_kernel(op.name)->make(node_, types_);
    kernel_->prepare(types_, node_.outputs);
    scratch_ = buffer::host(kernel_->scratch());
  }
  void run() {
    kernel_->run({in_.data(), out_.data(), &step_, scratch_.data()});
    bench::keep(out_);
  }
  void operator()() { run(); }
  const any_array& output(std::size_t i) const { return outputs_[i]; }

 private:
  node_def node_;
  std::vector<tensor_type> types_;
  std::vector<any_array> inputs_, outputs_;
  std::vector<const void*> in_;
  std::vector<void*> out_;
  step_context step_;
  kernel_ptr kernel_;
  buffer scratch_;
};

using F = deft::detail::leaf<float, shape_t<dyn>>;
using K = deft::detail::literal_leaf<float>;
template <class A, class B>
using plus = call<op::add, A, B>;
template <class A, class B>
using times = call<op::mul, A, B>;

// square(relu(x * 1.7 + 0.3) * 0.9 - d), and gelu by tanh.
using chain = call<op::square, call<op::sub, times<call<op::relu, plus<times<F, K>, K>>, K>, F>>;
using gelu =
    times<times<K, F>, plus<K, call<op::tanh, times<K, plus<F, times<times<times<K, F>, F>, F>>>>>>;
// The same with swapped operands: they have no compiled kernel.
using chain_apart =
    call<op::square, call<op::sub, times<K, call<op::relu, plus<K, times<K, F>>>>, F>>;
using gelu_apart =
    times<times<F, K>, plus<call<op::tanh, times<plus<times<times<times<F, F>, F>, K>, F>, K>>, K>>;

integers literals(std::initializer_list<float> values) {
  integers l;
  for (float v : values) l.push_back(to_immediate(v));
  return l;
}
template <class X>
runner fused(const integers& immediates, std::vector<any_array> inputs) {
  return {record_of<op::fused>, {deft::detail::program_of<X>(), immediates}, std::move(inputs)};
}

void compare(const std::string& work, runner& r, const bench::measure& by_hand, double bound) {
  auto o = bench::in_turns(bench::timed([&] { r.run(); }), by_hand);
  bench::work_row(work, o, "Eigen by hand", bench::at_least(bound));
}
template <class Run>
void second_thread(const std::string& work, Run& r) {
  auto with = [&](int threads) {
    return bench::timed([&, threads] {
      set_intra_op_threads(threads);
      r();
    });
  };
  auto o = bench::in_turns(with(2), with(1));
  set_intra_op_threads(1);
  bench::work_row(work + ", 2 threads", o, "1 thread", bench::at_least(0.95));
}

void elementwise(std::int64_t n, const std::string& size) {
  any_array x = filled({n}), d = filled({n}), z = filled({n});
  auto X = eigen(x), D = eigen(d), Z = eigen(z);
  cpu_kernels::use<chain>();
  cpu_kernels::use<gelu>();
  auto chain_by_hand = bench::timed([&] {
    Z = ((X * 1.7f + 0.3f).max(0.f) * 0.9f - D).square();
    bench::keep(z);
  });
  auto gelu_by_hand = bench::timed([&] {
    Z = 0.5f * X * (1.f + (0.79788456f * (X + 0.044715f * X * X * X)).tanh());
    bench::keep(z);
  });
  runner c = fused<chain>(literals({1.7f, 0.3f, 0.9f}), {x, d});
  compare("chain of 6, compiled, " + size, c, chain_by_hand, 0.93);
  runner cp = fused<chain_apart>(literals({0.9f, 0.3f, 1.7f}), {x, d});
  compare("chain of 6, portable program, " + size, cp, chain_by_hand, 0.6);
  runner g = fused<gelu>(literals({0.5f, 1.f, 0.79788456f, 0.044715f}), {x, x, x, x, x});
  compare("gelu, compiled, " + size, g, gelu_by_hand, 0.93);
  runner gp = fused<gelu_apart>(literals({0.5f, 0.044715f, 0.79788456f, 1.f}), {x, x, x, x, x});
  compare("gelu, portable program, " + size, gp, gelu_by_hand, 0.6);
  second_thread("gelu, compiled, " + size, g);
}

void small() {
  any_array a = filled({}), b = filled({}), z = filled({});
  runner add(record_of<op::add>, {}, {a, b});
  auto o = bench::in_turns(bench::timed([&] { add.run(); }), bench::timed([&] {
                             z.mutable_data<float>()[0] = a.data<float>()[0] + b.data<float>()[0];
                             bench::keep(z);
                           }));
  bench::row("a kernel's run on one element", bench::time_text(o.deft));
  any_array x = filled({100, 128}), bias = filled({128}), y = filled({100, 128});
  runner biased(record_of<op::add>, {}, {x, bias});
  compare("(100,128) + (128)", biased, bench::timed([&] {
            eigen2(y) = eigen2(x).rowwise() + eigen(bias).matrix().transpose();
            bench::keep(y);
          }),
          0.8);
  any_array l = filled({100, 10}), c = filled({10}), m = filled({100, 10});
  runner narrow(record_of<op::add>, {}, {l, c});
  compare("(100,10) + (10)", narrow, bench::timed([&] {
            for (int i = 0; i < 100; ++i)
              Eigen::Map<Eigen::Array<float, 10, 1>>(m.mutable_data<float>() + 10 * i) =
                  Eigen::Map<Eigen::Array<float, 10, 1>>(l.mutable_data<float>() + 10 * i) +
                  Eigen::Map<Eigen::Array<float, 10, 1>>(c.mutable_data<float>());
            bench::keep(m);
          }),
          0.5);
}

void products() {
  any_array a = filled({1024, 1024}), b = filled({1024, 1024}), c = filled({1024, 1024});
  runner big(record_of<op::matmul>, encode(op::matmul()), {a, b});
  compare("matmul 1024", big, bench::timed([&] {
            eigen2(c).noalias() = eigen2(a) * eigen2(b);
            bench::keep(c);
          }),
          0.95);
  second_thread("matmul 1024", big);
  any_array x = filled({100, 784}), w = filled({784, 128}), g = filled({100, 128});
  any_array y = filled({100, 128}), dx = filled({100, 784}), dw = filled({784, 128});
  auto X = eigen2(x), W = eigen2(w), G = eigen2(g), Y = eigen2(y), DX = eigen2(dx), DW = eigen2(dw);
  runner forward(record_of<op::matmul>, encode(op::matmul()), {x, w});
  runner to_x(record_of<op::matmul>, encode(op::matmul{false, true}), {g, w});
  runner to_w(record_of<op::matmul>, encode(op::matmul{true, false}), {x, g});
  compare("matmul 100x784x128", forward, bench::timed([&] { Y.noalias() = X * W, bench::keep(y); }),
          0.95);
  compare("  its gradient to x", to_x,
          bench::timed([&] { DX.noalias() = G * W.transpose(), bench::keep(dx); }), 0.95);
  compare("  its gradient to w", to_w,
          bench::timed([&] { DW.noalias() = X.transpose() * G, bench::keep(dw); }), 0.95);
  auto o = bench::in_turns(bench::timed([&] { forward.run(), to_x.run(), to_w.run(); }),
                           bench::timed([&] {
                             Y.noalias() = X * W;
                             DX.noalias() = G * W.transpose();
                             DW.noalias() = X.transpose() * G;
                             bench::keep(dw);
                           }));
  bench::work_row("matmul 100x784x128 and both gradients", o, "Eigen", bench::at_least(0.95));
  any_array h = filled({100, 128}), v = filled({128, 10}), r = filled({100, 10});
  runner thin(record_of<op::matmul>, encode(op::matmul()), {h, v});
  compare("matmul 100x128x10", thin, bench::timed([&] {
            eigen2(r).noalias() = eigen2(h) * eigen2(v);
            bench::keep(r);
          }),
          0.95);
}

void reductions() {
  any_array x = filled({4096, 1024}), rows = filled({4096}), columns = filled({1024});
  auto X = eigen2(x);
  runner all(record_of<op::sum>, encode(op::sum{{{0, 1}, false}}), {x});
  compare("sum of 4096x1024", all, bench::timed([&] {
            float s = eigen(x).sum();
            bench::keep(s);
          }),
          0.95);
  runner by_rows(record_of<op::sum>, encode(op::sum{{{1}, false}}), {x});
  compare("sum of its rows", by_rows, bench::timed([&] {
            for (int i = 0; i < 4096; ++i) eigen(rows)(i) = X.row(i).sum();
            bench::keep(rows);
          }),
          0.9);
  runner by_columns(record_of<op::sum>, encode(op::sum{{{0}, false}}), {x});
  compare("sum of its columns", by_columns, bench::timed([&] {
            auto C = eigen(columns);
            C.setZero();
            for (int i = 0; i < 4096; ++i) C += X.row(i).array().transpose();
            bench::keep(columns);
          }),
          0.9);
}

void cross_entropy() {
  constexpr std::int64_t rows = 4096, columns = 1000;
  any_array l = filled({rows, columns}), d = filled({rows, columns}), t(dtype::int32, {rows});
  auto* label = t.mutable_data<std::int32_t>();
  for (std::int64_t i = 0; i < rows; ++i) label[i] = static_cast<std::int32_t>(i * 7919 % columns);
  auto L = eigen2(l), D = eigen2(d);
  runner gradient(record_of<op::softmax_cross_entropy_grad>, {}, {l, t, filled({rows})});
  auto both = [&] { gradient.run(); };
  auto o = bench::in_turns(bench::timed(both), bench::timed([&] {
                             float sum = 0;
                             for (std::int64_t i = 0; i < rows; ++i) {
                               auto q = D.row(i).array();
                               const float high = L.row(i).maxCoeff();
                               q = (L.row(i).array() - high).exp();
                               const float z = q.sum();
                               sum += std::log(z) + high - L(i, label[i]);
                               q *= 1.f / z;
                               q(label[i]) -= 1.f;
                             }
                             bench::keep(sum);
                             bench::keep(d);
                           }));
  bench::work_row("softmax cross entropy, loss and gradient, 4096x1000", o, "Eigen by hand",
                  bench::at_least(0.8));
  second_thread("softmax cross entropy", both);
}

/// A layer of LeNet: images of size x size, filters of 5x5, padded. By hand: im2col, an image at a
/// time, and Eigen's products.
void convolution(const std::string& name, std::int64_t size, std::int64_t channels,
                 std::int64_t outputs) {
  constexpr std::int64_t images = 64, taps = 5;
  const std::int64_t pixels = size * size, row = taps * channels, depth = taps * row;
  any_array x = filled({images, size, size, channels}), w = filled({taps, taps, channels, outputs}),
            y = filled({images, size, size, outputs}), dx = x.clone(),
            columns = filled({pixels, depth}), filter = filled({depth, outputs}),
            sums = filled({depth, outputs});
  auto C = eigen2(columns), W = eigen2(filter), S = eigen2(sums);
  // Calls f(in the image, in the matrix, elements) for what the matrix has of the image.
  auto each_part = [&](auto f) {
    for (std::int64_t i = 0; i < pixels; ++i)
      for (std::int64_t r = 0; r < taps; ++r) {
        const std::int64_t h = i / size + r - 2, left = std::max<std::int64_t>(0, i % size - 2),
                           end = std::min(size, i % size + 3);
        if (h >= 0 && h < size)
          f((h * size + left) * channels, i * depth + r * row + (left - i % size + 2) * channels,
            (end - left) * channels);
      }
  };
  auto im2col = [&](std::int64_t b) {
    const float* from = x.data<float>() + b * pixels * channels;
    float* to = columns.mutable_data<float>();
    std::fill(to, to + pixels * depth, 0.f);
    each_part([&](std::int64_t at, std::int64_t in, std::int64_t n) {
      std::copy(from + at, from + at + n, to + in);
    });
  };
  auto image = [&](std::int64_t b) {
    return matrix(y.mutable_data<float>() + b * pixels * outputs, pixels, outputs);
  };
  auto run = [&](const char* what, runner r, auto by_hand) {
    compare(str("convolution ", name, ", ", what), r, bench::timed([&] {
              for (std::int64_t b = 0; b < images; ++b) by_hand(b);
              bench::keep(y), bench::keep(dx), bench::keep(sums);
            }),
            1);
  };
  op::conv2d forward;
  op::conv2d_input_gradient to_x;
  op::conv2d_filter_gradient to_w;
  forward.same = to_x.same = to_w.same = true;
  run("forward", {record_of<op::conv2d>, encode(forward), {x, w}}, [&](std::int64_t b) {
    im2col(b);
    image(b).noalias() = C * W;
  });
  run("input gradient", {record_of<op::conv2d_input_gradient>, encode(to_x), {y, w, x}},
      [&](std::int64_t b) {
        C.noalias() = image(b) * W.transpose();
        float* to = dx.mutable_data<float>() + b * pixels * channels;
        std::fill(to, to + pixels * channels, 0.f);
        each_part([&](std::int64_t at, std::int64_t in, std::int64_t n) {
          unaligned(to + at, n) += unaligned(columns.mutable_data<float>() + in, n);
        });
      });
  run("filter gradient", {record_of<op::conv2d_filter_gradient>, encode(to_w), {y, x, w}},
      [&](std::int64_t b) {
        im2col(b);
        if (b == 0)
          S.noalias() = C.transpose() * image(b);
        else
          S.noalias() += C.transpose() * image(b);
      });
}

}  // namespace

int main() {
  set_intra_op_threads(1);
  small();
  elementwise(100'000, "1e5");
  elementwise(10'000'000, "1e7");
  products();
  reductions();
  cross_entropy();
  convolution("28x28x1, 5x5x32", 28, 1, 32);
  convolution("14x14x32, 5x5x64", 14, 32, 64);
}
