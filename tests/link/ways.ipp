// SPDX-License-Identifier: Apache-2.0
// tests/link/ways.ipp: the ways of lowering an expression, in each file's unnamed namespace.

/// Named, named at run time, assigned, an operand, aliased, and assigned to a variable.
deft::ext::output lower_by(const vector4& x, const deft::variable<float, 4>& v, int way) {
  switch (way) {
    case 0: {
      vector4 t = written<0>(x);
      return t.handle();
    }
    case 1:
      return deft::any_tensor(written<1>(x)).handle();
    case 2: {
      vector4 t;
      t = written<2>(x);
      return t.handle();
    }
    case 3:
      return sum(written<3>(x)).handle().node->inputs()[0];
    case 4:
      return name(written<4>(x), "squared").handle();
    default:
      return v.assign(written<5>(x)).handle()->inputs()[0];
  }
}
