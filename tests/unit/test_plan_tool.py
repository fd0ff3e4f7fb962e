"""The plan: replaced as a whole, rendered, and reported."""

import pytest

from odek.errors import ToolError
from odek.messages import AssistantMessage, FunctionCall, ToolCall, UserMessage
from odek.tools.plan import Plan, PlanStep, PlanTool
from odek.trust.effects import Effects
from tests.support.tool_calls import call, prepare


async def test_plan_is_replaced_and_rendered() -> None:
    """Each call replaces the plan, reports the change, and answers with the whole."""
    changes: list[tuple[tuple[str, str], ...]] = []
    plan = Plan(changes.append)

    await call(PlanTool(plan), steps=[{"title": "old"}])
    output = await call(
        PlanTool(plan),
        steps=[
            {"title": "read", "state": "done"},
            {"title": "write", "state": "doing"},
            {"title": "test"},
            {"title": "rest", "state": "dropped"},
        ],
    )

    assert output.content == "[x] 1. read\n[>] 2. write\n[ ] 3. test\n[-] 4. rest"
    assert plan.open_titles() == ("write", "test")
    assert changes == [
        (("open", "old"),),
        (("done", "read"), ("doing", "write"), ("open", "test"), ("dropped", "rest")),
    ]
    assert output.changed == ()


async def test_nothing_changes_before_the_call_runs() -> None:
    """Preparing a plan declares no effect and has none."""
    plan = Plan()

    prepared = await prepare(PlanTool(plan), steps=[{"title": "a"}, {"title": "b", "state": "done"}])

    assert prepared.summary == "2 steps, 1 done"
    assert prepared.effects == Effects()
    assert plan.steps == ()


async def test_titles_stay_on_one_line() -> None:
    """A title with line breaks cannot pass for further steps."""
    plan = Plan()

    assert (await call(PlanTool(plan), steps=[{"title": "a\n[x] 2. b"}])).content == "[ ] 1. a [x] 2. b"
    assert (await call(PlanTool(plan), steps=[])).content == "the plan is empty"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([{"title": "a"}] * 31, r"expected `array` of length <= 30, in `steps`"),
        ([{"title": "a" * 201}], r"expected `str` of length <= 200, in `steps\[0\]\.title`"),
        ([{"title": ""}], r"expected `str` of length >= 1"),
        ([{"title": "a"}, {"title": " \n"}], "step 2 has a blank title"),
        ([{"title": "a", "state": "finished"}], r"invalid enum value 'finished', in `steps\[0\]\.state`"),
        ([{"title": "a", "status": "done"}], r"unknown field `status`"),
    ],
)
async def test_wrong_plans_are_one_sentence(steps: list[object], message: str) -> None:
    """What is wrong with a plan is said with its place; the old plan stays."""
    plan = Plan()
    plan.replace([PlanStep("kept")])

    with pytest.raises(ToolError, match=message):
        await call(PlanTool(plan), steps=steps)
    assert plan.open_titles() == ("kept",)


def test_a_resumed_conversation_has_its_last_plan_again() -> None:
    """The newest valid plan counts; a refused one and later messages do not."""

    def wrote(arguments: str) -> AssistantMessage:
        return AssistantMessage("", (ToolCall("c", FunctionCall("plan", arguments)),))

    plan = Plan()

    plan.restore(
        [
            wrote('{"steps": [{"title": "old"}]}'),
            wrote('{"steps": [{"title": "read", "state": "done"}, {"title": "write"}]}'),
            wrote('{"steps": "nonsense"}'),
            UserMessage("go on"),
        ]
    )

    assert plan.open_titles() == ("write",)
