"""What can go wrong in the demo.

DemoError
├── StepFailed       a step did not see what it has to see, or saw what must not be
└── SetUpFailed      the cluster, the custom resources or the namespace could not be prepared
"""


class DemoError(Exception):
    """Base of everything that ends the demo early; the message is one line for the reader."""


class StepFailed(DemoError):
    """A check of the story did not hold; the message says what was expected and what was seen."""


class SetUpFailed(DemoError):
    """The story could not begin; the message names the server and the reason."""
