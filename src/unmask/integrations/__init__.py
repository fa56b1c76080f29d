"""Numbers of this package in other people's loops, loaded only when named."""

from typing import TYPE_CHECKING

from unmask._doors import open_door

if TYPE_CHECKING:
    from unmask.integrations.learning import METRICS, detection_metric, scorer
    from unmask.integrations.training import DetectionMetric

open_door(__name__)
