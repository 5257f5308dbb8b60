"""The catalogue: every scenario by its number."""

from tests.scenarios.case import Scenario
from tests.scenarios.content import CONTENT
from tests.scenarios.identity import IDENTITY
from tests.scenarios.pairing import PAIRING
from tests.scenarios.streams import STREAMS
from tests.scenarios.thinking import THINKING

SCENARIOS: tuple[Scenario, ...] = (*PAIRING, *IDENTITY, *THINKING, *CONTENT, *STREAMS)
