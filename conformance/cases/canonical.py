"""Canonical form: which texts are I-JSON, and the one form that each of them has."""

from typing import Any

from cases.case import Case, accepted, encoded, refused
from independent import jcs, read

NUMBERS = """
    0 -0 -0.0 0e5 1 -1 1.0 -1.0 10 1e0 1E2 1e+2 100e-2 0.1 -0.5 1.5 1.25e1
    9007199254740991 -9007199254740991 9007199254740991.0 4503599627370497.5 1e15 1e21 1E+21 -1e21 1e22 1.5e300
    1e-6 0.000001 1.5e-6 1e-7 0.0000001 1.25e-7 9.999e-5 1e-4 0.00012 123456.789 333333333.33333329
    1.7976931348623157e308 -1.7976931348623157e308 2.2250738585072014e-308 5e-324 3e-324 1e-400 -1e-400
    1.0000000000000001 0.1000000000000000055511151231257827 2e-324 1424953923781206.2 1152921504606846976e3
"""

# name, raw text
TEXTS: list[tuple[str, str | bytes]] = [
    ("null stands alone", "null"),
    ("true stands alone", "true"),
    ("false stands alone", "false"),
    ("white space around and between is no part of it", ' \t\r\n{ "b" : [ 1 , 2 ] ,\n"a" : null } \n'),
    ("an empty object", "{}"),
    ("an empty array", "[ ]"),
    ("an empty string", '""'),
    ("an empty member name", '{"":0}'),
    ("an array keeps its order", "[3,1,2,1]"),
    ("members are ordered by name", '{"b":1,"a":2,"aa":3,"B":4,"10":5,"2":6,"_":7}'),
    ("a nested object is ordered too", '[{"z":{"b":1,"a":2}},{"y":0,"x":0}]'),
    ("names are ordered by UTF-16 unit, not by code point", '{"\\ufb33":1,"\\ud83d\\ude02":2,"z":3}'),
    ("names beyond ASCII", '{"é":1,"e":2,"\u20ac":3,"\\u0080":4,"ö":5}'),
    ("a name with a control character, a quote and a backslash", '{"\\u0001":1,"\\"":2,"\\\\":3,"\\r":4}'),
    ("the short escapes stay short", r'"\b\t\n\f\r\"\\"'),
    ("a slash loses its escape", r'"\/"'),
    ("other control characters are escaped in lower case", r'"\u0000\u001F\u000b"'),
    ("DEL and C1 are written as they are", r'"\u007f\u0080\u009f"'),
    ("an escaped letter is written as itself", r'"\u00e9\u0041"'),
    ("a pair of surrogates is one character", r'"\ud83d\ude00"'),
    ("four bytes of UTF-8", '"😀"'),
    ("line separators are written as they are", r'"\u2028\u2029"'),
    ("a noncharacter is a character here", r'"\uffff\ufdd0"'),
    ("nothing is normalised", '"e\\u0301 é"'),
    ("a byte order mark inside a string is a character", r'"\ufeff"'),
    ("zero-width and bidi characters stay", r'"\u200b\u202e"'),
    ("64 arrays inside one another", "[" * 64 + "]" * 64),
    ("a bracket in a string is no depth", '["' + "[" * 70 + '"]'),
    ("UTF-8 bytes", '{"ü":"\u4e2d"}'.encode()),
]

# name, raw text, reason, path
REFUSED: list[tuple[str, str | bytes, str, str]] = [
    ("nothing at all", "", "syntax", ""),
    ("only white space", " \n", "syntax", ""),
    ("an object without its end", '{"a":1', "syntax", ""),
    ("a comma before the end of an array", "[1,]", "syntax", ""),
    ("a comma before the end of an object", '{"a":1,}', "syntax", ""),
    ("a missing comma", "[1 2]", "syntax", ""),
    ("a name without quotes", "{a:1}", "syntax", ""),
    ("single quotes", "'a'", "syntax", ""),
    ("a value after the value", "{}{}", "syntax", ""),
    ("text after the value", "[1]x", "syntax", ""),
    ("a comment", "[1]//", "syntax", ""),
    ("a leading zero", "01", "syntax", ""),
    ("a leading plus", "+1", "syntax", ""),
    ("no digit before the point", ".5", "syntax", ""),
    ("no digit after the point", "1.", "syntax", ""),
    ("no digit in the exponent", "1e", "syntax", ""),
    ("hexadecimal", "0x10", "syntax", ""),
    ("a word that is none", "nul", "syntax", ""),
    ("a capital word", "True", "syntax", ""),
    ("a bare control character in a string", '"a\tb"', "syntax", ""),
    ("an escape that is none", r'"\x41"', "syntax", ""),
    ("a short unicode escape", r'"\u00e"', "syntax", ""),
    ("white space that JSON does not have", "\u00a01", "syntax", ""),
    ("a byte order mark", b"\xef\xbb\xbf{}", "encoding", ""),
    ("a byte order mark in text", "\ufeff{}", "encoding", ""),
    ("UTF-16 with a byte order mark", '{"a":1}'.encode("utf-16"), "encoding", ""),
    ("UTF-16 without a byte order mark", '{"a":1}'.encode("utf-16-le"), "encoding", ""),
    ("a byte that starts nothing in UTF-8", b'"\xff"', "encoding", ""),
    ("an overlong form", b'"\xc0\xaf"', "encoding", ""),
    ("a surrogate in UTF-8", b'"\xed\xa0\x80"', "encoding", ""),
    ("Latin-1", '"é"'.encode("latin-1"), "encoding", ""),
    ("a member twice", '{"a":1,"a":1}', "duplicate_key", "/a"),
    ("a member twice, once escaped", r'{"a":1,"\u0061":2}', "duplicate_key", "/a"),
    ("a member twice, deep inside", '{"x":[0,{"b":{"a/~":1,"a/~":2}}]}', "duplicate_key", "/x/1/b/a~1~0"),
    ("2^53", "9007199254740992", "integer_range", ""),
    ("-2^53", "[-9007199254740992]", "integer_range", "/0"),
    ("an integer of 400 digits", '{"n":[1,1' + "0" * 400 + "]}", "integer_range", "/n/1"),
    ("2^53 as a float", '{"a":9007199254740992.0}', "float_range", "/a"),
    ("1e20, whose canonical text is no integer in range", "1e20", "float_range", ""),
    ("a whole float just under 1e21", "[0,999999999999999900000.0]", "float_range", "/1"),
    ("a number that becomes infinite", "1e400", "not_finite", ""),
    ("a negative one", '{"a":{"b":-1e400}}', "not_finite", "/a/b"),
    ("half a surrogate pair, the first", r'["\ud83d"]', "surrogate", "/0"),
    ("half a surrogate pair, the second", r'{"a":"\ude00"}', "surrogate", "/a"),
    ("a pair in the wrong order", r'"\ude00\ud83d"', "surrogate", ""),
    ("65 arrays inside one another", "[" * 65 + "]" * 65, "depth", ""),
    ("100,000 arrays inside one another", "[" * 1_000, "depth", ""),
]

# name, raw text, bounds, reason or None
BOUNDED: list[tuple[str, str, dict[str, int], str | None]] = [
    ("as many bytes as are allowed", '"12345678"', {"max_bytes": 10}, None),
    ("a byte more than is allowed", '"123456789"', {"max_bytes": 10}, "size"),
    ("bytes are counted as received, white space and all", " 1        ", {"max_bytes": 9}, "size"),
    ("bytes are counted, not characters", '"éééé"', {"max_bytes": 9}, "size"),
    ("the canonical form is counted too", "[1e300,1.5e-300,100e19]", {"max_bytes": 23}, None),
    ("a canonical form that outgrows its text", '"\\u0001\x7f"', {"max_bytes": 9}, None),
    ("as deep as is allowed", '{"a":[1]}', {"max_depth": 2}, None),
    ("a level more than is allowed", '{"a":[{}]}', {"max_depth": 2}, "depth"),
    ("as many values as are allowed", '{"a":[1,2],"b":3}', {"max_nodes": 5}, None),
    ("a value more than is allowed", '{"a":[1,2],"b":[]}', {"max_nodes": 4}, "nodes"),
]


def cases() -> list[Case]:
    """Build the group."""
    found = [_good(f"the number {number}", number) for number in NUMBERS.split()]
    found += [_good(name, raw) for name, raw in TEXTS]
    found += [refused(name, "canonical", _given(raw), reason, path=path) for name, raw, reason, path in REFUSED]
    for name, raw, bounds, reason in BOUNDED:
        given = _given(raw) | {"bounds": bounds}
        if reason is None:
            found.append(accepted(name, "canonical", given, text=jcs(read(raw)).decode()))
        else:
            found.append(refused(name, "canonical", given, reason))
    return found


def _good(name: str, raw: str | bytes) -> Case:
    return accepted(name, "canonical", _given(raw), text=jcs(read(raw)).decode())


def _given(raw: str | bytes) -> dict[str, Any]:
    return {"text": raw} if isinstance(raw, str) else {"base64": encoded(raw)}
