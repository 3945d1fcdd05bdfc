"""Limits: set for a while, by name, and said in the message of what is beyond them."""

import pytest

from jaxsim.assets.source.limits import LIMITS, check_limit, limit, limits
from jaxsim.errors import AssetError


def test_a_limit_holds_until_it_is_raised():
    before = limit("image_bytes")
    with pytest.raises(
        AssetError, match=rf"^{before + 1} bytes of pixels in one image, the limit is"
    ):
        check_limit("image_bytes", before + 1)
    with limits(image_bytes=before + 1):
        check_limit("image_bytes", before + 1)
        with limits(archive_bytes=7):
            assert (limit("image_bytes"), limit("archive_bytes")) == (before + 1, 7)
    assert limit("image_bytes") == before


@pytest.mark.parametrize("name", LIMITS)
def test_the_message_says_the_remedy(name):
    call = rf"jaxsim\.extend\.limits\({name}=3\)"
    remedy = rf"raise the limit by {call}, on the command line by --limit {name}=3"
    with limits(**{name: 2}), pytest.raises(AssetError, match=remedy):
        check_limit(name, 3)


def test_beyond_what_can_be_counted():
    with pytest.raises(AssetError, match=r"^inf points of a built-in mesh"):
        check_limit("mesh_vertices", 1e300)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image_byte": 3}, "limits: there is no 'image_byte'; choose one of archive_bytes, image"),
        ({"image_bytes": -1}, "image_bytes: expected a count, got -1"),
        ({"image_bytes": 0.5}, r"image_bytes: expected a count, got 0\.5"),
    ],
)
def test_limits_that_cannot_be(values, message):
    with pytest.raises(ValueError, match=message), limits(**values):
        pass
