// builds
#include <deft/expr.hpp>
using namespace deft;
void model() {
  placeholder<float, dyn, 784> x("x");
  placeholder<std::int32_t, dyn> label("label");
  variable<float, 784, 128> w1("w1", truncated_normal(0.05f));
  variable<float, 128> b1("b1", zeros());
  variable<float, 128, 10> w2("w2", truncated_normal(0.05f));
  variable<float, 10> b2("b2", zeros());

  auto hidden = relu(matmul(x, w1) + b1);
  tensor<float, dyn, 10> logits = matmul(hidden, w2) + b2;
  auto loss = mean(softmax_cross_entropy(logits, label));
  auto accuracy = mean(cast<float>(argmax(logits, axis<1>) == cast<std::int64_t>(label)));

  feed_value image = x = ndarray<float, 100, 784>(),
             of_label = label = ndarray<std::int32_t, dyn>(100);
  feed_value of_b = b2 = ndarray<float, 10>();
  operation step = group(w1.assign_sub(w1 * 0.1f), b1.assign(0), global_step().assign_add(1));
  tensor<float> t;
  t = loss * 2;
  tensor<float, dyn, 10> wider = where(logits > 0, logits, 0.f);
  tensor<float, dyn> some = sum(wider, axis<-1>);
}
