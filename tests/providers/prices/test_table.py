from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from broker.errors import InputError
from broker.model.offer import Offer, Shape
from broker.model.place import Place, ProviderName, Scope
from providers.prices.shapes import shape_of, shapes
from providers.prices.table import Missing, PriceTable, Quoted, load_prices, price_offers

NOW = datetime(2026, 9, 1, tzinfo=UTC)
AWS, GCP, AZURE = ProviderName.AWS, ProviderName.GCP, ProviderName.AZURE
HEADER = "provider,region,machine_type,usd_per_hour,source,as_of\n"


def own(tmp_path: Path, *lines: str, header: str = HEADER) -> Path:
    path = tmp_path / "prices.csv"
    path.write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def quoted(table: PriceTable, region: str = "us-east-1", now: datetime = NOW) -> Quoted:
    answer = table.quote(AWS, region, "p5.48xlarge", now)
    assert isinstance(answer, Quoted)
    return answer


def test_the_built_in_prices_are_sourced_and_dated() -> None:
    table = load_prices(None)
    assert len(table.listed) == 1254
    assert all(price.source and price.as_of.year == 2026 and price.usd_per_hour > 0 for price in table.listed.values())
    assert quoted(table).price.usd_per_hour == Decimal("55.04")
    assert quoted(table).warning == ""


def test_the_page_on_prices_states_how_many_there_are() -> None:
    page = (Path(__file__).parents[3] / "docs" / "prices.md").read_text(encoding="utf-8")
    for name, provider in (("AWS", AWS), ("Google Cloud", GCP), ("Azure", AZURE)):
        count = sum(key[0] == provider for key in load_prices(None).listed)
        assert f"| {name} | {count}" in page


def test_every_priced_machine_type_has_a_shape() -> None:
    assert {(provider, kind) for provider, _, kind in load_prices(None).listed} <= set(shapes())
    h100 = shape_of(AWS, "p5.48xlarge")
    assert h100 == Shape("p5.48xlarge", "h100", 8, 192, Decimal(2048))
    small = shape_of(GCP, "a2-highgpu-2g")
    assert small is not None and (small.gpu_model, small.gpus) == ("a100-40gb", 2)
    assert shape_of(AZURE, "Standard_ND96isr_H100_v5") is not None
    assert shape_of(AWS, "p99.huge") is None


@pytest.mark.parametrize(
    ("provider", "kind"), [(AWS, "g6f.large"), (AZURE, "Standard_NV6ads_A10_v5"), (GCP, "g4-standard-12")]
)
def test_a_fraction_of_a_gpu_is_no_whole_gpu(provider: ProviderName, kind: str) -> None:
    shape = shape_of(provider, kind)
    assert shape is not None and shape.gpus == 0


def test_the_users_own_price_wins_in_its_region_then_anywhere(tmp_path: Path) -> None:
    path = own(
        tmp_path,
        "aws,us-east-1,p5.48xlarge,31.5,contract 7,2026-08-01",
        "aws,*,p5.48xlarge,40,contract 7,2026-08-01",
    )
    table = load_prices(path)
    assert quoted(table).price.usd_per_hour == Decimal("31.5")
    assert quoted(table).price.source == "contract 7"
    assert quoted(table, "eu-west-1").price.usd_per_hour == Decimal(40)


def test_old_prices_warn_then_count_as_missing(tmp_path: Path) -> None:
    table = load_prices(own(tmp_path, "aws,eu-west-1,p5.48xlarge,31.5,contract,2026-01-01"))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert quoted(table, "eu-west-1", start + timedelta(days=90)).warning == ""
    assert "91 days old" in quoted(table, "eu-west-1", start + timedelta(days=91)).warning
    assert "365 days old" in quoted(table, "eu-west-1", start + timedelta(days=365)).warning
    answer = table.quote(AWS, "eu-west-1", "p5.48xlarge", start + timedelta(days=366))
    assert isinstance(answer, Missing) and "366 days old, more than 365 (max_price_age)" in answer.reason


def test_an_own_price_too_old_gives_way_to_the_list_price_and_says_so(tmp_path: Path) -> None:
    table = load_prices(own(tmp_path, "aws,us-east-1,p5.48xlarge,31.5,contract,2025-08-01"))
    assert quoted(table).price.usd_per_hour == Decimal("55.04")
    assert "contract is 396 days old" in quoted(table).warning


def test_a_price_from_the_future_counts_as_missing(tmp_path: Path) -> None:
    table = load_prices(own(tmp_path, "aws,eu-west-1,p5.48xlarge,31.5,contract,2027-01-01"))
    answer = table.quote(AWS, "eu-west-1", "p5.48xlarge", NOW)
    assert isinstance(answer, Missing) and "in the future" in answer.reason


def test_offers_get_their_price_or_none_never_zero() -> None:
    def offer(region: str, kind: str) -> Offer:
        shape = shape_of(AWS, kind)
        assert shape is not None
        return Offer(place=Place(Scope(AWS, "main", region), f"{region}a"), shape=shape)

    priced = price_offers(
        [offer("us-east-1", "p5.48xlarge"), offer("us-east-1", "p5e.48xlarge")], load_prices(None), NOW
    )
    known, unknown = priced.offers
    assert known.price is not None and known.price.usd_per_hour == Decimal("55.04")
    assert unknown.price is None
    assert priced.problems == ("no price known for p5e.48xlarge in aws us-east-1",)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("aws,us-east-1,p5.48xlarge,-1,x,2026-08-01", "line 2: usd_per_hour is '-1', not a number above 0"),
        ("aws,us-east-1,p5.48xlarge,0,x,2026-08-01", "usd_per_hour is '0'"),
        ("aws,us-east-1,p5.48xlarge,NaN,x,2026-08-01", "usd_per_hour is 'NaN'"),
        ("aws,us-east-1,p5.48xlarge,$3,x,2026-08-01", "usd_per_hour is '$3'"),
        ("aws,us-east-1,p5.48xlarge,3,x,yesterday", "as_of is 'yesterday', not a day"),
        ("oci,us-east-1,p5.48xlarge,3,x,2026-08-01", "provider is 'oci', not one of aws, gcp, azure"),
        ("aws,,p5.48xlarge,3,x,2026-08-01", "region is empty"),
        ("aws,us-east-1,p5.48xlarge,3", "line 2 has not as many fields as the first line"),
        ("aws,us-east-1,p5.48xlarge,3,5,x,2026-08-01", "line 2 has not as many fields as the first line"),
    ],
)
def test_a_wrong_line_is_one_error_that_names_it(tmp_path: Path, line: str, says: str) -> None:
    with pytest.raises(InputError) as caught:
        load_prices(own(tmp_path, line))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_more_than_one_mistake_is_counted(tmp_path: Path) -> None:
    bad = "aws,us-east-1,p5.48xlarge,0,x,2026-08-01"
    with pytest.raises(InputError, match=r"line 2: .* \(and 2 more lines like it\)"):
        load_prices(own(tmp_path, bad, bad, bad))


def test_two_prices_for_one_thing_are_refused(tmp_path: Path) -> None:
    line = "aws,us-east-1,p5.48xlarge,{},x,2026-08-01"
    with pytest.raises(InputError, match="twice, differently"):
        load_prices(own(tmp_path, line.format(3), line.format(4)))


def test_a_file_that_is_not_a_price_table_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_prices(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="has no column usd_per_hour, as_of"):
        load_prices(own(tmp_path, header="provider,region,machine_type\n"))
    binary = tmp_path / "binary.csv"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        load_prices(binary)
    binary.write_bytes(b"")
    with pytest.raises(InputError, match="has no column"):
        load_prices(binary)


def test_spreadsheet_habits_are_read(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_bytes(
        b"\xef\xbb\xbfProvider,Region,Machine_Type,USD_per_hour,as_of\r\nAWS,*,p5.48xlarge, 30 ,2026-08-01\r\n"
    )
    assert quoted(load_prices(path)).price.usd_per_hour == Decimal(30)
    assert quoted(load_prices(path)).price.source == "own.csv"
