"""`broker.toml` -> `Config`, or one `ConfigError` that names every mistake with its place."""

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from broker import regular
from broker.config import clouds, schema
from broker.config.consistency import contradictions
from broker.config.reader import Override, Reader
from broker.config.schema import OVERRIDES
from broker.config.types import Config, EntitlementSource, HistorySettings, Origin, QueueSource, ScheduleSettings
from broker.config.values import nearest
from broker.errors import ConfigError
from broker.model.gpu import known, normalise
from broker.model.place import ProviderName
from broker.model.policy import Guards, OwnNodes, PlaceRule, Policy, Pool, Purchase, Tenant
from providers.base import VISIBILITY_WINDOW
from providers.settings import ProviderSettings


def load(path: Path, *, flags: Mapping[str, str] | None = None, env: Mapping[str, str] | None = None) -> Config:
    """`flags` are by their names in `OVERRIDES`; `env` is the environment, of which `BROKER_*` counts."""
    return parse(_text(path), path, flags=flags or {}, env=env or {})


def parse(text: str, path: Path, *, flags: Mapping[str, str], env: Mapping[str, str]) -> Config:
    """Relative paths in the text are relative to the folder of `path`, those in flags and variables to the present one.

    Raises ConfigError.
    """
    document = _document(text, path)
    reader = Reader(_overrides(flags, env))
    config = _config(reader, document, path.absolute())
    for mistake in contradictions(config):
        if mistake.place not in reader.unread and not any(map(reader.doubted, mistake.rests_on)):
            reader.problem(mistake.place, mistake.sentence)
    if reader.problems:
        raise _error(path, reader.problems)
    return config


def _text(path: Path) -> str:
    try:
        return regular.content(path).decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration at {path}", next_step=_where_else(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start})", next_step="Save it as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", next_step="Check the path and its mode") from None


def _where_else(path: Path) -> str:
    """Somebody who named a file mistyped it more likely than wants a new one."""
    beside = sorted(each.name for each in path.parent.glob("*.toml"))
    if path.name == "broker.toml" and not beside:
        return "Make one: broker init"
    found = f"beside it is {', '.join(beside[:3])}; " if beside else ""
    return f"{found}check the path given by --config or BROKER_CONFIG, or make one: broker init"


def _document(text: str, path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(text, parse_float=Decimal)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}", next_step="Correct the line") from None


def _error(path: Path, problems: list[str]) -> ConfigError:
    mistakes = "1 mistake" if len(problems) == 1 else f"{len(problems)} mistakes"
    return ConfigError(f"{path} has {mistakes}", next_step="Correct it; nothing was done", problems=tuple(problems))


def _overrides(flags: Mapping[str, str], env: Mapping[str, str]) -> dict[str, Override]:
    """By key path: the flag wins over the variable; an empty variable is none."""
    found = {}
    for name, key in OVERRIDES.items():
        variable = f"BROKER_{name.upper()}"
        if flags.get(name):
            found[key] = Override((flags[name], Origin.FLAG, f"--{name.replace('_', '-')}"))
        elif env.get(variable):
            found[key] = Override((env[variable], Origin.ENVIRONMENT, variable))
    return found


def _config(reader: Reader, document: dict[str, Any], path: Path) -> Config:
    top = reader.one(schema.TOP, document, "")
    origins = {setting.key: setting.origin for setting in reader.settings}

    def located(key: str) -> Path:
        base = path.parent if origins.get(key) in (None, Origin.FILE, Origin.DEFAULT) else Path.cwd()
        return base / Path(top[key]).expanduser()

    sandbox = clouds.sandbox(reader, document, path.parent)
    providers = clouds.providers(reader, document, sandbox)
    aliases = _gpu_aliases(reader, top)
    return Config(
        path=path,
        gpu_aliases=aliases,
        queues=tuple(
            _queue(path.parent, fields | {"gpu_aliases": aliases})
            for _, _, fields in reader.many(schema.QUEUE, document, "")
        ),
        entitlements=tuple(
            _entitlements(path.parent, fields) for _, _, fields in reader.many(schema.ENTITLEMENTS, document, "")
        ),
        policy=_policy(reader, document, top, providers),
        providers=providers,
        state=located("state"),
        prices=located("prices") if top["prices"] else None,
        forecast=located("forecast") if top["forecast"] else None,
        forecast_max_age=top["forecast_max_age"],
        schedule=ScheduleSettings(**reader.one(schema.SCHEDULE, document.get("schedule", {}), "schedule")),
        history=HistorySettings(**reader.one(schema.HISTORY, document.get("history", {}), "history")),
        freeze_file=located("freeze_file"),
        lock_timeout=top["lock_timeout"],
        sandbox=sandbox,
        settings=tuple(sorted(reader.settings, key=lambda setting: setting.key)),
    )


def _policy(
    reader: Reader, document: dict[str, Any], top: dict[str, Any], providers: tuple[ProviderSettings, ...]
) -> Policy:
    """A pool without places may be served by every configured cloud."""
    anywhere = tuple(PlaceRule(provider=name) for name in ProviderName if name.value in document)
    return Policy(
        mode=top["mode"],
        pools=tuple(_pool(reader, *entry, anywhere) for entry in reader.many(schema.POOL, document, "")),
        tenants=tuple(Tenant(**fields) for _, _, fields in reader.many(schema.TENANT, document, "")),
        purchase=_purchase(reader, document, providers),
        guards=_guards(reader, document),
        protect=frozenset(top["protect"]),
    )


def _purchase(reader: Reader, document: dict[str, Any], providers: tuple[ProviderSettings, ...]) -> Purchase:
    """What is bought may be invisible for as long as in the slowest of the clouds: longer is safer."""
    fields = reader.one(schema.PURCHASE, document.get("purchase", {}), "purchase")
    window = max((each.visibility_window for each in providers), default=VISIBILITY_WINDOW)
    return Purchase(**fields, visibility_window=window)


def _guards(reader: Reader, document: dict[str, Any]) -> Guards:
    guards = Guards(**reader.one(schema.GUARDS, document.get("guards", {}), "guards"))
    _lowered_only(reader, document, guards.max_usd_per_hour)
    return guards


def _lowered_only(reader: Reader, document: dict[str, Any], limit: Decimal | None) -> None:
    """A flag or variable may tighten the budget in the file, never loosen it."""
    guards = document.get("guards")
    in_file = guards.get("max_usd_per_hour") if isinstance(guards, dict) else None
    if isinstance(in_file, int | Decimal) and limit is not None and limit > in_file:
        reader.problem(
            "--max-hourly", f"{limit} is more than guards.max_usd_per_hour {in_file}; it can only be lowered"
        )


def _queue(base: Path, fields: dict[str, Any]) -> QueueSource:
    files = tuple(base / Path(name).expanduser() for name in fields["files"])
    return QueueSource(**(fields | {"files": files}))


def _entitlements(base: Path, fields: dict[str, Any]) -> EntitlementSource:
    path = base / Path(fields["path"]).expanduser() if fields["path"] else None
    return EntitlementSource(**(fields | {"path": path}))


def _gpu_aliases(reader: Reader, top: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """By lower-case name; what they mean must be a model that we know."""
    given = top["gpu_aliases"]
    return tuple((name.lower(), _gpu_model(reader, f"gpu_aliases.{name}", model)) for name, model in given)


def _pool(reader: Reader, path: str, raw: Any, fields: dict[str, Any], anywhere: tuple[PlaceRule, ...]) -> Pool:
    models = tuple(_gpu_model(reader, f"{path}.gpu", name) for name in fields.pop("gpu_models"))
    return Pool(
        **fields,
        gpu_models=models,
        places=tuple(PlaceRule(**place) for _, _, place in reader.many(schema.PLACE, raw, path)) or anywhere,
        own=tuple(OwnNodes(**nodes) for _, _, nodes in reader.many(schema.OWN, raw, path)),
    )


def _gpu_model(reader: Reader, path: str, name: str) -> str:
    model = normalise(name)
    if model is None:
        reader.problem(path, f'does not know the GPU model "{name}"{nearest(name, known())}')
    return model or ""
