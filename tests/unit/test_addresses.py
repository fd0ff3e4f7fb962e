"""Where a fetch may go, by the address alone."""

import ipaddress

import pytest

from odek.tools.addresses import is_public, refusal


@pytest.mark.parametrize(
    ("address", "refused", "public"),
    [
        ("93.184.216.34", False, True),
        ("127.0.0.1", False, False),
        ("::1", False, False),
        ("10.1.2.3", False, False),
        ("100.64.0.1", False, False),
        ("fd00::1", False, False),
        ("169.254.1.1", True, False),
        ("100.100.100.200", True, False),
        ("fd00:ec2::254", True, False),
        ("fe80::1", True, False),
        ("0.1.2.3", True, False),
        ("::", True, False),
        ("255.255.255.255", True, False),
        ("240.0.0.1", True, False),
        ("ff02::1", True, False),
        ("64:ff9b::a9fe:a9fe", True, False),
        ("::a9fe:a9fe", True, False),
        ("2002:a9fe:a9fe::1", True, False),
        ("::ffff:10.0.0.1", False, False),
        ("2606:4700::1111", False, True),
    ],
)
def test_addresses(address: str, refused: bool, public: bool) -> None:
    """An address is judged by what it means, IPv4 inside of IPv6 included."""
    parsed = ipaddress.ip_address(address)

    assert bool(refusal(parsed)) == refused
    assert refused or is_public(parsed) == public
