"""Tables of integers: what is copied, what is equal."""

import numpy as np

from jaxsim.model.structure import LARGE, Structure


def test_only_what_could_change_is_copied():
    open_, closed = np.arange(3), np.arange(3)
    closed.flags.writeable = False
    s = Structure({"open": open_, "closed": closed})
    open_[0] = 7
    assert s.open[0] == 0
    assert not s.open.flags.writeable
    assert s.closed is closed
    assert s.replace(nq=1).open is s.open


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
    image = np.zeros(LARGE + 1, np.uint8)
    a, b, c = (Structure({"tex_data": image + k}) for k in (0, 0, 1))
    assert a == b
    assert hash(a) == hash(b)
    assert a != c
