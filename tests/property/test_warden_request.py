"""What the owner asks for is what the warden reads."""

from hypothesis import given, settings
from hypothesis import strategies as st

from subagent.warden import Request, encode_request, parse_request

WORDS = st.binary(max_size=20).map(lambda word: word.replace(b"\0", b"\n"))
NAMES = WORDS.map(lambda word: word.replace(b"=", b"-")).filter(bool)


@settings(max_examples=100)
@given(
    argv=st.lists(WORDS, min_size=1, max_size=5),
    env=st.dictionaries(NAMES, WORDS, max_size=5),
    cwd=WORDS,
    grace_seconds=st.floats(0, 60),
    passed_fds=st.lists(st.integers(3, 4096), max_size=3),
)
def test_a_request_survives_its_framing(
    argv: list[bytes], env: dict[bytes, bytes], cwd: bytes, grace_seconds: float, passed_fds: list[int]
) -> None:
    """Empty words, newlines, equals signs and any other byte arrive as they were."""
    message = encode_request(Request(argv, env, cwd, grace_seconds, passed_fds))

    length, payload = int.from_bytes(message[:8], "big"), message[8:]
    read = parse_request(payload)

    assert length == len(payload)
    assert (read.argv, read.env, read.cwd) == (argv, env, cwd)
    assert (read.grace_seconds, read.passed_fds) == (grace_seconds, passed_fds)
