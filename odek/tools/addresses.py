"""Which network addresses a request may go to, whatever name led to them. Pure."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

__all__ = ["Address", "is_public", "parse_address", "refusal"]

Address = IPv4Address | IPv6Address

_METADATA = frozenset(  # services that hand a machine's credentials to whoever asks from it
    map(ip_address, ("169.254.169.254", "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254"))
)
_THIS_NETWORK = ip_network("0.0.0.0/8")
_CARRIERS_OF_IPV4 = (ip_network("64:ff9b::/96"), ip_network("::/96"))


def parse_address(text: str) -> Address:
    """Return the address that ``text`` writes, a zone such as ``%eth0`` left out.

    Raises:
        ValueError: it is no address.
    """
    return ip_address(text.partition("%")[0])


def refusal(address: Address) -> str:
    """Return why nothing may be asked of ``address``, "" when it may.

    Private and loopback addresses may: the person approves the request as such.
    """
    address = _carried(address)
    if address in _METADATA:
        return "it is a metadata service, which hands out credentials"
    if address.is_unspecified or (isinstance(address, IPv4Address) and address in _THIS_NETWORK):
        return "it is not an address of any one machine"
    if address.is_link_local:
        return "it is link-local"
    if address.is_multicast:
        return "it is a multicast address"
    if isinstance(address, IPv4Address) and address.is_reserved:
        return "it is reserved"
    return ""


def is_public(address: Address) -> bool:
    """Tell whether ``address`` is one of the whole internet."""
    return _carried(address).is_global


def _carried(address: Address) -> Address:
    """Return the IPv4 address inside of an IPv6 one, if there is one."""
    if isinstance(address, IPv4Address):
        return address
    if (inner := address.ipv4_mapped or address.sixtofour) is not None:
        return inner
    if address.teredo is not None:
        return address.teredo[1]
    if int(address) > 1 and any(address in network for network in _CARRIERS_OF_IPV4):  # not :: and ::1
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address
