from sojourn._core import Link as Link
from sojourn.own import ACCEPT as ACCEPT
from sojourn.own import DROP as DROP
from sojourn.own import MARK as MARK
from sojourn.own import balancer as balancer
from sojourn.own import buffer as buffer
from sojourn.own import codel_control_law as codel_control_law
from sojourn.own import codel_invsqrt as codel_invsqrt
from sojourn.own import congestion as congestion
from sojourn.own import queue as queue
from sojourn.own import source as source
from sojourn.scenario import Run as Run
from sojourn.scenario import Scenario as Scenario
from sojourn.scenario import ScenarioError as ScenarioError
from sojourn.study import Study as Study
from sojourn.study import compare as compare

__version__: str
