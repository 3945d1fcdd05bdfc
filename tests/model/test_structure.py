"""Tables of integers: what is copied, what is equal."""

import numpy as np
import pytest

from jaxsim.model.structure import MAX_HASHED_BYTES, Structure, cache_by_structure


def test_only_what_could_change_is_copied():
    open_, closed = np.arange(3), np.arange(3)
    closed.flags.writeable = False
    s = Structure({"open": open_, "closed": closed})
    open_[0] = 7
    assert s.open[0] == 0
    assert not s.open.flags.writeable
    assert s.closed is closed
    assert s.replace(nq=1).open is s.open


def test_what_is_extended_keeps_what_was_derived():
    asked = []

    @cache_by_structure
    def twice(s: Structure, plus: int) -> int:
        asked.append(plus)
        return 2 * s.n + plus

    s = Structure({"n": 2})
    wider = s.with_tables(room=5) if twice(s, 1) == 5 else s
    assert (twice(wider, 1), twice(wider, 2), asked) == (5, 6, [1, 2])
    assert wider == Structure({"n": 2, "room": 5})
    assert (wider.counts, s.counts) == ({"n": 2, "room": 5}, {"n": 2})
    assert twice(wider.replace(n=3), 1) == 7
    with pytest.raises(ValueError, match="n is a table of the structure already"):
        wider.with_tables(n=4)


def test_equal_content_is_equal_and_hashes_alike():
    a = Structure({"n": 2, "names": (("body", ("a",)),), "table": np.arange(4)})
    b = Structure({"table": np.arange(4), "names": (("body", ("a",)),), "n": 2})
    assert a == b
    assert hash(a) == hash(b)


def test_any_difference_counts():
    table = np.arange(4)
    a = Structure({"n": 2, "table": table})
    for other in (
        {"n": 3, "table": table},
        {"n": 2, "table": table + 1},
        {"n": 2, "table": table.reshape(2, 2)},
        {"n": 2, "table": table.astype(np.int16)},
        {"n": 2},
    ):
        assert a != Structure(other)


def test_a_large_table_counts_though_the_hash_leaves_it_out():
    image = np.zeros(MAX_HASHED_BYTES + 1, np.uint8)
    a, b, c = (Structure({"tex_data": image + k}) for k in (0, 0, 1))
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
