"""Tool calls from the deltas that servers really send."""

import re
from typing import Any

import msgspec
import pytest

from odek.llm.toolcalls import ToolCallAssembler

TOOLS = ("shell", "read_file", "read", "tree", "plan")


def delta(
    name: Any = None, arguments: Any = None, *, call_id: Any = None, index: Any = "absent"
) -> dict[str, Any]:
    """Return one delta; what is None is absent, and so is an index that is not given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: dict[str, Any] = {"function": function}
    if call_id is not None:
        made["id"] = call_id
    if index != "absent":
        made["index"] = index
    return made


def assembled(*chunks: list[dict[str, Any]] | dict[str, Any], **options: Any) -> list[tuple[str, str, str]]:
    """Feed each chunk and return (id, name, arguments) of the calls."""
    assembler = ToolCallAssembler(tool_names=TOOLS)
    for chunk in chunks:
        assembler.feed(chunk if isinstance(chunk, list) else [chunk])
    return [(call.id, call.name, call.arguments) for call in assembler.close(**options)]


def test_calls_interleaved_by_index_are_kept_apart() -> None:
    """The documented form: an index in every delta, id and name in the first."""
    calls = assembled(
        delta("shell", "", call_id="a", index=0),
        delta("read_file", "", call_id="b", index=1),
        delta(None, '{"command"', index=0),
        delta(None, '{"path":', index=1),
        delta(None, ':"ls"}', index=0),
        delta(None, '"x"}', index=1),
    )
    assert calls == [("a", "shell", '{"command":"ls"}'), ("b", "read_file", '{"path":"x"}')]


@pytest.mark.parametrize("index", [0, None, "absent"], ids=["same index", "null index", "no index"])
def test_calls_are_told_apart_by_id_when_the_index_does_not(index: Any) -> None:
    """One index for all calls, a null index and none at all: the id decides."""
    calls = assembled(
        delta("shell", "", call_id="a", index=index),
        delta(None, '{"command":', index=index),
        delta(None, '"ls"}', index=index),
        delta("shell", "", call_id="b", index=index),
        delta(None, '{"command":"pwd"}', index=index),
        delta("tree", "", call_id="c", index=index),
    )
    assert calls == [
        ("a", "shell", '{"command":"ls"}'),
        ("b", "shell", '{"command":"pwd"}'),
        ("c", "tree", "{}"),
    ]


def test_an_id_in_every_delta_is_one_call() -> None:
    """Id and name repeated whole in each delta, as some servers do, make one call."""
    calls = assembled(
        delta("shell", '{"command"', call_id="a", index=0),
        delta("shell", ':"ls"}', call_id="a", index=0),
        delta("shell", "", call_id="a", index=0),
    )
    assert calls == [("a", "shell", '{"command":"ls"}')]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_arguments_are_one_call_however_they_are_cut_and_repeated(size: int) -> None:
    """Braces, quotes and escapes inside of texts, cut anywhere, neither end a call nor begin one."""
    arguments = msgspec.json.encode({"command": 'a "}" \\ {"x"} \\" }', "n": {"}": "\\"}}).decode()
    pieces = [arguments[at : at + size] for at in range(0, len(arguments), size)]

    calls = assembled(
        *(delta("shell", piece, call_id="a", index=0) for piece in pieces),
        delta("shell", "{}", call_id="b", index=0),
    )

    assert calls == [("a", "shell", arguments), ("b", "shell", "{}")]


@pytest.mark.parametrize(
    "pieces",
    [
        ('{"command"', '{"command":"l', '{"command":"ls"}'),
        ('{"command"', '{"command":"ls"}', '{"command":"ls"}', ""),
        ('{"command":', '"ls"', '{"command":"ls"}'),
        ('{"command":', '"ls"}', '{"command":"ls"}'),
    ],
    ids=["all so far each time", "and the last twice", "all after some", "all after all"],
)
def test_arguments_that_are_sent_again_count_once(pieces: tuple[str, ...]) -> None:
    """Servers that repeat what they have sent, in every delta or in the last, mean one object."""
    calls = assembled(
        *(delta("shell" if not at else None, piece, index=0) for at, piece in enumerate(pieces))
    )

    assert [(name, arguments) for _, name, arguments in calls] == [("shell", '{"command":"ls"}')]


def test_a_long_file_with_the_name_in_every_delta_is_put_together_at_once() -> None:
    """A megabyte of source text takes a second; looking through all of it at each delta took minutes."""
    arguments = msgspec.json.encode({"command": "if (x) { y(); }\n" * 60_000}).decode()

    calls = assembled(
        *(delta("shell", arguments[at : at + 4], call_id="a", index=0) for at in range(0, len(arguments), 4))
    )

    assert calls == [("a", "shell", arguments)]


def test_a_new_id_in_every_delta_is_one_call() -> None:
    """A server that makes up an id for each delta still means one call as long as no name comes."""
    calls = assembled(
        delta("shell", "", call_id="a", index=0),
        delta(None, '{"command"', call_id="b", index=0),
        delta(None, ':"ls"}', call_id="c", index=0),
    )
    assert calls == [("a", "shell", '{"command":"ls"}')]


def test_an_id_that_comes_late_is_taken() -> None:
    """The id may follow the name."""
    assert assembled(delta("shell", "", index=0), delta(None, '{"command":"ls"}', call_id="a", index=0)) == [
        ("a", "shell", '{"command":"ls"}')
    ]


def test_indices_of_mixed_kinds_do_not_confuse() -> None:
    """None mixed with numbers: a delta without index continues the newest call."""
    calls = assembled(
        delta("shell", "", call_id="a", index=0),
        delta(None, '{"command":"ls"}', index=None),
        delta("tree", "", call_id="b", index=1),
        delta(None, "{}", index=None),
    )
    assert calls == [("a", "shell", '{"command":"ls"}'), ("b", "tree", "{}")]


def test_calls_without_ids_get_ids_of_their_own() -> None:
    """Missing ids are made up: unique, and of the form that the strictest provider takes."""
    calls = assembled(delta("tree", "{}"), delta("tree", '{"depth":1}'), delta("plan", "{}"))
    assert [call[1:] for call in calls] == [("tree", "{}"), ("tree", '{"depth":1}'), ("plan", "{}")]
    ids = [call[0] for call in calls]
    assert len(set(ids)) == 3
    assert all(re.fullmatch("[a-zA-Z0-9]{9}", call_id) for call_id in ids)


def test_duplicate_ids_are_made_unique() -> None:
    """Two calls under one id keep the first and replace the second."""
    calls = assembled(
        delta("shell", '{"command":"ls"}', call_id="x", index=0),
        delta("shell", '{"command":"pwd"}', call_id="x", index=1),
    )
    assert [call[1:] for call in calls] == [("shell", '{"command":"ls"}'), ("shell", '{"command":"pwd"}')]
    assert calls[0][0] == "x"
    assert calls[1][0] not in ("x", "")


def test_an_id_of_the_conversation_is_not_used_again() -> None:
    """Servers that number their calls from zero in each answer get other ids."""
    assembler = ToolCallAssembler(taken_ids=["call_0"])
    assembler.feed([delta("tree", "{}", call_id="call_0", index=0)])
    (call,) = assembler.close()
    assert call.id != "call_0"


@pytest.mark.parametrize(
    "pieces",
    [("read", "_file"), ("re", "ad_f", "ile"), ("read_file", "read_file"), ("rea", "read_file")],
    ids=["split", "split in three", "repeated whole", "so far"],
)
def test_a_name_in_pieces_is_put_together(pieces: tuple[str, ...]) -> None:
    """A name may be split over deltas, repeated whole, or sent as far as it has come."""
    (call,) = assembled(
        *(delta(piece, None, call_id="a" if at == 0 else None, index=0) for at, piece in enumerate(pieces)),
        delta(None, '{"path":"x"}', index=0),
    )
    assert call == ("a", "read_file", '{"path":"x"}')


def test_a_call_is_announced_once_its_name_is_whole() -> None:
    """The first to know of a call learns its name before any argument, and once."""
    assembler = ToolCallAssembler(tool_names=["read_file", "tree"])
    announced = []
    for piece in (delta("read_", None, index=0), delta("file", None, index=0), delta(None, "{}", index=0)):
        assembler.feed([piece])
        announced.append(assembler.newly_named())
    assembler.feed([delta("tree", "{}", index=1), delta("nobody", "{}", index=2)])

    assert [*announced, assembler.newly_named()] == [[], ["read_file"], [], ["tree"]]


def test_two_known_names_without_arguments_are_two_calls() -> None:
    """Without ids, indices and arguments, the names of the tools on offer tell calls apart."""
    assert [call[1:] for call in assembled(delta("tree", ""), delta("plan", ""))] == [
        ("tree", "{}"),
        ("plan", "{}"),
    ]


def test_all_calls_in_one_chunk_without_ids() -> None:
    """Elements of one list that name a tool are calls of their own."""
    calls = assembled([delta("tree"), delta("tree"), delta("shell", '{"command":"ls"}')])
    assert [call[1:] for call in calls] == [("tree", "{}"), ("tree", "{}"), ("shell", '{"command":"ls"}')]


def test_a_whole_call_sent_again_at_the_end_is_one_call() -> None:
    """Some servers close with the complete call; it must not run twice."""
    calls = assembled(
        delta("shell", '{"command":"ls"}', call_id="a", index=0),
        delta("shell", '{"command":"ls"}', call_id="a", index=0),
    )
    assert calls == [("a", "shell", '{"command":"ls"}')]


def test_name_and_arguments_beside_the_function_are_taken() -> None:
    """A call without a ``function`` object, and the old ``function_call``, are calls."""
    assert assembled({"name": "shell", "arguments": '{"command":'}, {"arguments": '"ls"}'})[0][1:] == (
        "shell",
        '{"command":"ls"}',
    )


def test_arguments_as_an_object_are_taken() -> None:
    """Arguments that are an object instead of its text."""
    assert assembled(delta("shell", {"command": "ls"}, call_id="a", index=0)) == [
        ("a", "shell", '{"command":"ls"}')
    ]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("functions.shell", "shell"),
        ("functions.read_file:0", "read_file"),
        ("default_api:shell", "shell"),
        ("shell<|channel|>commentary", "shell"),
        ("functions.shell<|channel|>json", "shell"),
        ("Read_File", "read_file"),
        (" shell\n", "shell"),
        ("functions.bash", "functions_bash"),
        ("other.shell", "other_shell"),
        ("shell:x", "shell_x"),
    ],
)
def test_a_name_with_pieces_of_a_template_around_it_is_the_tools(written: str, name: str) -> None:
    """What models were trained to write around a name is taken off where a tool remains, and only there."""
    assert [call[1] for call in assembled(delta(written, "{}", index=0))] == [name]


@pytest.mark.parametrize("name", ["", " ", "rm -rf\x1b[2J", "a" * 200, "files.read"])
def test_names_are_fit_to_be_sent_back(name: str) -> None:
    """Whatever the name, the history that holds it is accepted by every provider."""
    (call,) = assembled(delta(name, "{}", call_id="a", index=0))
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", call[1])


def test_what_is_no_call_is_ignored() -> None:
    """Noise in place of a list or of an element makes no call."""
    assembler = ToolCallAssembler()
    noises: tuple[Any, ...] = (None, "x", 7, {}, [None, "x", 7])
    for noise in noises:
        assembler.feed(noise)
    assert not assembler.started
    assert assembler.close() == ()


def test_a_cut_answer_keeps_only_whole_calls() -> None:
    """A call that may lack a part is dropped, the whole one before it stays."""
    whole = delta("shell", '{"command":"ls"}', call_id="a", index=0)
    assert assembled(whole, delta("shell", '{"command":"rm', call_id="b", index=1), cut=True) == [
        ("a", "shell", '{"command":"ls"}')
    ]
    assert assembled(whole, delta("shell", "", call_id="b", index=1), cut=True) == [
        ("a", "shell", '{"command":"ls"}')
    ]
    assert assembled(delta("tree", "", call_id="a", index=0), delta("shell", '{"c', index=1), cut=True) == [
        ("a", "tree", "{}")
    ]
