"""The published numbers of the thesis and its follow-up.

Tables 4 to 9 are from the thesis. The other numbers are means and final values of the follow-up's
raw results, averaged as in the thesis. Numbers that are in both sources agree to all printed
digits. The follow-up has no queue lengths of FTP and streaming. All numbers have the published
averaging: unweighted means over flows including ACK flows, without samples of zero in loss, queue
length and sojourn time, and with drops at queues counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import pandas as pd

from sojourn.papers.daqm.mechanisms import CONFIGURATIONS, EIGHT, FEATURES

#: Units of the published metrics, by metric. `_final` is the value at the end of a run.
METRICS = {
    "fct": "s",
    "delay": "ms",
    "plr": "1",
    "queue": "packets",
    "sojourn": "ms",
    "throughput": "kbit/s",
    "delay_final": "ms",
    "plr_final": "1",
    "throughput_final": "kbit/s",
}


@dataclass(frozen=True)
class Source:
    """A published table: values by metric and mechanism in one cell of the study."""

    name: str
    cell: Mapping[str, str | float]
    """Levels of `flow` and `model`, and of the swept factor: `rate`, `payload` or `drop_rate`."""
    mechanisms: Sequence[str]
    """Mechanisms, in the order of the values."""
    values: Mapping[str, Sequence[float | None]]


def _thesis(number: int, flow: str, what: Mapping[str, float], **values: Sequence[float]) -> Source:
    return Source(f"table {number}", {"flow": flow, "model": "cbr", **what}, EIGHT, values)


_TABLES = (
    _thesis(
        4, "http", {"drop_rate": 0.99},
        fct=(2.808, 2.849, 2.805, 2.850, 2.844, 2.833, 2.849, 2.830),
        delay=(209.262, 239.050, 190.774, 183.466, 165.255, 182.211, 152.962, 176.751),
        plr=(0.000, 0.158, 0.085, 0.089, 0.124, 0.058, 0.097, 0.110),
        queue=(112.743, 14.430, 26.231, 26.373, 19.154, 9.079, 10.997, 9.733),
        sojourn=(1550.973, 224.706, 360.896, 372.424, 210.935, 36.417, 80.768, 50.501),
        throughput=(437.468, 459.562, 450.983, 461.361, 444.482, 455.725, 454.403, 450.602),
    ),
    _thesis(
        5, "ftp", {"drop_rate": 0.99},
        fct=(30.256, 29.221, 27.829, 25.466, 25.797, 15.426, 15.395, 15.838),
        delay=(2403.579, 1908.472, 1349.269, 1955.000, 668.221, 1082.524, 1138.196, 1341.050),
        plr=(0.453, 0.614, 0.569, 0.636, 0.688, 0.366, 0.536, 0.531),
        queue=(677.576, 94.579, 103.856, 303.726, 67.240, 122.907, 144.558, 124.514),
        sojourn=(13166.835, 809.967, 593.505, 2911.114, 78.786, 394.510, 1191.862, 443.276),
        throughput=(263.616, 225.977, 221.230, 206.776, 302.307, 292.796, 278.252, 291.550),
    ),
    _thesis(
        6, "http", {"rate": 4000},
        fct=(2.807, 2.864, 2.840, 2.832, 2.421, 2.863, 2.844, 2.848),
        delay=(351.325, 346.713, 326.511, 355.850, 183.078, 234.450, 288.611, 268.654),
        plr=(0.000, 0.358, 0.167, 0.172, 0.283, 0.004, 0.212, 0.354),
        queue=(269.563, 58.345, 122.756, 132.708, 59.730, 44.384, 68.412, 36.075),
        sojourn=(2096.929, 632.055, 994.035, 983.876, 218.218, 128.296, 707.751, 111.155),
        throughput=(629.221, 641.912, 644.890, 655.699, 745.908, 632.401, 635.772, 638.260),
    ),
    _thesis(
        7, "ftp", {"rate": 10000},
        fct=(17.713, 17.042, 17.603, 15.949, 13.590, 18.255, 16.511, 15.800),
        delay=(2378.042, 1652.124, 1289.483, 1472.566, 578.888, 1402.792, 1269.053, 1254.581),
        plr=(0.330, 0.553, 0.542, 0.506, 0.651, 0.156, 0.387, 0.521),
        queue=(563.921, 114.905, 120.361, 225.680, 94.184, 168.964, 132.039, 129.377),
        sojourn=(11100.006, 1013.155, 687.210, 1844.623, 109.143, 1782.286, 1165.219, 382.455),
        throughput=(318.734, 292.913, 284.268, 276.652, 345.718, 295.467, 293.194, 280.306),
    ),
    _thesis(
        8, "http", {"payload": 1400},
        fct=(2.855, 2.799, 2.828, 2.826, 2.863, 2.843, 2.833, 2.830),
        delay=(248.971, 206.807, 200.930, 209.064, 173.834, 180.562, 180.015, 191.975),
        plr=(0.000, 0.136, 0.081, 0.092, 0.128, 0.011, 0.064, 0.117),
        queue=(102.201, 14.728, 23.638, 25.388, 18.906, 15.175, 10.910, 9.712),
        sojourn=(1349.799, 279.861, 323.248, 298.203, 185.361, 191.932, 65.623, 56.680),
        throughput=(457.526, 457.877, 458.194, 468.508, 458.311, 448.505, 457.457, 456.076),
    ),
    _thesis(
        9, "ftp", {"payload": 1400},
        fct=(17.713, 17.042, 17.603, 15.949, 13.590, 18.713, 16.795, 15.800),
        delay=(2378.042, 1652.124, 1289.483, 1472.566, 578.888, 1331.749, 1287.087, 1254.581),
        plr=(0.330, 0.553, 0.542, 0.506, 0.651, 0.151, 0.380, 0.521),
        queue=(563.921, 114.905, 120.361, 225.680, 94.184, 176.157, 125.580, 129.377),
        sojourn=(11100.006, 1013.155, 687.210, 1844.623, 109.143, 2020.406, 1189.185, 382.455),
        throughput=(318.734, 292.913, 284.268, 276.652, 345.718, 290.585, 296.261, 280.306),
    ),
)  # fmt: skip


def _raw(
    name: str, flow: str, model: str, mechanisms: Sequence[str] = EIGHT, **values: Sequence[float]
) -> Source:
    return Source(name, {"flow": flow, "model": model}, mechanisms, values)


_RAW = (
    _raw(
        "HTTP CBR", "http", "cbr",
        delay=(209, 239, 191, 183, 165, 178, 165, 192),
        delay_final=(612, 686, 554, 531, 497, 517, 471, 545),
        plr=(0, 0.158, 0.085, 0.089, 0.124, 0.0035, 0.064, 0.108),
        plr_final=(0, 0.357, 0.192, 0.209, 0.204, 0.005, 0.153, 0.223),
        throughput=(437, 460, 451, 461, 444, 457, 459, 453),
        throughput_final=(362, 426, 418, 398, 409, 428, 436, 423),
        fct=(2.81, 2.85, 2.81, 2.85, 2.84, 2.85, 2.85, 2.83),
        queue=(113, 14.4, 26.2, 26.4, 19.2, 10.0, 10.6, 9.7),
        sojourn=(1551, 225, 378, 365, 213, 46, 52, 62),
    ),
    _raw(
        "HTTP CBR, features", "http", "cbr", FEATURES,
        delay=(211, 193, 170, 197, 173, 188, 204, 202),
        plr=(0.031, 0.084, 0.086, 0.094, 0.087, 0.087, 0.090, 0.096),
        queue=(9.1, 10.6, 10.6, 10.7, 10.0, 10.0, 10.3, 9.8),
        sojourn=(45, 97, 92, 82, 66, 72, 86, 53),
        fct=(2.834, 2.831, 2.829, 2.835, 2.837, 2.825, 2.826, 2.836),
        throughput=(466.3, 468.4, 448.3, 456.4, 450.9, 464.3, 465.3, 458.2),
    ),
    _raw(
        "figures 8 and 9, ftp poisson-onoff", "ftp", "poisson-onoff",
        fct=(18.06, 22.75, 27.05, 28.91, 26.88, 21.2, 22.39, 25.88),
        delay=(3139, 3657, 2492, 2762, 1946, 3124, 3179, 3213),
        plr=(0.6589, 1.015, 0.9268, 0.5406, 0.9815, 0.6131, 0.7477, 0.8472),
        sojourn=(27090, 2607, 1016, 9013, 154.5, 18540, 15430, 5791),
        throughput=(30.67, 31.66, 39.66, 34.22, 39.24, 28.47, 28.74, 30.46),
    ),
    _raw(
        "figures 8 and 9, streaming poisson-onoff", "streaming", "poisson-onoff",
        fct=(15.59, 24.73, 27.35, 28.78, 26.78, 24.13, 26.1, 26.46),
        delay=(3097, 3367, 2589, 2899, 2073, 3376, 3230, 3174),
        plr=(0.7699, 0.9317, 0.9682, 0.5879, 0.9961, 0.47, 0.6395, 0.8463),
        sojourn=(27180, 4653, 1170, 8664, 215.3, 14850, 10340, 5605),
        throughput=(34.14, 30.44, 39.43, 35.37, 38.89, 30.1, 30.84, 30.31),
    ),
    _raw(
        "figures 8 and 9, http poisson-onoff", "http", "poisson-onoff",
        fct=(4.342, 4.215, 4.231, 4.222, 4.248, 4.222, 4.322, 4.322),
        delay=(967.5, 932.6, 907.2, 949.2, 953.1, 925.4, 969.1, 969.1),
        plr=(0.0003325, 0.6088, 0.445, 0.1537, 0.7877, 0.03616, 0.3119, 0.6078),
        queue=(220.7, 39.81, 80.4, 94.52, 51.95, 73.88, 87.04, 44.16),
        sojourn=(2970, 4538, 1468, 1595, 544.6, 947.5, 2017, 1949),
        throughput=(21.61, 21.33, 20.28, 21.45, 21.19, 21.51, 21.6, 21.6),
    ),
    _raw(
        "figures 8 and 9, voip poisson-onoff", "voip", "poisson-onoff",
        fct=(5.325, 5.329, 5.337, 5.325, 5.332, 5.331, 5.331, 5.331),
        delay=(1466, 1543, 1502, 1547, 1478, 1475, 1475, 1475),
        plr=(0, 0.2143, 0.1859, 0.1949, 0.1895, 0.02955, 0.1095, 0.1513),
        queue=(19.03, 2.633, 5.411, 5.516, 2.466, 5.238, 3.276, 2.426),
        sojourn=(1439, 583.1, 382.3, 380.3, 157.9, 289.4, 243.6, 211.8),
        throughput=(28.16, 28.41, 28.04, 27.16, 27.8, 28.12, 28.12, 28.12),
    ),
    _raw(
        "figures 8 and 9, gaming poisson-onoff", "gaming", "poisson-onoff",
        fct=(5.323, 5.326, 5.329, 5.326, 5.322, 5.317, 5.317, 5.317),
        delay=(1457, 1392, 1406, 1505, 1428, 1500, 1500, 1500),
        plr=(0, 0.1355, 0.1173, 0.1226, 0.1456, 0.02348, 0.08308, 0.1132),
        queue=(13.44, 2.296, 5.3, 5.425, 2.141, 3.841, 2.606, 2.222),
        sojourn=(1204, 557.1, 441.4, 445.5, 149.2, 256, 216.9, 198.4),
        throughput=(19.3, 20.23, 19.22, 19.06, 19.62, 18.79, 18.79, 18.79),
    ),
    _raw(
        "figures 8 and 9, http vbr", "http", "vbr",
        fct=(2.421, 2.424, 2.426, 2.423, 2.422, 2.426, 2.421, 2.418),
        delay=(11.33, 11.26, 11.86, 10.68, 11.74, 11.39, 9.752, 11.4),
        plr=(0, 0, 0, 0, 0, 0.0006116, 0, 0.004955),
        queue=(1.111, 1.111, 1.111, 1.111, 1.111, 1.111, 1.111, 1.111),
        sojourn=(0, 7, 9, 6, 2, 0, 0, 0),
        throughput=(184, 183.3, 182.6, 194.5, 178.7, 188.6, 183.1, 182),
    ),
    _raw(
        "figures 8 and 9, http pareto-onoff", "http", "pareto-onoff",
        fct=(4.141, 4.196, 4.225, 4.242, 4.214, 4.244, 4.164, 4.164),
        delay=(875.7, 869.7, 883.1, 889.6, 903.4, 925.2, 811.7, 811.7),
        plr=(0.0004186, 0.6049, 0.3505, 0.1137, 0.6445, 0.02146, 0.2735, 0.5089),
        queue=(105.3, 12.27, 69.67, 57.32, 23.5, 162.5, 38.18, 11.24),
        sojourn=(2149, 1608, 657.2, 597.6, 295.4, 924.4, 581.1, 475.9),
        throughput=(20.61, 18.75, 19.03, 18.72, 20.31, 20.35, 18.7, 18.7),
    ),
    _raw(
        "figures 8 and 9, http weibull-onoff", "http", "weibull-onoff",
        fct=(4.217, 4.23, 4.306, 4.238, 4.105, 4.233, 4.25, 4.255),
        delay=(921.5, 952.3, 941.1, 954.5, 928.8, 943.2, 958.6, 959.3),
        plr=(0.0007278, 0.5983, 0.5042, 0.1752, 0.8404, 0.02464, 0.3143, 0.5937),
        queue=(147.8, 106, 117.3, 146.8, 107.1, 145.5, 153.9, 85.49),
        sojourn=(1426, 1818, 780.5, 1985, 538.3, 1275, 2614, 1826),
        throughput=(21.96, 20.24, 19.81, 20.46, 20.41, 20.69, 20.97, 20.97),
    ),
    *(
        _raw(f"final loss, {flow} {model}", flow, model, plr_final=values)
        for flow, model, values in (
            ("http", "poisson-onoff", (0.0005, 0.90, 1.00, 0.23, 1.09, 0.064, 0.43, 0.85)),
            ("http", "pareto-onoff", (0.0008, 0.91, 0.82, 0.17, 0.95, 0.040, 0.44, 0.82)),
            ("http", "weibull-onoff", (0.0018, 0.91, 1.09, 0.28, 1.17, 0.049, 0.43, 0.83)),
            ("ftp", "poisson-onoff", (0.81, 1.04, 0.94, 0.56, 0.93, 0.79, 0.88, 0.85)),
            ("streaming", "poisson-onoff", (0.94, 0.92, 0.97, 0.62, 0.95, 0.58, 0.69, 0.83)),
            ("voip", "poisson-onoff", (0, 0.48, 0.43, 0.45, 0.48, 0.069, 0.25, 0.33)),
            ("gaming", "poisson-onoff", (0, 0.35, 0.32, 0.35, 0.38, 0.062, 0.22, 0.28)),
        )
    ),
    *(
        _raw(f"final delay, {flow} Poisson", flow, "poisson-onoff",
             delay_final=[1000 * v for v in values])
        for flow, values in (
            ("http", (2.61, 2.52, 2.44, 2.55, 2.63, 2.46, 2.68, 2.68)),
            ("ftp", (3.20, 3.61, 2.47, 2.20, 1.85, 3.67, 3.40, 2.82)),
            ("streaming", (3.37, 3.09, 2.49, 2.36, 1.99, 4.16, 3.03, 2.63)),
        )
    ),
)  # fmt: skip

_LOADS: Mapping[int, tuple[Sequence[float], Sequence[float]]] = {
    400: ((7.2, 7.4, 7.6, 7.2, 7.6, 7.2, 6.5, 6.5), (0, 0, 0, 0, 0, 0, 0, 0)),
    800: ((39, 46, 45, 46, 36, 32, 38, 46), (0, 0.003, 0.004, 0.005, 0.016, 0, 0.009, 0.014)),
    1200: (
        (154, 155, 155, 146, 125, 158, 138, 139),
        (0, 0.071, 0.048, 0.045, 0.086, 0.012, 0.048, 0.053),
    ),
    1500: (
        (230, 227, 200, 215, 162, 156, 177, 185),
        (0, 0.145, 0.081, 0.087, 0.131, 0.006, 0.077, 0.105),
    ),
    2000: (
        (287, 280, 240, 269, 195, 211, 222, 232),
        (0, 0.206, 0.122, 0.123, 0.181, 0.007, 0.121, 0.182),
    ),
    3000: (
        (304, 326, 305, 276, 184, 234, 257, 252),
        (0, 0.295, 0.155, 0.140, 0.268, 0.004, 0.187, 0.280),
    ),
    4000: (
        (351, 347, 327, 356, 183, 234, 289, 269),
        (0, 0.358, 0.167, 0.172, 0.283, 0.004, 0.212, 0.354),
    ),
    5000: (
        (382, 348, 365, 325, 174, 245, 302, 252),
        (0, 0.338, 0.165, 0.147, 0.277, 0.006, 0.231, 0.351),
    ),
}
_LOAD_THROUGHPUT: Mapping[int, Sequence[float]] = {
    800: (342, 343, 341, 355, 332, 343, 339, 343),
    2000: (497, 515, 505, 530, 521, 516, 519, 517),
    5000: (645, 663, 684, 661, 890, 673, 664, 666),
}
_SIZES: Mapping[int, tuple[Sequence[float], Sequence[float]]] = {
    50: (
        (487, 524, 506, 542, 142, 433, 486, 281),
        (0.566, 0.575, 0.342, 0.363, 0.653, 0.218, 0.419, 0.743),
    ),
    200: (
        (467, 402, 408, 387, 191, 258, 325, 230),
        (0.200, 0.440, 0.147, 0.136, 0.412, 0.003, 0.272, 0.515),
    ),
    600: (
        (396, 301, 308, 306, 178, 220, 233, 229),
        (0.002, 0.344, 0.157, 0.155, 0.276, 0.004, 0.210, 0.344),
    ),
    1400: (
        (249, 207, 201, 209, 174, 181, 180, 192),
        (0, 0.136, 0.081, 0.092, 0.128, 0.011, 0.064, 0.117),
    ),
    1750: (
        (287, 263, 276, 269, 211, 211, 214, 205),
        (0, 0.239, 0.138, 0.130, 0.233, 0.012, 0.162, 0.229),
    ),
}
_DROP_RATES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99)
_DROP_RATE_PLR = (
    (0.002, 0.011, 0.027, 0.041, 0.050, 0.072, 0.058),
    (0.007, 0.020, 0.051, 0.076, 0.079, 0.095, 0.097),
    (0.007, 0.031, 0.049, 0.093, 0.093, 0.095, 0.110),
)
_DROP_RATE_SOJOURN = (
    (57, 62, 119, 38, 40, 39, 36),
    (424, 408, 174, 97, 78, 111, 81),
    (605, 536, 352, 131, 148, 111, 51),
)


def _sweeps() -> Iterator[Source]:
    cell = {"flow": "http", "model": "cbr"}
    for rate, (delay, plr) in _LOADS.items():
        values: dict[str, Sequence[float]] = {"delay": delay, "plr": plr}
        if rate in _LOAD_THROUGHPUT:
            values["throughput"] = _LOAD_THROUGHPUT[rate]
        yield Source(f"load, {rate} kbit/s", {**cell, "rate": rate}, EIGHT, values)
    for payload, (delay, plr) in _SIZES.items():
        values = {"delay": delay, "plr": plr}
        yield Source(f"packet size, {payload} B", {**cell, "payload": payload}, EIGHT, values)
    for i, rate_of_drops in enumerate(_DROP_RATES):
        values = {
            "plr": [row[i] for row in _DROP_RATE_PLR],
            "sojourn": [row[i] for row in _DROP_RATE_SOJOURN],
        }
        where: dict[str, str | float] = {**cell, "drop_rate": rate_of_drops}
        yield Source(f"drop rate, {rate_of_drops:g}", where, CONFIGURATIONS, values)


#: Swept factors: the client's rate in kbit/s, the payload in bytes, and dAQM's drop rate.
SWEPT = ("rate", "payload", "drop_rate")

SOURCES: tuple[Source, ...] = (*_TABLES, *_RAW, *_sweeps())
"""All published tables."""


def _figures(cell: Mapping[str, str | float]) -> tuple[int, ...]:
    """Returns the numbers of the thesis' figures that contain a cell."""
    flow, model = cell["flow"], cell["model"]
    for swept, first in (("drop_rate", 11), ("rate", 13), ("payload", 15)):
        if swept in cell:
            return (first if flow == "http" else first + 1,)
    own = {"http": 9, "streaming": 10}
    return (
        *((6,) if (flow, model) == ("http", "cbr") else ()),
        *((8,) if model == "poisson-onoff" else ()),
        *((own[str(flow)],) if flow in own else ()),
    )


def by_figure() -> pd.DataFrame:
    """Returns all published values as a table: a row for each figure, cell and mechanism.

    Columns are metrics. A value that is in a table of the thesis and in the raw results is taken
    from the thesis.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for source in SOURCES:
        for figure, (number, mechanism) in product(
            _figures(source.cell), enumerate(source.mechanisms)
        ):
            cell = {"figure": figure, **source.cell, "mechanism": mechanism}
            row = rows.setdefault(tuple(cell.values()), {**cell, "seed": 1})
            for metric, values in source.values.items():
                row.setdefault(metric, values[number])
    return pd.DataFrame(rows.values())


def frame() -> pd.DataFrame:
    """Returns all published values as a table with one value in each row."""
    return pd.DataFrame(
        {
            "source": source.name,
            **{key: source.cell.get(key) for key in ("flow", "model", *SWEPT)},
            "mechanism": mechanism,
            "metric": metric,
            "published": value,
        }
        for source in SOURCES
        for metric, row in source.values.items()
        for mechanism, value in zip(source.mechanisms, row, strict=True)
        if value is not None
    )
