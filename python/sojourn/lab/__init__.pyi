from sojourn.lab.errors import LabError as LabError
from sojourn.lab.errors import RequestFailed as RequestFailed
from sojourn.lab.errors import SandboxDied as SandboxDied
from sojourn.lab.errors import Unavailable as Unavailable
from sojourn.lab.machine.settings import Settings as Settings
from sojourn.lab.sandbox.host import Host as Host
from sojourn.lab.sandbox.process import Process as Process
from sojourn.lab.sandbox.sandbox import Sandbox as Sandbox
