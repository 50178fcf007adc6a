"""The story's checks can fail: somebody does what a wrong controller would do, and the step that is played notices."""

import io
from collections.abc import Callable
from dataclasses import replace

import pytest
from rich.console import Console

from pysedna.demo import DemoOptions, StepFailed, run_demo, story
from pysedna.demo.history import History, is_running
from pysedna.demo.objects import JOB
from pysedna.demo.story import Step, Story

Sabotage = Callable[[Story], None]


def delete_trainer(told: Story) -> None:
    told.resource("Pod").delete(told.key(f"{JOB}-train-0"))


def delete_cloud_pods(told: Story) -> None:
    for pod in told.recorder.ask(lambda seen: seen.live("Pod", story.CLOUD_LABELS)):
        told.resource("Pod").delete(pod.key)


def create_surplus_trainer_for_a_moment(told: Story) -> None:
    pods = told.resource("Pod")
    copy = pods.get(told.key(f"{JOB}-train-0")).to_dict()
    kept = {name: copy["metadata"][name] for name in ("namespace", "labels", "ownerReferences")}
    pods.create({"metadata": {"name": "surplus", **kept}, "spec": copy["spec"]})
    pods.delete(told.key("surplus"), grace_period=0)
    told.wait_for("the surplus pod to be gone", lambda seen: seen.get("Pod", "surplus") is None)


def count_running(seen: History) -> int:
    return sum(is_running(pod) for pod in seen.live("Pod"))


def sabotaged(play: Callable[[Story], str], when: str, what: Sabotage, complaint: str) -> Step:
    """A step that is disturbed when it says `when`, and passes if it complains of that."""

    def play_disturbed(told: Story) -> str:
        def note(text: str) -> None:
            told.note(text)
            if when in text:
                what(told)

        with pytest.raises(StepFailed, match=complaint):
            play(replace(told, note=note))
        if play is not story.children_are_collected:
            told.wait_for("everything to run again", lambda seen: count_running(seen) == 5)
        return "noticed"

    return Step(f"{play.__name__} with {what.__name__}", play_disturbed)


@pytest.mark.slow
def test_each_wrong_turn_is_noticed_by_the_step_that_it_happens_in() -> None:
    untouched = "what had to stay as it was did not: .*"
    steps = (
        story.STEPS[0],
        sabotaged(story.service_is_damaged, "deleting deployment", delete_cloud_pods, f"{untouched}-cloud-"),
        sabotaged(story.specs_are_edited, "labels and status only", delete_trainer, f"{untouched}train-0"),
        sabotaged(story.manager_dies, "leads after", delete_trainer, "saw .*'surface-defects-train-0': 1"),
        sabotaged(
            story.children_are_collected,
            "deleting FederatedLearningJob",
            create_surplus_trainer_for_a_moment,
            "surplus was created at .* while surface-defects-train-0 held the same place",
        ),
    )
    output = io.StringIO()
    code = run_demo(DemoOptions(), Console(file=output), steps=steps)
    assert code == 0, output.getvalue()
