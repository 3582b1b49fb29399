"""A host and its GPUs that are priced apart: the price is the sum of all parts, and the parts are shown."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from broker.errors import InputError
from providers.prices.table import Quoted, load_prices
from tests.providers.prices.test_table import GCP, NOW, own

HEADER = "provider,region,machine_type,usd_per_hour,source,as_of,part,quantity\n"
HOST = "gcp,us-central1,a2-highgpu-1g,0.739477,bill,2026-08-01,host,"
A100 = "gcp,us-central1,a2-highgpu-1g,2.933908,contract,2026-07-01,A100,1"
LISTED = Decimal("3.673385")


def quote(path: Path | None, machine_type: str = "a2-highgpu-1g") -> Quoted:
    answer = load_prices(path).quote(GCP, "us-central1", machine_type, NOW)
    assert isinstance(answer, Quoted)
    return answer


def test_the_built_in_price_is_host_and_gpus_together() -> None:
    """12 vCPUs, 85 GiB and one A100, each at the vendor's own list price."""
    host = 12 * Decimal("0.031611") + 85 * Decimal("0.004237")
    assert host + Decimal("2.933908") == LISTED == quote(None).price.usd_per_hour
    for gpus in (2, 4, 8):
        whole = quote(None, f"a2-highgpu-{gpus}g").price.usd_per_hour
        assert abs(whole - gpus * LISTED) <= Decimal("0.00001"), "two hosts' worth of everything"


def test_parts_are_summed_kept_and_as_old_as_the_oldest(tmp_path: Path) -> None:
    price = quote(own(tmp_path, HOST, A100, header=HEADER)).price
    assert price.usd_per_hour == LISTED
    assert price.parts == (("host", Decimal("0.739477")), ("A100", Decimal("2.933908")))
    assert (price.source, f"{price.as_of:%m-%d}") == ("bill, contract", "07-01")


def test_a_part_is_taken_as_often_as_an_instance_holds_it(tmp_path: Path) -> None:
    lines = re.findall(r"^gcp,.*,\d+$", (Path(__file__).parents[3] / "docs/prices.md").read_text(), re.MULTILINE)
    price = quote(own(tmp_path, *lines, header=HEADER)).price
    assert (len(lines), price.usd_per_hour) == (3, LISTED)
    assert dict(price.parts)["vCPU"] == 12 * Decimal("0.031611")


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ((A100,), "only a part of gcp us-central1 a2-highgpu-1g: A100"),
        ((HOST, A100, "gcp,us-central1,a2-highgpu-1g,3.1,bill,2026-08-01,,"), "both whole and in parts"),
        ((HOST, A100, A100.replace("2.93", "1.93")), "(A100) twice, differently"),
        ((HOST, A100.replace(",1", ",0")), "quantity is '0', not a number above 0"),
        ((HOST, A100.replace(",1", ",-2")), "quantity is '-2'"),
        (("gcp,us-central1,a2-highgpu-1g,3.1,bill,2026-08-01,,4",), "no part that it is the quantity of"),
    ],
)
def test_parts_that_contradict_or_do_not_make_a_whole_are_refused(
    tmp_path: Path, lines: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(InputError) as raised:
        load_prices(own(tmp_path, *lines, header=HEADER))
    assert complaint in str(raised.value)


def test_the_same_line_twice_is_one_price(tmp_path: Path) -> None:
    assert quote(own(tmp_path, HOST, HOST, A100, A100, header=HEADER)).price.usd_per_hour == LISTED
