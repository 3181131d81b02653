# SPDX-License-Identifier: Apache-2.0
# scripts/gdb/deft.py: gdb's pretty-printers for deft's types. They read memory and call nothing, so
# they work on core files. Programs that link deft::compiled name this file to gdb, which loads it
# if its auto-load safe-path allows that; `source deft.py` loads it for any program.
import os
import struct

import gdb
import gdb.printing

DTYPES = {
    1: ("float", "float"),
    2: ("double", "double"),
    3: ("int32", "int"),
    4: ("int64", "long"),
    5: ("uint8", "unsigned char"),
    6: ("bool", "bool"),
    7: ("bfloat16", "unsigned short"),
    8: ("half", "unsigned short"),
    9: ("int8", "signed char"),
    10: ("int16", "short"),
    11: ("uint16", "unsigned short"),
    12: ("uint32", "unsigned int"),
    13: ("uint64", "unsigned long"),
    14: ("string", None),  # whose elements are not in rows
}
INFIX = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%", "equal": "==", "not_equal": "!=",
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "logical_and": "&&",
    "logical_or": "||",
}
PREFIX = {"neg": "-", "logical_not": "!"}


def text_of(v):
    """The text of a std::string or std::string_view; the beginning of a long one."""
    if v.type.strip_typedefs().has_key("_M_dataplus"):
        data, length = v["_M_dataplus"]["_M_p"], int(v["_M_string_length"])
    else:
        data, length = v["_M_str"], int(v["_M_len"])
    return data.string(length=min(length, 4096))


def dtype_text(v):
    number = int(v)
    return DTYPES[number][0] if number in DTYPES else "none"


def extents(dims):
    if not 0 <= int(dims["n"]) <= 8:
        raise ValueError("not initialized")
    return [int(dims["e"][i]) for i in range(int(dims["n"]))]


def shape_text(dims):
    return "(" + ",".join("?" if e == -1 else str(e) for e in extents(dims)) + ")"


def place_text(file, line):
    """`line` as nodes keep it: the lowest bit says whether it is approximate."""
    if line >> 1 == 0:
        return ""
    return " %s %s:%d" % ("near" if line & 1 else "at", os.path.basename(file), line >> 1)


def device_text(placement):
    if not placement["name_"]:
        return ""
    name = placement["name_"].dereference()["first"]

    def optional(member, before):
        payload = name[member]["_M_payload"]
        if not payload["_M_engaged"]:
            return ""
        return before + str(int(payload["_M_payload"]["_M_value"]))

    job, kind = text_of(name["job"]), text_of(name["type"])
    text = "/job:" + job if job else ""
    text += optional("replica", "/replica:") + optional("task", "/task:")
    text += "/" + kind if kind else ""
    return " on " + text + optional("index", ":")


def found_in(table, node):
    """The name of a node in a std::unordered_map from nodes to names; empty if absent."""
    key, value = (table.type.template_argument(i).pointer() for i in (0, 1))
    buckets = int(table["_M_h"]["_M_bucket_count"])
    before = table["_M_h"]["_M_buckets"][int(node.address) % buckets]
    at = before["_M_nxt"] if before else None
    while at:
        # The stored value follows the link.
        entry = int(at) + at.dereference().type.sizeof
        found = int(gdb.Value(entry).cast(key).dereference())
        if found == int(node.address):
            return text_of(gdb.Value(entry + key.target().sizeof).cast(value).dereference())
        if found % buckets != int(node.address) % buckets:
            break
        at = at["_M_nxt"]
    return ""


def name_of(node):
    """The node's alias from the program, or else its name; empty before it has one, and if the
    library was compiled without debug information."""
    try:
        graph = context_of(node)["owner"].dereference()
        return found_in(graph["aliases_"], node) or found_in(graph["own_names_"], node)
    except (gdb.error, KeyError):
        return ""


def context_of(node):
    return node["context_"]["block_"]["value"]


def node_text(node, port=None):
    text = ""
    if port is not None:
        outputs = node["outputs"]["list_"]["block_"]
        if outputs:
            type = outputs["value"]["_M_impl"]["_M_start"][port]
            text = dtype_text(type["type"]) + shape_text(type["shape"]) + " "
    name = name_of(node)
    context = context_of(node)
    return (text + text_of(node["def"]["name"]) + (' "%s"' % name if name else "")
            + device_text(context["device"])
            + place_text(context["file"].string(), int(node["line_"])))


def output_text(output):
    pointer = output["node"]["node_"]
    if not pointer:
        return "empty tensor"
    return node_text(pointer.dereference(), int(output["port"]))


def literal_text(type, bits):
    """The value of the bits as a number of that dtype, or as an int64."""
    form = {1: "<f", 2: "<d"}.get(int(type))
    if not form:
        return str(int(bits))
    raw = int(bits).to_bytes(8, "little", signed=True)
    return "%g" % struct.unpack_from(form, raw)[0]


def written_text(operation, alone=True):
    """An expression as it was written, with the names of nodes, or else of their operations."""
    name = text_of(operation["op"]["name"])
    operands = []
    places = operation["places"]["_M_elems"]
    for i in range(min(int(operation["count"]), 3)):
        storage = places[i]["_M_u"].address
        index = int(places[i]["_M_index"])

        def held(type):
            return storage.cast(gdb.lookup_type(type).pointer()).dereference()

        if index == 0:
            node = held("deft::ext::output")["node"]["node_"].dereference()
            operands.append(name_of(node) or text_of(node["def"]["name"]))
        elif index == 1:
            literal = held("deft::detail::written_operation::literal")
            operands.append(literal_text(literal["type"], literal["bits"]))
        else:
            inner = held("deft::detail::written")["operation_"].dereference()
            operands.append(written_text(inner, name not in INFIX and name not in PREFIX))
    if name in INFIX and len(operands) == 2:
        text = "%s %s %s" % (operands[0], INFIX[name], operands[1])
        return text if alone else "(" + text + ")"
    if name in PREFIX and len(operands) == 1:
        return PREFIX[name] + operands[0]
    return "%s(%s)" % (name, ", ".join(operands))


class Printer:
    def __init__(self, val):
        self.val = val

    def to_string(self):
        try:
            return self.text()
        except (gdb.error, ValueError, OverflowError):
            return "not initialized, or not readable"


class TensorPrinter(Printer):
    def text(self):
        return output_text(self.val["output_"])


class OperationPrinter(Printer):
    def text(self):
        pointer = self.val["node_"]["node_"]
        return node_text(pointer.dereference()) if pointer else "empty operation"


class ExpressionPrinter(Printer):
    def text(self):
        operation = self.val["written_"]["operation_"]
        if not operation:
            return "empty expression"
        try:
            operation = operation.dereference()
            place = operation["location"]
        except (gdb.error, KeyError):
            return "expression"  # the library was compiled without debug information
        line = int(place["line"]) << 1 | bool(place["approximate"])
        return written_text(operation) + place_text(place["file"].string(), line)


class ArrayPrinter(Printer):
    """Prints an any_array: dtype and shape, then rows as gdb prints arrays."""

    def array(self):
        return self.val

    def text(self):
        a = self.array()
        if int(a["type_"]) not in DTYPES:
            return "empty array"
        return dtype_text(a["type_"]) + shape_text(a["shape_"])

    def children(self):
        a = self.array()
        number, block = int(a["type_"]), a["buffer_"]["block_"]
        try:
            shape = extents(a["shape_"])
            data = block["data"]
        except (gdb.error, ValueError):
            return
        if number not in DTYPES or not DTYPES[number][1] or any(e <= 0 for e in shape):
            return
        row = gdb.lookup_type(DTYPES[number][1])
        for extent in reversed(shape[1:]):
            row = row.array(extent - 1)
        rows = data.cast(row.pointer())
        limit = gdb.parameter("print elements") or None
        for i in range(shape[0] if shape else 1):
            # As numbers: gdb would print characters, and the bits of types that it does not know.
            to_number = {5: int, 7: bfloat16_of, 8: float16_of}.get(number)
            yield str(i), numbers(rows[i], limit, to_number) if to_number else rows[i]

    def display_hint(self):
        return "array"


class NdarrayPrinter(ArrayPrinter):
    def array(self):
        return self.val["array_"]


def bfloat16_of(bits):
    return "%.3g" % struct.unpack("<f", struct.pack("<I", int(bits) << 16))


def float16_of(bits):
    return "%.4g" % struct.unpack("<e", struct.pack("<H", int(bits)))


def numbers(value, limit, to_number):
    if value.type.code != gdb.TYPE_CODE_ARRAY:
        return str(to_number(value))
    last = value.type.range()[1]
    shown = last if limit is None else min(last, limit - 1)
    items = [numbers(value[i], limit, to_number) for i in range(shown + 1)]
    return "{" + ", ".join(items) + ("..." if shown < last else "") + "}"


class DimsPrinter(Printer):
    def text(self):
        return shape_text(self.val)


class DtypePrinter(Printer):
    def text(self):
        return dtype_text(self.val)


class PlacementPrinter(Printer):
    def text(self):
        return device_text(self.val)[len(" on "):] or "anywhere"


class ErrorPrinter(Printer):
    def text(self):
        return "%s: %s" % (str(self.val["code_"]).split("::")[-1], text_of(self.val["what_"]))


def register():
    printers = gdb.printing.RegexpCollectionPrettyPrinter("deft")
    for name, pattern, printer in (
        ("tensor", r"^deft::(tensor|variable|placeholder)<.*>$", TensorPrinter),
        ("any_tensor", r"^deft::any_(tensor|variable)$", TensorPrinter),
        ("operation", r"^deft::(operation|ext::assigned<.*>)$", OperationPrinter),
        ("expression", r"^deft::ext::call<.*>$", ExpressionPrinter),
        ("ndarray", r"^deft::ndarray<.*>$", NdarrayPrinter),
        ("any_array", r"^deft::any_array$", ArrayPrinter),
        ("dims", r"^deft::dims$", DimsPrinter),
        ("dtype", r"^deft::dtype$", DtypePrinter),
        ("placement", r"^deft::ext::placement$", PlacementPrinter),
        ("error", r"^deft::error$", ErrorPrinter),
    ):
        printers.add_printer(name, pattern, printer)
    gdb.printing.register_pretty_printer(gdb.current_objfile(), printers, replace=True)


register()
