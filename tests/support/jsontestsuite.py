"""JSONTestSuite: where its files are, and what stands in no file of it: our answers where it leaves them open."""

from pathlib import Path

# Valid by RFC 8259, which lets parsers differ on what they mean; refused here because they do.
DUPLICATE_KEYS = {"y_object_duplicated_key.json", "y_object_duplicated_key_and_value.json"}

# What the suite leaves to the implementation, pinned: canonical bytes, or the reason of the refusal.
IMPLEMENTATION_DEFINED: dict[str, bytes | str] = {
    "i_number_double_huge_neg_exp.json": b"[0]",
    "i_number_huge_exp.json": "not_finite",
    "i_number_neg_int_huge_exp.json": "not_finite",
    "i_number_pos_double_huge_exp.json": "not_finite",
    "i_number_real_neg_overflow.json": "not_finite",
    "i_number_real_pos_overflow.json": "not_finite",
    "i_number_real_underflow.json": b"[0]",
    "i_number_too_big_neg_int.json": "integer_range",
    "i_number_too_big_pos_int.json": "integer_range",
    "i_number_very_big_negative_int.json": "integer_range",
    "i_object_key_lone_2nd_surrogate.json": "surrogate",
    "i_string_1st_surrogate_but_2nd_missing.json": "surrogate",
    "i_string_1st_valid_surrogate_2nd_invalid.json": "surrogate",
    "i_string_UTF-16LE_with_BOM.json": "encoding",
    "i_string_UTF-8_invalid_sequence.json": "encoding",
    "i_string_UTF8_surrogate_U+D800.json": "encoding",
    "i_string_incomplete_surrogate_and_escape_valid.json": "surrogate",
    "i_string_incomplete_surrogate_pair.json": "surrogate",
    "i_string_incomplete_surrogates_escape_valid.json": "surrogate",
    "i_string_invalid_lonely_surrogate.json": "surrogate",
    "i_string_invalid_surrogate.json": "surrogate",
    "i_string_invalid_utf-8.json": "encoding",
    "i_string_inverted_surrogates_U+1D11E.json": "surrogate",
    "i_string_iso_latin_1.json": "encoding",
    "i_string_lone_second_surrogate.json": "surrogate",
    "i_string_lone_utf8_continuation_byte.json": "encoding",
    "i_string_not_in_unicode_range.json": "encoding",
    "i_string_overlong_sequence_2_bytes.json": "encoding",
    "i_string_overlong_sequence_6_bytes.json": "encoding",
    "i_string_overlong_sequence_6_bytes_null.json": "encoding",
    "i_string_truncated-utf-8.json": "encoding",
    "i_string_utf16BE_no_BOM.json": "encoding",
    "i_string_utf16LE_no_BOM.json": "encoding",
    "i_structure_500_nested_arrays.json": "depth",
    "i_structure_UTF-8_BOM_empty_object.json": "encoding",
}

TRANSFORMED: dict[str, bytes | str] = {
    "number_-9223372036854775808.json": "integer_range",
    "number_-9223372036854775809.json": "integer_range",
    "number_1.0.json": b"[1]",
    "number_1.000000000000000005.json": b"[1]",
    "number_1000000000000000.json": b"[1000000000000000]",
    "number_10000000000000000999.json": "integer_range",
    "number_1e-999.json": b"[0]",
    "number_1e6.json": b"[1000000]",
    "number_9223372036854775807.json": "integer_range",
    "number_9223372036854775808.json": "integer_range",
    "object_key_nfc_nfd.json": b'{"e\xcc\x81":"NFD","\xc3\xa9":"NFC"}',
    "object_key_nfd_nfc.json": b'{"e\xcc\x81":"NFD","\xc3\xa9":"NFC"}',
    "object_same_key_different_values.json": "duplicate_key",
    "object_same_key_same_value.json": "duplicate_key",
    "object_same_key_unclear_values.json": "duplicate_key",
    "string_1_escaped_invalid_codepoint.json": "surrogate",
    "string_1_invalid_codepoint.json": "encoding",
    "string_2_escaped_invalid_codepoints.json": "surrogate",
    "string_2_invalid_codepoints.json": "encoding",
    "string_3_escaped_invalid_codepoints.json": "surrogate",
    "string_3_invalid_codepoints.json": "encoding",
    "string_with_escaped_NULL.json": b'["A\\u0000B"]',
}


def files(corpora: Path, beginning: str = "", *, room: str = "test_parsing") -> list[Path]:
    """List the suite's files: ``y_`` must be taken, ``n_`` refused, ``i_`` is the implementation's choice."""
    return sorted((corpora / "jsontestsuite" / room).glob(f"{beginning}*"))
